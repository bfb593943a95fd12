"""Which volume an unbound claim would get on each node: the smallest free one that suits it.

Called by ``room.claim_choices``. Volumes with the same node affinity are one group: on each node
only the smallest free ones of a group matter. Source: FindMatchingVolume of component-helpers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.storage.needs import UnboundNeed
from quorate.core.cluster.storage.volume_needs import fits_claim
from quorate.core.model import SelectorTerm, policy
from quorate.core.model.steps import costs
from quorate.core.model.storage import Volume
from quorate.core.room.reach import Reach

Group = tuple[list[int], Ints]
"""Numbers of volumes, smallest volume first, and the sorted rows of nodes that reach them."""
Starts = dict[tuple[int, int], int]
"""By ``VolumeCandidates`` and group: how many volumes at its start are known to be taken."""


class VolumeCandidates:
    """Volumes for one kind of claim, as numbers. ``order`` ranks them by size, smallest first."""

    def __init__(self, groups: list[Group], order: dict[int, int]) -> None:
        self._groups = groups
        self._order = order
        self._flat = self._flatten(groups)
        self.numbers = frozenset(number for numbers, _ in groups for number in numbers)
        self.is_local = all(len(rows) == 1 for _, rows in groups)
        """Whether each volume is reachable from one node only: no pod elsewhere can take it."""
        pairs = sum(len(rows) for _, rows in groups)
        each = 0 if self._flat is not None else len(groups) // 8 + len(order) // 100
        self.steps = each + pairs // costs.VOLUME_PAIRS_PER_STEP
        """The cost of one ``pick`` over all nodes, in steps."""
        self.steps_to_make = len(order) // 12 + pairs // 500
        self._at_rows: tuple[Ints, list[int]] | None = None
        self._looks = 0

    def _flatten(self, groups: list[Group]) -> tuple[Ints, Ints] | None:
        pairs_all = sum(len(numbers) * len(rows) for numbers, rows in groups)
        per_node = policy.VOLUMES_PER_NODE_FLAT_MAX * sum(len(rows) for _, rows in groups)
        if pairs_all > min(policy.VOLUME_PAIRS_FLAT_MAX, per_node):
            return None
        pairs = [(number, rows) for numbers, rows in groups for number in numbers]
        return self._joined(pairs)

    def _joined(self, pairs: list[tuple[int, Ints]]) -> tuple[Ints, Ints]:
        """Return numbers and rows, largest volume first: a later assignment overwrites it."""
        pairs.sort(key=lambda pair: -self._order[pair[0]])
        if not pairs:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        numbers = np.repeat(
            np.array([number for number, _ in pairs], np.int64), [len(rows) for _, rows in pairs]
        )
        return numbers, np.concatenate([rows for _, rows in pairs])

    def pick(self, n: int, taken: Collection[int], before: Sequence[Ints]) -> Ints:
        """Return int64[n]: the number of the volume that the claim gets on each node, or -1.

        ``taken`` are volumes of other pods; ``before`` (int64[n] each) are those that the
        pod's smaller claims get.
        """
        choice = np.full(n, -1, np.int64)
        if not self._groups:
            return choice
        if self._flat is not None:
            numbers, rows = self._flat
            free = _are_free(numbers, taken)
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

    def pick_at(
        self, row: int, taken: Collection[int], before: Collection[int], starts: Starts
    ) -> int:
        """Return the number that ``pick`` returns for one row.

        ``starts`` may be reused between calls as long as ``taken`` only grows.
        """
        best, rank = -1, len(self._order)
        groups = self._groups_at(row)
        self._looks += 1 + len(groups)
        for index in groups:
            numbers = self._groups[index][0]
            first = starts.get((id(self), index), 0)
            while first < len(numbers) and numbers[first] in taken:
                first += 1
            starts[id(self), index] = first
            while first < len(numbers) and (numbers[first] in before or numbers[first] in taken):
                first += 1
            if first < len(numbers) and self._order[numbers[first]] < rank:
                best, rank = numbers[first], self._order[numbers[first]]
        return best

    def _groups_at(self, row: int) -> list[int]:
        """Return the groups that reach the row. The first call sorts the pairs of all rows."""
        if self._at_rows is None:
            all_rows = [rows for _, rows in self._groups] or [np.zeros(0, np.int64)]
            rows = np.concatenate(all_rows)
            groups = np.repeat(np.arange(len(all_rows)), [len(some) for some in all_rows])
            n = int(rows.max(initial=-1)) + 1
            # Sorting 16-bit integers takes an eighth of the time of 64-bit ones.
            order = np.argsort(rows.astype(np.uint16) if n <= 2**16 else rows, kind="stable")
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
            self._at_rows = groups[order], starts.tolist()
            self._looks += len(rows) // costs.VOLUME_PAIRS_PER_GROUP
        groups_in_order, starts_at = self._at_rows
        if row + 1 >= len(starts_at):
            return []
        found: list[int] = groups_in_order[starts_at[row] : starts_at[row + 1]].tolist()
        return found

    def take_steps(self) -> int:
        """Return the steps that ``pick_at`` has done, and reset the count."""
        steps, self._looks = divmod(self._looks, costs.VOLUME_GROUPS_PER_STEP)
        return steps

    def free_at(self, n: int, taken: Collection[int]) -> Ints:
        """Return int64[n]: how many volumes outside ``taken`` the node reaches."""
        if self._flat is not None:
            flat, rows = self._flat
            return np.bincount(rows[_are_free(flat, taken)], minlength=n).astype(np.int64)
        found = np.zeros(n, np.int64)
        for numbers, rows in self._groups:
            found[rows] += sum(number not in taken for number in numbers)
        return found


def _are_free(numbers: Ints, taken: Collection[int]) -> Mask:
    if not taken:
        return np.ones(len(numbers), np.bool_)
    return ~np.isin(numbers, list(taken))


def candidates_of(need: UnboundNeed, reach: Reach, numbers: dict[str, int]) -> VolumeCandidates:
    """Return the volumes that suit the claim; new ones get a number in ``numbers``."""
    storage = reach.snapshot.storage
    if need.kept:
        fitting = [storage.volumes[need.kept]] if need.kept in storage.volumes else []
    else:
        in_class = storage.index.volumes_in.get(need.storage_class, ())
        fitting = [volume for name in in_class if _suits(volume := storage.volumes[name], need)]
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
        rows = reach.rows_of(terms)
        if len(rows):
            found.append((alike, rows))
    return VolumeCandidates(found, order)


def _suits(volume: Volume, need: UnboundNeed) -> bool:
    return (
        volume.claim is None
        and volume.phase == "Available"
        and set(need.access_modes) <= set(volume.access_modes)
        and (need.selector is None or need.selector.matches(dict(volume.labels)))
        and fits_claim(volume, need)
    )
