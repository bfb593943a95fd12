"""What allocation scores read: allocatable and free amounts of some nodes, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quorate.core.cluster.arrays import Ints


class Amounts(NamedTuple):
    """For m nodes: ``free`` and ``allocatable`` int64[m, r], ``scored`` int64[m, 2] as in Room."""

    free: Ints
    allocatable: Ints
    scored: Ints


class NodeAmounts(NamedTuple):
    """The same for one node, as plain integers by resource; ``scored`` is cpu and memory."""

    free: Sequence[int]
    allocatable: Sequence[int]
    scored: Sequence[int]
