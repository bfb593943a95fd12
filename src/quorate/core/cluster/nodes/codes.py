"""Values of a label, or sets of taints, as integers: one code for each node row.

Codes follow the order of arrival. Owned by ``cluster.nodes.nodes``; read through
``cluster.snapshot``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quorate.core.cluster.arrays import Codes, grown
from quorate.core.model import policy


class CodeColumn:
    """int32[rows], one code for each node row: of a label's value or a set of taints; -1: absent.

    ``serial`` is unique among the columns of a table. Codes of two columns must not be compared,
    even if both are of the same label.
    """

    def __init__(self, rows: int, serial: int = 0) -> None:
        self.serial = serial
        self.codes: Codes = np.full(rows, -1, dtype=np.int32)
        self.values: list[object] = []
        self.code_of: dict[object, int] = {}
        self._rows_of: list[int] = []
        """By code, the number of rows with that value."""
        self._in_use = 0

    @classmethod
    def of(cls, values: Sequence[object | None], rows: int, serial: int) -> CodeColumn:
        """Return a column of ``rows`` rows, of which the first have these values."""
        column = cls(rows, serial)
        code_of: dict[object, int] = {}
        codes = [-1 if v is None else code_of.setdefault(v, len(code_of)) for v in values]
        column.codes[: len(codes)] = codes
        column.code_of, column.values = code_of, list(code_of)
        column._in_use = len(code_of)
        column._rows_of = np.bincount(column.codes[column.codes >= 0]).tolist()
        return column

    def set(self, row: int, value: object | None) -> None:
        """Encode ``value`` (None: absent) at ``row``."""
        before = int(self.codes[row])
        if before >= 0:
            self._rows_of[before] -= 1
            self._in_use -= not self._rows_of[before]
        if value is None:
            self.codes[row] = -1
            return
        code = self.code_of.get(value)
        if code is None:
            code = self.code_of[value] = len(self.values)
            self.values.append(value)
            self._rows_of.append(0)
        self._in_use += not self._rows_of[code]
        self._rows_of[code] += 1
        self.codes[row] = code

    @property
    def is_mostly_unused(self) -> bool:
        """Whether most of the values have no rows left."""
        return len(self.values) - self._in_use > self._in_use + policy.VALUES_UNUSED_MAX

    def renewed(self, serial: int) -> CodeColumn:
        """Return a column with the same values by row, without the values that no row has."""
        kept = [code for code, rows in enumerate(self._rows_of) if rows]
        renumbered = np.full(len(self.values) + 1, -1, np.int32)  # the last one is for -1
        renumbered[kept] = np.arange(len(kept))
        column = CodeColumn(0, serial)
        column.codes = renumbered[self.codes]
        column.values = [self.values[code] for code in kept]
        column.code_of = {value: code for code, value in enumerate(column.values)}
        column._rows_of = [self._rows_of[code] for code in kept]
        column._in_use = len(kept)
        return column

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` rows."""
        self.codes = grown(self.codes, rows, fill=-1)
