"""Names to integers: resources to columns, pod shapes to classes, label values and taints to codes.

Everything that a filter compares is encoded once, when it is first seen, so that planning works on
integer arrays. Codes are given in order of arrival: the same changes give the same codes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quorate.core.model import PodShape

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
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
    """Pods of one shape: what one of them takes, as ``(column, amount)`` with amounts > 0."""

    __slots__ = ("columns", "demands", "id", "shape")

    def __init__(self, class_id: int, shape: PodShape, resources: Resources) -> None:
        self.id = class_id
        self.shape = shape
        self.demands: tuple[tuple[int, int], ...] = (
            *((resources.column(name), amount) for name, amount in shape.requests if amount > 0),
            (PODS, 1),
        )
        self.columns = tuple(column for column, _ in self.demands)


class PodClasses:
    """Pod shapes and their classes."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._by_shape: dict[PodShape, PodClass] = {}
        self.by_id: list[PodClass] = []

    def of(self, shape: PodShape) -> PodClass:
        """Return the class of ``shape``; a new shape gets a new class."""
        found = self._by_shape.get(shape)
        if found is None:
            found = PodClass(len(self.by_id), shape, self._resources)
            self._by_shape[shape] = found
            self.by_id.append(found)
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
