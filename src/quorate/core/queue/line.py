"""The line of one turn: the gangs that it tries, in order.

In: the queue and the totals of slots. Out: gangs; ready and woken ones are merged by order key. A
bucket yields one gang after the other, as long as it may have room; when a gang is tried in vain,
the gangs of its class are skipped. Made by ``waking``; read by ``planning``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey, policy
from quorate.core.model.steps import Steps, costs
from quorate.core.queue.queue import Queue
from quorate.core.queue.ready import OrderKey
from quorate.core.queue.totals.cycle_totals import CycleTotals
from quorate.core.queue.wakeups.buckets import Bucket, GangClass, GangGroup


class Line:
    """The gangs of one turn. A gang that is not reached stays in its place in the queue."""

    def __init__(
        self,
        number: int,
        queue: Queue,
        gangs: Mapping[GangKey, GangEntry],
        totals: CycleTotals,
        steps: Steps,
    ) -> None:
        self.number = number
        self.totals = totals
        self._queue = queue
        self._gangs = gangs
        self._steps = steps
        self._woken: list[tuple[OrderKey, int, Bucket]] = []
        """A heap of buckets that may have room, by their first gangs; some entries are outdated."""
        self._is_cut_short = False
        """Whether the steps ran out before all buckets were examined."""
        self._looked_at = totals.version
        """The version of the totals when ``_woken`` was last filtered."""
        self._known: dict[Bucket, tuple[int, list[tuple[int, int]] | None]] = {}
        """A cache: the version of the totals, and what a bucket is short of by that version."""

    def look_at_buckets(self, unwatched: Iterable[Bucket] = ()) -> None:
        """Find the buckets that may have room, until the steps run out.

        ``unwatched`` are buckets without tallies for which the caller has found enough slots.
        """
        blocked = self._queue.blocked
        for place, bucket in enumerate([*blocked.with_room(self.totals), *blocked.opened()], 1):
            if not bucket.watches:
                blocked.looked_at(bucket)
            self._wake(bucket)
            if place % costs.QUEUE_LOOKS_PER_STEP == 0:
                self._steps.take()
                if self._steps.are_over:
                    self._is_cut_short = True
                    break
        for bucket in unwatched:
            self._wake(bucket)
        heapify(self._woken)

    def gangs(self) -> Iterator[GangEntry]:
        """Yield the gangs to try, in order, until the steps run out; each has left the queue."""
        is_first = True
        while is_first or not self._steps.are_over:
            key = self._next()
            if key is None:
                return
            is_first = False
            self._steps.take()
            yield self._gangs[key]

    @property
    def is_over(self) -> bool:
        """Whether no woken gang is left that this turn could have tried."""
        return not self._is_cut_short and self._first_woken() is None

    def may_fit(self, gang_class: GangClass) -> bool:
        """Whether there may be room for a gang of this class, by slots and this turn's tries."""
        bucket, group = self._queue.blocked.find(gang_class)
        if group is not None and group.failed_in == self.number:
            return False
        return bucket is None or not self._is_short(bucket)

    def note_placed(self, rows: Iterable[int], free: Ints) -> None:
        """Note that pods were placed on these rows; ``free`` is int64[n, r], left on all nodes."""
        self.totals.note_placed(rows, free)

    def failed(self, gang: GangEntry, gang_class: GangClass) -> GangGroup | None:
        """Block a gang that was tried in vain; this turn tries no other gang of its class.

        Return the group if slots suffice: the caller then has to note what may help it. Return
        None if slots are too few; the bucket watches them.
        """
        group = self._queue.block(gang, gang_class)
        group.failed_in = self.number
        short = self._short_of(group.bucket)
        if short:
            self._queue.blocked.watch(group.bucket, short)
            return None
        return group

    def _wake(self, bucket: Bucket) -> None:
        """Add a bucket to the line if it may have room for its first gang."""
        if bucket.first is None:
            self._queue.blocked.close_if_tried(bucket)
        elif (bucket.watches and len(bucket.counts) == 1) or not self._is_short(bucket):
            self._woken.append((bucket.first, bucket.number, bucket))

    def _next(self) -> GangKey | None:
        """Remove and return the first gang, ready or woken; None when there is none."""
        queue = self._queue
        ready, woken = queue.ready.first(self._gangs), self._first_woken()
        if woken is None or (ready is not None and ready < woken):
            return queue.ready.pop() if ready is not None else None
        key: GangKey = woken[-1]
        queue.take(key)
        return key

    def _first_woken(self) -> OrderKey | None:
        """Return the order key of the first gang of all buckets that may have room, or None."""
        if self._looked_at != self.totals.version and len(self._woken) > policy.WOKEN_FEW:
            self._leave_out()
        while self._woken:
            order, _, bucket = self._woken[0]
            first, group = bucket.first, bucket.first_group
            if first is None or group is None:
                heappop(self._woken)
                self._queue.blocked.close_if_tried(bucket)
            elif group.failed_in == self.number:  # another gang of its class failed in this turn
                heappop(self._woken)
            elif first != order:
                heapreplace(self._woken, (first, bucket.number, bucket))
            elif self._is_short(bucket):
                heappop(self._woken)
            elif first[-1] not in self._gangs:
                self._queue.take(first[-1])
            else:
                return first
        return None

    def _leave_out(self) -> None:
        """Remove all buckets that are short again of what they watch, in one comparison."""
        self._looked_at = self.totals.version
        has_room = {bucket.number for bucket in self._queue.blocked.with_room(self.totals)}
        left = [one for one in self._woken if not one[2].watches or one[1] in has_room]
        self._woken = left
        heapify(self._woken)

    def _is_short(self, bucket: Bucket) -> bool:
        """Whether a bucket has too few slots; if so, it watches them from now on."""
        short = self._short_of(bucket)
        if short:
            self._queue.blocked.watch(bucket, short)
        return bool(short)

    def _short_of(self, bucket: Bucket) -> list[tuple[int, int]] | None:
        """Return what a bucket is short of; empty: nothing; None: it has no tallies."""
        known = self._known.get(bucket)
        if known is None or known[0] != self.totals.version:
            short = self._queue.blocked.lacks(bucket, self.totals, self._steps)
            known = self._known[bucket] = self.totals.version, short
        return known[1]
