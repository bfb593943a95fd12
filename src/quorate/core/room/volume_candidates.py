"""Which volume an unbound claim would get on a node: the smallest free one that suits it.

Called by ``room.claim_choices``. Volumes with the same node affinity are one group: on each node
only the smallest free one of a group matters. Source: FindMatchingVolume of component-helpers.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.storage.needs import UnboundNeed
from quorate.core.cluster.storage.volume_needs import fits_claim
from quorate.core.model import SelectorTerm
from quorate.core.model.steps import costs
from quorate.core.model.storage import Volume
from quorate.core.room.reach import Reach

Group = tuple[list[int], Ints]
"""Numbers of volumes, smallest volume first, and the sorted rows of nodes that reach them."""
Starts = dict[tuple[int, int], int]
"""By ``VolumeCandidates`` and group: how many volumes at its start are known to be taken."""
_NO_ROWS: Ints = np.zeros(0, np.int64)


class VolumeCandidates:
    """Volumes for one kind of claim, as numbers. ``order`` ranks them by size, smallest first."""

    def __init__(self, groups: list[Group], order: dict[int, int]) -> None:
        self._groups = groups
        self._order = order
        self.numbers = frozenset(number for numbers, _ in groups for number in numbers)
        self.is_local = all(len(rows) == 1 for _, rows in groups)
        """Whether each volume is reachable from one node only: no pod elsewhere can take it."""
        self._rows = np.concatenate([_NO_ROWS, *(rows for _, rows in groups)])
        """Each group's rows, one group after the other."""
        self._sizes = [len(rows) for _, rows in groups]
        self.steps = len(order) // 100 + len(self._rows) // costs.VOLUME_PAIRS_PER_STEP
        """The cost of one ``free_at`` over all nodes, in steps."""
        self.steps_to_make = len(order) // 12 + len(self._rows) // 500
        self._at_rows: tuple[Ints, list[int]] | None = None
        self._looks = 0

    def free_at(self, n: int, taken: Collection[int]) -> Ints:
        """Return int64[n]: how many volumes outside ``taken`` the node reaches."""
        free = [sum(number not in taken for number in numbers) for numbers, _ in self._groups]
        weights = np.repeat(np.array(free, np.int64), self._sizes)
        return np.bincount(self._rows, weights, minlength=n).astype(np.int64)

    def pick_at(self, row: int, taken: Collection[int], starts: Starts) -> int:
        """Return the number of the volume that the claim gets on the row, or -1.

        ``taken`` are volumes of other pods. ``starts`` may be reused between calls as long as
        ``taken`` only grows.
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
            if first < len(numbers) and self._order[numbers[first]] < rank:
                best, rank = numbers[first], self._order[numbers[first]]
        return best

    def _groups_at(self, row: int) -> list[int]:
        """Return the groups that reach the row. The first call sorts the pairs of all rows."""
        if self._at_rows is None:
            rows = self._rows
            groups = np.repeat(np.arange(len(self._sizes)), self._sizes)
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


def candidates_of(need: UnboundNeed, reach: Reach, numbers: dict[str, int]) -> VolumeCandidates:
    """Return the volumes that suit the claim; new ones get a number in ``numbers``."""
    storage = reach.snapshot.storage
    if need.kept:
        fitting = [storage.volumes[need.kept]] if need.kept in storage.volumes else []
    elif need.is_one_of_several:
        fitting = []
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
    reached = [(alike, reach.rows_of(terms)) for terms, alike in groups.items()]
    return VolumeCandidates([group for group in reached if len(group[1])], order)


def _suits(volume: Volume, need: UnboundNeed) -> bool:
    return (
        volume.claim is None
        and volume.phase == "Available"
        and set(need.access_modes) <= set(volume.access_modes)
        and (need.selector is None or need.selector.matches(dict(volume.labels)))
        and fits_claim(volume, need)
    )
