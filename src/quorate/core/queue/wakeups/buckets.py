"""Blocked gangs by demand: buckets of equal demand, and within each bucket groups of alike gangs.

Used by ``blocked`` and ``line``. The gangs of a bucket need the same numbers of pods of the same
specs, so one check of slots (``short_of``) serves all of them. A group has gangs that no rule
distinguishes: if one of them fails, all do, so each result holds for all of them.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from quorate.core.cluster.gangs.tasks import TaskMinima
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import GangKey
from quorate.core.queue.ready import OrderKey
from quorate.core.queue.totals.tallies import Tally

UNWITHHELD = 2**31
"""The priority, in ``Withheld``, of gangs with a reservation or promise of their own: nothing is
withheld from them."""


class GangClass(NamedTuple):
    """All that decides whether a gang fits, apart from the nodes and the pods on them.

    ``classes`` are ``(class, count)`` of the waiting pods, by class id. ``need`` of them have to be
    placed at least (0: any one), and ``task_minima`` of some tasks. ``level`` is the priority of
    pods that may preempt, else None. ``gate`` is minResources, while they hold the gang back.
    ``alone`` is the key of a gang that is like no other: it has room of its own, or avoids nodes.
    """

    classes: tuple[tuple[PodClass, int], ...]
    need: int
    priority: int
    level: int | None = None
    task_minima: TaskMinima = ()
    gate: tuple[tuple[str, int], ...] = ()
    alone: GangKey | None = None


BucketKey = tuple[tuple[tuple[int, int], ...], int, int, int | None, GangKey | None]


def short_of(counts: list[int], need: int, slots: list[int]) -> list[tuple[int, int]]:
    """Return the places with too few slots for ``need`` of ``counts`` pods (0: any one), or none.

    Each result is ``(place, threshold)``: as long as all these places are below their thresholds,
    the room is too small. If one class is short on its own, its place suffices. If only the sum is
    short, at least one place has to rise by an equal share of what is missing.
    """
    spare = sum(counts) - need
    for place, (count, there) in enumerate(zip(counts, slots, strict=True)):
        if there < count - spare:
            return [(place, count - spare)]
    missing = max(need, 1) - sum(map(min, counts, slots))
    if missing <= 0:
        return []
    may_rise = [place for place, count in enumerate(counts) if slots[place] < count]
    share = -(-missing // len(may_rise))
    return [
        (place, slots[place] + share) for place in may_rise if counts[place] - slots[place] >= share
    ]


class GangGroup:
    """Gangs of one gang class, in the order of the queue.

    ``is_tried``: one of them was tried in vain, and no change since then may help.
    ``failed_in`` is the turn of that try. ``watches`` are watches on room for its classes;
    ``interests`` are the other changes that may help. ``noted`` is the first gang as its bucket
    has recorded it. ``number`` is unique.
    """

    __slots__ = (
        "bucket",
        "failed_in",
        "gang_class",
        "interests",
        "is_tried",
        "live",
        "looks_further",
        "noted",
        "number",
        "ordered",
        "sums",
        "watches",
    )

    def __init__(self, number: int, gang_class: GangClass, bucket: Bucket) -> None:
        self.number = number
        self.gang_class = gang_class
        self.bucket = bucket
        self.live: dict[GangKey, OrderKey] = {}
        self.ordered: list[OrderKey] = []
        """A heap, with gangs that are no longer live."""
        self.noted: OrderKey | None = None
        self.is_tried = False
        self.failed_in = -1
        self.looks_further = False
        """Whether rules read more than room and attributes of nodes."""
        self.watches: list[tuple[int, Tally]] = []
        self.interests: tuple[object, ...] = ()
        self.sums: list[int] = []
        """Watches on free room summed over all nodes, while minResources are not free."""

    def add(self, order: OrderKey) -> None:
        """Add a gang; its key is the last part of its order key."""
        self.live[order[-1]] = order
        heappush(self.ordered, order)

    def head(self) -> OrderKey | None:
        """Return the order key of the first gang; None when there is none."""
        ordered = self.ordered
        while ordered and self.live.get(ordered[0][-1]) != ordered[0]:
            heappop(ordered)
        return ordered[0] if ordered else None


class Bucket:
    """Gangs that need the same numbers of pods of the same specs, at one priority.

    ``classes`` has one class for each spec, ``tallies`` their tallies (None: not made yet).
    ``watches`` are watches on the slots that the bucket is short of. ``number`` is unique.
    """

    __slots__ = (
        "_heads",
        "classes",
        "counts",
        "first",
        "first_group",
        "groups",
        "is_under_way",
        "is_unwatched",
        "key",
        "level",
        "need",
        "news_heard",
        "number",
        "priority",
        "short",
        "tallies",
        "watches",
    )

    def __init__(self, number: int, key: BucketKey, gang_class: GangClass) -> None:
        self.number = number
        self.key = key
        first = {pod_class.base: pod_class for pod_class, _ in reversed(gang_class.classes)}
        self.classes = [first[base] for base, _ in key[0]]
        self.counts = [count for _, count in key[0]]
        self.need = gang_class.need
        self.level = gang_class.level
        self.priority = gang_class.priority if gang_class.alone is None else UNWITHHELD
        self.groups: dict[GangGroup, None] = {}
        self.first: OrderKey | None = None
        """The first gang of all groups that are not tried; None when there is none."""
        self.first_group: GangGroup | None = None
        self._heads: list[tuple[OrderKey, int, GangGroup]] = []
        """A heap of the first gangs of groups, with outdated entries."""
        self.tallies: list[Tally | None] = [None] * len(self.classes)
        self.watches: list[tuple[int, Tally]] = []
        self.short: list[tuple[int, int]] = []
        """What it watches: places of classes, and their thresholds."""
        self.is_under_way = False
        """Whether the steps ran out before all its gangs were tried."""
        self.news_heard = -1
        """The number of the news after which its gangs were last tried, if it has no tallies."""
        self.is_unwatched = False
        """Whether there are too many classes for tallies of its own."""

    def refresh(self, group: GangGroup | None = None) -> None:
        """Update ``first``; ``group`` is one whose first gang may have changed."""
        if group is not None and not group.is_tried:
            head = group.head()
            if head is not None and head != group.noted:
                group.noted = head
                heappush(self._heads, (head, group.number, group))
        while self._heads:
            order, _, first = self._heads[0]
            if not first.is_tried and first.head() == order:
                self.first, self.first_group = order, first
                return
            heappop(self._heads)
            if first.noted == order:
                first.noted = None
        self.first = self.first_group = None


def bucket_key(gang_class: GangClass) -> BucketKey:
    """Return the key of the bucket for gangs of this gang class."""
    counts: dict[int, int] = {}
    for pod_class, count in gang_class.classes:
        counts[pod_class.base] = counts.get(pod_class.base, 0) + count
    asked = tuple(sorted(counts.items()))
    return asked, gang_class.need, gang_class.priority, gang_class.level, gang_class.alone
