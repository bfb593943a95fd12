"""Gangs that did not fit, and the changes that may help each of them. No timer wakes them.

In: gangs with their gang classes; tallies, rows and interests that changed. Out: the groups and
buckets to try again. Called by ``waking`` and ``line``. A bucket with too few slots in all watches
a class that is short, and costs nothing until that class has enough. A bucket with enough slots may
still fail: room is reserved or promised, members exclude one another, or a rule reads more than
room. Its groups then wait for a row that takes more pods of their classes, or for an interest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.model import GangKey
from quorate.core.model.steps import Steps
from quorate.core.queue.ready import OrderKey
from quorate.core.queue.totals.cycle_totals import CycleTotals
from quorate.core.queue.totals.slots import SlotTotals
from quorate.core.queue.wakeups.buckets import (
    Bucket,
    BucketKey,
    GangClass,
    GangGroup,
    bucket_key,
    short_of,
)
from quorate.core.queue.wakeups.watches import Watches


class Blocked:
    """The blocked gangs, and what each of them waits for."""

    def __init__(self) -> None:
        self.slots = SlotTotals()
        self._group_of: dict[GangKey, GangGroup] = {}
        self._groups: dict[GangClass, GangGroup] = {}
        self._buckets: dict[BucketKey, Bucket] = {}
        self._open: dict[Bucket, None] = {}
        """Buckets that have to be looked at in the next turn."""
        self._by_totals: Watches[Bucket] = Watches()
        self._by_rows: Watches[GangGroup] = Watches()
        self._by_sums: Watches[GangGroup] = Watches()
        self._interested: dict[object, dict[GangGroup, None]] = {}
        self.unwatched: deque[Bucket] = deque()
        """Buckets without tallies, the least recently examined first; some have tallies again."""
        self.owed = 0
        """How many of these have to be examined because of news since their last turn."""
        self._news = 0
        self._emptied: list[GangGroup] = []
        self._moved = 0
        self._made = 0
        """The number of buckets and groups made so far; each gets the next number."""

    def __iter__(self) -> Iterator[GangKey]:
        """Iterate over the blocked gangs, the longest blocked first."""
        return iter(self._group_of)

    def __contains__(self, key: GangKey) -> bool:
        """Whether the gang is blocked."""
        return key in self._group_of

    def __len__(self) -> int:
        """Return how many gangs are blocked."""
        return len(self._group_of)

    @property
    def is_open(self) -> bool:
        """Whether there are buckets to examine in the next turn, even without news."""
        return bool(self._open)

    # Gangs

    def find(self, gang_class: GangClass) -> tuple[Bucket | None, GangGroup | None]:
        """Return the bucket and the group of a gang class; None for each that does not exist."""
        group = self._groups.get(gang_class)
        return group.bucket if group else self._buckets.get(bucket_key(gang_class)), group

    def add(self, order: OrderKey, gang_class: GangClass) -> GangGroup:
        """Block a gang, named by the last part of its order key; return the group it joins."""
        key: GangKey = order[-1]
        self.discard(key)
        group = self._groups.get(gang_class)
        if group is None:
            group = self._groups[gang_class] = GangGroup(
                self._number(), gang_class, self._bucket_of(gang_class)
            )
            group.bucket.groups[group] = None
        self._group_of[key] = group
        group.add(order)
        self._refresh(group)
        return group

    def _bucket_of(self, gang_class: GangClass) -> Bucket:
        place = bucket_key(gang_class)
        bucket = self._buckets.get(place)
        if bucket is None:
            bucket = self._buckets[place] = Bucket(self._number(), place, gang_class)
        return bucket

    def discard(self, key: GangKey) -> None:
        """Remove a gang, whether it is blocked or not."""
        group = self._group_of.pop(key, None)
        if group is None:
            return
        del group.live[key]
        group.bucket.refresh(group)
        if not group.live:
            self._emptied.append(group)

    def _refresh(self, group: GangGroup) -> None:
        """Open the bucket of a group that was not tried yet, so that a turn looks at it."""
        bucket = group.bucket
        bucket.refresh(group)
        if not (group.is_tried or bucket.watches or bucket.is_unwatched):
            self._open[bucket] = None

    def sweep(self) -> None:
        """Forget groups and buckets without gangs, at the end of a turn."""
        for group in self._emptied:
            bucket = group.bucket
            if group.live or group not in bucket.groups:
                continue
            self._forget(group)
            del bucket.groups[group], self._groups[group.gang_class]
            self.close_if_tried(bucket)
            if not bucket.groups:
                self._release(bucket)
                bucket.is_unwatched = False
                del self._buckets[bucket.key]
        self._emptied.clear()

    # Whether there may be room

    def lacks(
        self, bucket: Bucket, totals: CycleTotals, steps: Steps
    ) -> list[tuple[int, int]] | None:
        """Return what a bucket is short of, as ``short_of`` does; None: it has no tallies.

        Tallies are made one by one, until a class is found that is short on its own.
        """
        if bucket.is_unwatched:
            return None
        spare = sum(bucket.counts) - bucket.need
        slots = []
        for place, count in enumerate(bucket.counts):
            tally = bucket.tallies[place]
            if tally is None:
                tally = self.slots.add(bucket.classes[place], bucket.level, steps)
                if tally is None:
                    self._give_up_watching(bucket)
                    return None
                bucket.tallies[place] = tally
            slots.append(totals.of(tally, bucket.priority))
            if slots[-1] < count - spare:
                return [(place, count - spare)]
        return short_of(bucket.counts, bucket.need, slots)

    def watch(self, bucket: Bucket, short: list[tuple[int, int]]) -> None:
        """Leave a bucket alone until the slots of a class reach its threshold; see ``lacks``."""
        self._open.pop(bucket, None)
        for group in bucket.groups:
            if group.is_tried:  # slots are too few, so other reasons do not matter now
                self._forget(group)
                bucket.refresh(group)
        if bucket.short == short:
            return
        self._close(bucket)
        bucket.short = short
        for place, threshold in short:
            tally = bucket.tallies[place]
            assert tally is not None, "its slots were asked for"
            watch = self._by_totals.add(bucket, tally.index, threshold, bucket.priority)
            bucket.watches.append((watch, tally))

    def close_if_tried(self, bucket: Bucket) -> None:
        """Leave a bucket alone if all its groups were tried in vain."""
        if bucket.first is None:
            self._close(bucket)

    def opened(self) -> list[Bucket]:
        """Return the open buckets: no slots are known of them since they were last short."""
        return list(self._open)

    def with_room(self, totals: CycleTotals) -> list[Bucket]:
        """Return the buckets for which a watched class has reached its threshold."""
        if not len(self._by_totals):
            return []
        self._follow_moves()
        return list(dict.fromkeys(self._by_totals.reached(*totals.all())))

    def looked_at(self, bucket: Bucket) -> None:
        """Move an open bucket to the end, so that others come first if the steps run out."""
        del self._open[bucket]
        self._open[bucket] = None

    # Tried in vain

    def short_in_sum(self, group: GangGroup, place: int, wanted: int) -> None:
        """Leave a group alone until ``wanted`` of a resource is free on its nodes together.

        ``place`` is that of the sum in ``reached_in_sum``.
        """
        self._forget(group)
        group.is_tried = True
        group.sums.append(self._by_sums.add(group, place, wanted))
        group.bucket.refresh()
        self.close_if_tried(group.bucket)

    def failed(self, group: GangGroup, interests: tuple[object, ...]) -> None:
        """Leave a group alone until a row takes more of its classes, or an interest changes."""
        self._forget(group)
        group.is_tried, group.interests = True, interests
        for tally in group.bucket.tallies:
            if tally is not None:
                group.watches.append((self._by_rows.add(group, tally.index, 1), tally))
        for one in interests:
            self._interested.setdefault(one, {})[group] = None
        group.bucket.refresh()
        self.close_if_tried(group.bucket)
        self._note_served(group.bucket)

    def _note_served(self, bucket: Bucket) -> None:
        """Move a bucket that has just lost its tallies to the end: its gangs were just tried."""
        is_new = bool(self.unwatched) and self.unwatched[0] is bucket and bucket.news_heard < 0
        if is_new and bucket.is_unwatched and bucket.first is None:
            self.unwatched.rotate(-1)
            bucket.news_heard = self._news
            self.owed -= 1

    def retry(self, group: GangGroup) -> None:
        """Let a group be tried again if its bucket has enough slots."""
        self._forget(group)
        self._refresh(group)

    def reached(self, reached: Mask) -> list[GangGroup]:
        """Return the groups with a class for which room grew; ``reached`` is bool[tallies]."""
        self._follow_moves()
        if not reached.any():
            return []
        return list(dict.fromkeys(self._by_rows.reached(reached[None].astype(np.int64))))

    @property
    def looks_at_sums(self) -> bool:
        """Whether any group waits for free room on several nodes together."""
        return len(self._by_sums) > 0

    @property
    def sum_places(self) -> set[int]:
        """The places of the sums for which groups wait."""
        return self._by_sums.places

    def short_in_any_sum(self) -> list[GangGroup]:
        """Return the groups that wait for free room on several nodes together."""
        return [group for group in self._groups.values() if group.sums]

    def reached_in_sum(self, free: Ints) -> list[GangGroup]:
        """Return the groups for which enough is free; ``free`` is int64[places], sums."""
        return self._by_sums.reached(free[None])

    def interested_in(self, news: Iterable[object]) -> list[GangGroup]:
        """Return the groups that have one of these interests."""
        found: dict[GangGroup, None] = {}
        for one in news:
            found.update(self._interested.get(one, {}))
        return list(found)

    def note_news(self) -> None:
        """Note news: every bucket without tallies has to be examined again."""
        self._news += 1
        self.owed = len(self.unwatched)

    def next_unwatched(self) -> Bucket | None:
        """Take out the next bucket without tallies; None: it has tallies, or may have them now.

        The caller gives each bucket back with ``give_back``. All its groups are tried again, except
        in a bucket that is under way: it continues where the last turn ended.
        """
        self.owed -= 1
        bucket = self.unwatched.popleft()
        if not bucket.is_unwatched:
            return None
        bucket.is_unwatched = not self.slots.has_place_for(bucket.classes)
        if not (bucket.is_unwatched and bucket.is_under_way):
            bucket.news_heard = self._news
            for group in bucket.groups:
                self.retry(group)
        return bucket if bucket.is_unwatched else None

    def give_back(self, bucket: Bucket, *, was_served: bool) -> None:
        """Put back a bucket from ``next_unwatched``; if not served, it comes first again."""
        (self.unwatched.append if was_served else self.unwatched.appendleft)(bucket)
        bucket.is_under_way = not was_served
        self.owed += bucket.is_under_way or bucket.news_heard != self._news

    # Inside

    def _number(self) -> int:
        self._made += 1
        return self._made

    def _forget(self, group: GangGroup) -> None:
        """Forget that a group was tried, and remove its watches and interests."""
        group.is_tried = False
        for watch, _ in group.watches:
            self._by_rows.remove(watch)
        for one in group.interests:
            there = self._interested[one]
            there.pop(group, None)
            if not there:
                del self._interested[one]
        for watch in group.sums:
            self._by_sums.remove(watch)
        group.watches, group.interests, group.sums = [], (), []

    def _close(self, bucket: Bucket) -> None:
        self._open.pop(bucket, None)
        for watch, _ in bucket.watches:
            self._by_totals.remove(watch)
        bucket.watches.clear()
        bucket.short = []

    def _release(self, bucket: Bucket) -> None:
        for place, tally in enumerate(bucket.tallies):
            if tally is not None:
                self.slots.release(tally)
                bucket.tallies[place] = None

    def _give_up_watching(self, bucket: Bucket) -> None:
        self._close(bucket)
        self._release(bucket)
        bucket.is_unwatched = True
        self.unwatched.appendleft(bucket)
        bucket.is_under_way = False
        self.owed += 1

    def _follow_moves(self) -> None:
        """Update watches after tallies got other indices."""
        if self._moved == self.slots.moved:
            return
        self._moved = self.slots.moved
        for bucket in self._buckets.values():
            for watch, tally in bucket.watches:
                self._by_totals.move(watch, tally.index)
            for group in bucket.groups:
                for watch, tally in group.watches:
                    self._by_rows.move(watch, tally.index)
