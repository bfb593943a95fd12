"""Tallies: how many more pods of each waiting class fit on all nodes together, updated by change.

In: free resources, masks of the rules of kind NODE for each class, and the rows that changed. Out:
int64[tallies], the sum of each class's slots. The sum is an upper bound: host ports, volumes,
devices and rules that read other pods may leave fewer slots. Called by ``waking`` and ``blocked``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask, grown
from quorate.core.cluster.change_log import Log
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.nodes.slots import checked_of, slots_of
from quorate.core.model import policy
from quorate.core.model.steps import Steps, costs
from quorate.core.queue.totals.tallies import Demands, Tally

ALL_BELOW = 2**31
"""The level for priorities without a level of their own: room of all bound pods counts as free."""


@dataclass(frozen=True, slots=True)
class SlotInputs:
    """The arrays on which slots are counted; n rows, r resources. All arrays are only read.

    ``free`` is int64[n, r]. ``mask_of(pod_class)`` is bool[n]. ``below(priority, rows)`` is
    int64[len(rows), r]: what bound pods of lower priority hold. ``attributes`` logs the rows whose
    masks may have changed; ``columns`` changes whenever r or the meaning of a column may.
    """

    free: Ints
    mask_of: Callable[[PodClass], Mask]
    below: Callable[[int, Ints], Ints]
    attributes: Log
    columns: int


class SlotTotals:
    """The tallies, and the total of each: the sum of its slots over all rows as last seen.

    ``totals`` is int64[tallies], by index. Classes with equal attributes share a mask: they are a
    mask group.
    """

    def __init__(self) -> None:
        self._ask_inputs: Callable[[], SlotInputs] | None = None
        self.tallies: list[Tally] = []
        """By index; some have no users left."""
        self._by_key: dict[tuple[int, int | None], Tally] = {}
        self._unused = 0
        self._demands = Demands()
        self._totals: Ints = np.zeros(16, np.int64)
        self._group_of: Ints = np.zeros(16, np.int64)
        self._now: list[tuple[PodClass, Mask]] = []
        """By mask group, one of its classes and the current mask."""
        self._groups: dict[tuple[object, ...], int] = {}
        """The number of each mask group, by the attributes of its classes."""
        self._masks: Mask = np.zeros((0, 0), np.bool_)
        """bool[groups, rows]: the masks with which the totals were counted."""
        self._levels: list[int | None] = [None]
        self._seen: list[Ints] = []
        """By level, int64[rows, r]: the room with which the totals were counted."""
        self._attributes = 0
        """The position in the log of attributes up to which masks were updated."""
        self._columns = -1
        """The version of the columns by which demands are encoded."""
        self._pending: dict[int, None] = {}
        """Rows that may have changed since they were last seen."""
        self._is_all_new = False
        """Whether any row may have changed."""
        self._grown: set[int] = set()
        """Pending rows that may take more pods than before."""
        self._relabelled: set[int] = set()
        """Pending rows whose masks may have changed."""
        self.moved = 0
        """How many times the tallies were renumbered."""

    def __len__(self) -> int:
        """Return the number of tallies, those without users included."""
        return len(self.tallies)

    @property
    def totals(self) -> Ints:
        """int64[tallies]: the slots of each tally over all nodes."""
        return self._totals[: len(self.tallies)]

    @property
    def is_behind(self) -> bool:
        """Whether rows are left for which a turn had no steps."""
        return bool(self._pending) or self._is_all_new

    # Rows

    def note(self, rows: Iterable[int] | None, grown_rows: set[int]) -> None:
        """Note rows that changed (None: any may have), and rows that may take more pods."""
        if self.tallies:
            self._is_all_new |= rows is None
            self._pending.update(dict.fromkeys(rows or ()))
            self._pending.update(dict.fromkeys(grown_rows))
            self._grown.update(grown_rows)

    def set_inputs(self, ask_inputs: Callable[[], SlotInputs]) -> None:
        """Set the function that returns the inputs; it is called when they are needed."""
        self._ask_inputs = ask_inputs

    def end_turn(self) -> None:
        """Forget the function of ``set_inputs`` at the end of a turn, and unused tallies."""
        self._ask_inputs = None
        self._sweep()

    @property
    def _slot_inputs(self) -> SlotInputs:
        assert self._ask_inputs is not None, "a turn has set its inputs"
        return self._ask_inputs()

    def bring_up_to_date(self, steps: Steps) -> Mask:
        """Count pending rows again, as many as the steps allow.

        Return bool[tallies]: whether the tally has a slot on a row that may take more than before.
        """
        reached = np.zeros(len(self.tallies), np.bool_)
        if not (self._pending or self._is_all_new):
            return reached
        inputs = self._slot_inputs
        self._fit(inputs)
        if self._is_all_new:
            self._pending.update(dict.fromkeys(range(len(inputs.free))))
            self._is_all_new = False
        owed = 0
        if inputs.attributes.position != self._attributes:
            owed = self._mask_anew(inputs)
        at_once = max(
            policy.SLOT_ROWS_AT_ONCE_MIN, policy.SLOT_CELLS_AT_ONCE // max(1, self._demands.size)
        )
        while self._pending and not steps.are_over:
            rows = list(islice(self._pending, at_once))
            self._count_anew(np.array(rows, np.int64), inputs, reached, steps)
            for row in rows:
                del self._pending[row]
            self._grown.difference_update(rows)
            self._relabelled.difference_update(rows)
            steps.take(owed)  # after a batch, so that each turn makes progress
            owed = 0
        steps.take(owed)
        return reached

    def _count_anew(self, rows: Ints, inputs: SlotInputs, reached: Mask, steps: Steps) -> None:
        now = self._room_on(rows, inputs)
        was = self._seen_on(rows)
        groups = len(self._now)
        masks_were = self._masks[:groups, rows]
        masks = masks_were
        if not self._relabelled.isdisjoint(rows.tolist()):
            masks = np.array([mask[rows] for _, mask in self._now])
        is_grown = (
            np.isin(rows, list(self._grown)) if self._grown else np.zeros(len(rows), np.bool_)
        )
        differs = (now != was).any(axis=(0, 2)) | (masks != masks_were).any(axis=0)
        if differs.any():
            before = self.sums(was[:, differs], masks_were[:, differs], steps)
            self.totals[:] += self.sums(now[:, differs], masks[:, differs], steps) - before
            for seen, room in zip(self._seen, now, strict=True):
                seen[rows] = room
            self._masks[:groups, rows] = masks
        if is_grown.any():
            slots, counts = self._fitting(now[:, is_grown], masks[:, is_grown], steps)
            reached |= ((slots > 0) & (counts[self._group_of[: len(slots)]] > 0)).any(axis=1)

    def _room_on(self, rows: Ints, inputs: SlotInputs) -> Ints:
        """Return int64[levels, m, r]: the current room on m rows."""
        free = inputs.free[rows]
        more = (inputs.below(level, rows) for level in self._levels if level is not None)
        return np.array([free, *(free + held for held in more)])

    def _seen_on(self, rows: Ints) -> Ints:
        """Return int64[levels, m, r]: the room on m rows with which the totals were counted."""
        return np.array([seen[rows] for seen in self._seen])

    def _mask_anew(self, inputs: SlotInputs) -> int:
        """Fetch current masks, and note the rows whose attributes changed as pending.

        Return how many steps it took to update the masks, row by row or whole.
        """
        rows = inputs.attributes.since(self._attributes)
        self._attributes = inputs.attributes.position
        self._now = [(pod_class, inputs.mask_of(pod_class)) for pod_class, _ in self._now]
        changed = range(len(inputs.free)) if rows is None else dict.fromkeys(rows)
        self._pending.update(dict.fromkeys(changed))
        self._relabelled.update(changed)
        whole = costs.MASK_ROWS_AS_WHOLE + len(inputs.free) // costs.MASK_ROWS_PER_ROW
        return len(self._now) * (1 + min(len(changed), whole)) // costs.MASK_ROWS_PER_STEP

    def _fit(self, inputs: SlotInputs) -> None:
        """Widen the arrays for new rows; count again from zero if the columns changed."""
        rows = len(inputs.free)
        if rows > len(self._seen[0]):
            self._seen = [grown(seen, 2 * rows) for seen in self._seen]
            wider = np.zeros((len(self._masks), 2 * rows), np.bool_)
            wider[:, : self._masks.shape[1]] = self._masks
            self._masks = wider
        if self._columns != inputs.columns:
            self._encode_anew(inputs)

    def _encode_anew(self, inputs: SlotInputs) -> None:
        """Start from zero, all rows pending: the number or meaning of the columns has changed."""
        self._columns = inputs.columns
        shape = len(self._seen[0]), inputs.free.shape[1]
        self._seen = [np.zeros(shape, np.int64, order="F") for _ in self._levels]
        self._masks[:] = False
        self._totals[:] = 0
        self._demands.clear()
        for tally in self.tallies:
            self._demands.add(checked_of(tally.pod_class), self._levels.index(tally.level))
        self._pending.update(dict.fromkeys(range(len(inputs.free))))
        self._relabelled.update(range(len(inputs.free)))

    # Sums

    def sums(self, room: Ints, masks: Mask, steps: Steps) -> Ints:
        """Return int64[tallies]: the slots of each tally, summed over m rows.

        ``room`` is int64[levels, m, r], ``masks`` bool[groups, m].
        """
        slots, counts = self._fitting(room, masks, steps)
        found: Ints = (slots * counts[self._group_of[: len(slots)]]).sum(axis=1)
        return found

    def free_on(self, rows: list[int]) -> Ints:
        """Return int64[m, r]: what is free on m rows, as the totals count it."""
        return self._seen[0][rows] if self._seen else np.zeros((len(rows), 0), np.int64)

    def sums_if(self, rows: Ints, free: Ints, steps: Steps) -> Ints:
        """Return int64[tallies]: the slots summed over m rows, if ``free`` were free there.

        ``free`` is int64[m, r].
        """
        if not self.tallies:
            return np.zeros(0, np.int64)
        room = self._seen_on(rows)
        return self.sums(room + (free - room[0]), self._masks[: len(self._now), rows], steps)

    def _fitting(self, room: Ints, masks: Mask, steps: Steps) -> tuple[Ints, Ints]:
        """Return int64[tallies, u], the slots on u kinds of rows, and int64[groups, u].

        Rows with the same room are of one kind. The second array counts the rows of each kind that
        pass a group's mask.
        """
        levels, rows, _ = room.shape
        counts = masks.astype(np.int64)
        if (
            rows >= policy.SLOT_ROWS_AT_ONCE_MIN
            and rows * self._demands.size > policy.SLOT_CELLS_AT_ONCE // 8
        ):
            columns = [c for c in self._demands.columns if c < room.shape[2]]
            rooms = room[:, :, columns].transpose(1, 0, 2).reshape(rows, levels * len(columns))
            _, first, kind = np.unique(rooms, axis=0, return_index=True, return_inverse=True)
            kind = kind.reshape(-1)
            room = room[:, first]
            counts = np.array([np.bincount(kind[mask], minlength=len(first)) for mask in masks])
        steps.take(1 + room.shape[1] * self._demands.size // costs.SLOT_CELLS_PER_STEP)
        return self._demands.slots(room), counts

    # Classes

    def add(self, pod_class: PodClass, priority: int | None, steps: Steps) -> Tally | None:
        """Return the tally of a class, with one user more; None if there are too many tallies."""
        level = self._level(priority)
        tally = self._by_key.get((pod_class.base, level))
        if tally is None:
            if not self.has_place_for((pod_class,)):
                return None
            tally = self._make(Tally(pod_class, level), steps)
        self._unused -= not tally.users
        tally.users += 1
        return tally

    def has_place_for(self, classes: Sequence[PodClass]) -> bool:
        """Whether tallies for these classes could be added within the bounds."""
        new = {one.attributes for one in classes if one.attributes not in self._groups}
        rows = len(self._seen[0]) if self._seen else len(self._slot_inputs.free)
        return (
            len(self.tallies) - self._unused + len(classes) <= policy.CLASSES_WATCHED_MAX
            and (len(self._now) + len(new)) * rows <= policy.CLASS_MASKS_CELLS_MAX
        )

    def count(self, pod_class: PodClass, level: int | None, steps: Steps) -> int:
        """Return the slots of a class over all nodes, counted now and without a tally."""
        inputs = self._slot_inputs
        steps.take(1 + len(inputs.free) * len(checked_of(pod_class)) // costs.SLOT_CELLS_PER_STEP)
        free = inputs.free
        if level is not None:
            free = free + inputs.below(level, np.arange(len(free)))
        return int(slots_of(pod_class, free)[inputs.mask_of(pod_class)].sum())

    def release(self, tally: Tally) -> None:
        """Drop one user of a tally."""
        tally.users -= 1
        self._unused += not tally.users

    def _level(self, priority: int | None) -> int | None:
        if priority in self._levels or len(self._levels) <= policy.PRIORITIES_WATCHED_MAX:
            return priority
        return ALL_BELOW

    def _make(self, tally: Tally, steps: Steps) -> Tally:
        inputs = self._slot_inputs
        if not self._seen:
            self._seen = [inputs.free.copy(order="F")]
            self._attributes, self._columns = inputs.attributes.position, inputs.columns
        steps.take(
            1 + len(self._seen[0]) * len(tally.pod_class.demands) // costs.SLOT_CELLS_PER_STEP
        )
        if tally.level is not None and tally.level not in self._levels:
            rows = np.arange(len(inputs.free))
            seen = self._seen[0].copy(order="F")
            seen[rows] += inputs.below(tally.level, rows)
            self._levels.append(tally.level)
            self._seen.append(seen)
        self._append(tally, self._group(tally.pod_class, inputs))
        slots = slots_of(tally.pod_class, self._seen[self._levels.index(tally.level)])
        self._totals[tally.index] = slots[self._masks[tally.group]].sum()
        self._by_key[tally.key] = tally
        self._unused += 1
        return tally

    def _append(self, tally: Tally, group: int) -> None:
        if len(self.tallies) == len(self._totals):
            self._totals = grown(self._totals, 2 * len(self._totals))
            self._group_of = grown(self._group_of, 2 * len(self._group_of))
        tally.index, tally.group = len(self.tallies), group
        self.tallies.append(tally)
        self._group_of[tally.index] = group
        self._demands.add(checked_of(tally.pod_class), self._levels.index(tally.level))

    def _group(self, pod_class: PodClass, inputs: SlotInputs) -> int:
        """Return the number of a class's mask group; a new group gets a row in ``_masks``."""
        place = self._groups.setdefault(pod_class.attributes, len(self._now))
        if place < len(self._now):
            return place
        mask = inputs.mask_of(pod_class)
        if place == len(self._masks):
            wider = np.zeros((max(16, 2 * place), len(self._seen[0])), np.bool_)
            wider[:place, : self._masks.shape[1]] = self._masks
            self._masks = wider
        self._masks[place] = False
        self._masks[place, : len(mask)] = mask
        self._now.append((pod_class, mask))
        return place

    def _sweep(self) -> None:
        """Forget the tallies without users if they are many, or if no tally has a user."""
        live = len(self.tallies) - self._unused
        if self._unused <= (max(policy.MASKS_UNUSED_FEW, live) if live else 0):
            return
        kept = [(tally, self._totals[tally.index]) for tally in self.tallies if tally.users]
        used = sorted({tally.group for tally, _ in kept})
        groups = {group: place for place, group in enumerate(used)}
        levels = [level for level in self._levels if level is None or self._is_used(level)]
        self._seen = [self._seen[self._levels.index(level)] for level in levels] if kept else []
        self._levels = levels
        self._now = [self._now[group] for group in groups]
        self._groups = {c.attributes: place for place, (c, _) in enumerate(self._now)}
        self._masks = self._masks[list(groups)]
        self.tallies, self._unused = [], 0
        self._by_key = {tally.key: tally for tally, _ in kept}
        self._demands.clear()
        for tally, total in kept:
            self._append(tally, groups[tally.group])
            self._totals[tally.index] = total
        self.moved += 1
        if not kept:
            self._masks = np.zeros((0, 0), np.bool_)
            self._is_all_new = False
            for news in (self._pending, self._grown, self._relabelled):
                news.clear()

    def _is_used(self, level: int) -> bool:
        return any(tally.level == level and tally.users for tally in self.tallies)
