"""The types of arrays in the state, and a function that lengthens them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


def grown(array: npt.NDArray[np.generic], rows: int, *, fill: int = 0) -> npt.NDArray:  # type: ignore[type-arg]
    """Return ``array`` with ``rows`` rows, the new ones holding ``fill``; its order is kept."""
    order = "F" if array.flags.f_contiguous else "C"
    larger = np.full((rows, *array.shape[1:]), fill, dtype=array.dtype, order=order)  # type: ignore[call-overload]
    larger[: len(array)] = array
    return larger  # type: ignore[no-any-return]
