"""Names to integers: resources to columns, pod shapes to classes, label values and taints to codes.

Everything that a filter compares is encoded once, when it is first seen, so that planning works on
integer arrays. Codes are given in order of arrival: the same changes give the same codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quorate.core.model import PodShape

if TYPE_CHECKING:
    from quorate.core.state.wants import Wants

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
_MATCHING_MAX = 16384
FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")


class Resources:
    """Resource names and their columns; the first four are always there."""

    def __init__(self) -> None:
        self.names: list[str] = list(FIRST_RESOURCES)
        self.columns: dict[str, int] = {name: index for index, name in enumerate(self.names)}

    def column(self, name: str) -> int:
        """Return the column of ``name``; a new name gets the next one."""
        column = self.columns.get(name)
        if column is None:
            column = self.columns[name] = len(self.names)
            self.names.append(name)
        return column


class PodClass:
    """Pods that are alike to the scheduler: what one takes, as ``(column, amount)``, amounts > 0.

    ``base`` is the number of its shape. ``matched`` are the selectors that match its pods: two
    classes of one shape differ in whom their pods' labels concern. ``wants`` (``state.wants``) is
    what their volumes demand; None when they have none.
    """

    __slots__ = ("base", "columns", "demands", "id", "matched", "shape", "wants")

    def __init__(
        self,
        class_id: int,
        shape: PodShape,
        demands: tuple[tuple[int, int], ...],
        base: int,
        matched: frozenset[int] = frozenset(),
        wants: Wants | None = None,
    ) -> None:
        self.wants = wants
        self.id = class_id
        self.base = base
        self.shape = shape
        self.demands = demands
        self.columns = tuple(column for column, _ in demands)
        self.matched = matched


class PodClasses:
    """Pod shapes and their classes."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._by_shape: dict[PodShape, PodClass] = {}
        self._matching: dict[tuple[int, frozenset[int], Wants | None], PodClass] = {}
        self._made = 0
        self.by_id: dict[int, PodClass] = {}
        """The classes of shapes alone."""

    def of(self, shape: PodShape) -> PodClass:
        """Return the class of ``shape``; a new shape gets a new class."""
        found = self._by_shape.get(shape)
        if found is None:
            demands = (
                *(
                    (self._resources.column(r), amount)
                    for r, amount in shape.requests
                    if amount > 0
                ),
                (PODS, 1),
            )
            found = PodClass(self._made, shape, demands, self._made)
            self._made += 1
            self._by_shape[shape] = self.by_id[found.id] = found
        return found

    def matching(
        self, base: PodClass, matched: frozenset[int], wants: Wants | None = None
    ) -> PodClass:
        """Return the class of the pods of a shape whose labels these selectors match.

        ``wants`` is what their volumes demand.
        """
        if not matched and wants is None:
            return base
        found = self._matching.get((base.id, matched, wants))
        if found is None:
            if len(self._matching) >= _MATCHING_MAX:
                self._matching.clear()  # numbers are never given twice, so an old one does no harm
            found = PodClass(self._made, base.shape, base.demands, base.id, matched, wants)
            self._made += 1
            self._matching[base.id, matched, wants] = found
        return found


class CodeColumn:
    """One code for each node row: of a label's value, or of a set of taints. Absent is -1."""

    def __init__(self, rows: int) -> None:
        self.codes: Codes = np.full(rows, -1, dtype=np.int32)
        self.values: list[object] = []
        self.code_of: dict[object, int] = {}

    def set(self, row: int, value: object | None) -> None:
        """Encode ``value`` (None: absent) at ``row``."""
        if value is None:
            self.codes[row] = -1
            return
        code = self.code_of.get(value)
        if code is None:
            code = self.code_of[value] = len(self.values)
            self.values.append(value)
        self.codes[row] = code

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` rows."""
        self.codes = grown(self.codes, rows, fill=-1)


def grown(array: npt.NDArray[np.generic], rows: int, *, fill: int = 0) -> npt.NDArray:  # type: ignore[type-arg]
    """Return ``array`` with ``rows`` rows, the new ones holding ``fill``; its order is kept."""
    order = "F" if array.flags.f_contiguous else "C"
    larger = np.full((rows, *array.shape[1:]), fill, dtype=array.dtype, order=order)  # type: ignore[call-overload]
    larger[: len(array)] = array
    return larger  # type: ignore[no-any-return]
