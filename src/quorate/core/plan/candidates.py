"""Which volume an unbound claim would get on each node: the smallest one that does, free still.

Called by ``plan.volume_room``. Volumes with the same node affinity are one group: on each node only
the smallest free ones of a group matter. Source: FindMatchingVolume of k8s.io/component-helpers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from quorate.core.model import SelectorTerm
from quorate.core.model.storage import Volume
from quorate.core.state.arrays import Ints
from quorate.core.state.snapshot import Snapshot
from quorate.core.state.wants import UnboundWant, fits_claim

_FLAT_MAX = 1_000_000
"""So many pairs of volume and node are looked at all at once; of more, group by group."""
_FLAT_PER_ROW_MAX = 4
"""Nor where groups have more volumes than this: most of them do not matter to one claim."""


class Candidates:
    """Volumes for one kind of claim, smallest first, as numbers, in groups with their rows."""

    def __init__(self, groups: list[tuple[list[int], Ints]], order: dict[int, int]) -> None:
        self._groups = groups
        self._order = order
        self._flat = self._flatten(groups)
        self.exist = bool(groups)
        self.one_each = all(len(numbers) == len(rows) == 1 for numbers, rows in groups) and len(
            {int(rows[0]) for _, rows in groups}
        ) == len(groups)
        """Whether each node has at most one of them, and each of them one node."""

    def _flatten(self, groups: list[tuple[list[int], Ints]]) -> tuple[Ints, Ints] | None:
        pairs_all = sum(len(numbers) * len(rows) for numbers, rows in groups)
        if pairs_all > min(_FLAT_MAX, _FLAT_PER_ROW_MAX * sum(len(rows) for _, rows in groups)):
            return None
        pairs = [(number, rows) for numbers, rows in groups for number in numbers]
        return self._joined(pairs)

    def _joined(self, pairs: list[tuple[int, Ints]]) -> tuple[Ints, Ints]:
        """Return numbers and rows side by side, the largest volume first: the last one wins."""
        pairs.sort(key=lambda pair: -self._order[pair[0]])
        if not pairs:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        numbers = np.repeat(
            np.array([number for number, _ in pairs], np.int64), [len(rows) for _, rows in pairs]
        )
        return numbers, np.concatenate([rows for _, rows in pairs])

    def pick(self, n: int, taken: Collection[int], before: Sequence[Ints]) -> Ints:
        """Return int64[n]: the number of the volume that the claim gets on each node, or -1.

        ``taken`` are given away; ``before`` is what the pod's smaller claims get on each node.
        """
        choice = np.full(n, -1, np.int64)
        if not self.exist:
            return choice
        if self._flat is not None:
            numbers, rows = self._flat
            free = ~np.isin(numbers, list(taken)) if taken else np.ones(len(numbers), np.bool_)
        else:
            numbers, rows = self._joined(self._smallest_free(taken, len(before) + 1))
            free = np.ones(len(numbers), np.bool_)
        for other in before:
            free &= other[rows] != numbers
        choice[rows[free]] = numbers[free]
        return choice

    def _smallest_free(self, taken: Collection[int], count: int) -> list[tuple[int, Ints]]:
        pairs = []
        for numbers, rows in self._groups:
            free = (number for number in numbers if number not in taken)
            pairs += [(number, rows) for number, _ in zip(free, range(count), strict=False)]
        return pairs


def candidates_of(
    want: UnboundWant,
    snapshot: Snapshot,
    rows_of: Callable[[tuple[SelectorTerm, ...] | None], Ints],
    numbers: dict[str, int],
) -> Candidates:
    """Return the volumes that do for the claim; new ones get a number in ``numbers``."""
    storage = snapshot.storage
    if want.kept:
        fitting = [storage.volumes[want.kept]] if want.kept in storage.volumes else []
    else:
        in_class = storage.index.volumes_in.get(want.storage_class, ())
        fitting = [volume for name in in_class if _does(volume := storage.volumes[name], want)]
        fitting = [volume for volume in fitting if volume.name not in storage.reserved]
    fitting.sort(key=lambda volume: (volume.capacity, volume.name))
    order: dict[int, int] = {}
    groups: dict[tuple[SelectorTerm, ...] | None, list[int]] = {}
    for rank, volume in enumerate(fitting):
        number = numbers.setdefault(volume.name, len(numbers))
        order[number] = rank
        groups.setdefault(volume.affinity, []).append(number)
    found = []
    for terms, alike in groups.items():
        rows = rows_of(terms)
        if len(rows):
            found.append((alike, rows))
    return Candidates(found, order)


def _does(volume: Volume, want: UnboundWant) -> bool:
    return (
        volume.claim is None
        and volume.phase == "Available"
        and set(want.access_modes) <= set(volume.access_modes)
        and (want.selector is None or want.selector.matches(dict(volume.labels)))
        and fits_claim(volume, want)
    )
