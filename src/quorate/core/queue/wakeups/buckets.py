"""Blocked gangs by what they ask for: buckets of equal demand, and in them the likes.

A bucket asks for so many pods of such shapes; whether there may be room for that is one question
for all its gangs (``short_of``). Its likes are gangs that no rule tells apart: where one of them
fails all do. So what is known of one gang is known of all its likes.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import GangKey
from quorate.core.queue.ordering import OrderKey
from quorate.core.queue.totals.tallies import Tally

UNWITHHELD = 2**31
"""Stands for the priority of gangs that have room, or a promise, of their own: see ``Withheld``."""


Least = tuple[tuple[int, int], ...]
"""Tasks by their numbers, and how many more members each needs at once."""


class Likeness(NamedTuple):
    """All that decides whether a gang can be placed, besides the nodes and what runs there.

    ``classes`` are ``(class, count)`` of the waiting pods, by class id. At least ``need`` of them
    have to be placed, or (0) any, and of some tasks the ``least`` that they need. Pods that may
    make others leave have their priority as ``level``. ``gate`` is what minResources still ask
    for. A gang with room of its own, or one that must not use some nodes, has no likes: it is
    ``alone``.
    """

    classes: tuple[tuple[PodClass, int], ...]
    need: int
    priority: int
    level: int | None = None
    least: Least = ()
    gate: tuple[tuple[str, int], ...] = ()
    alone: GangKey | None = None


BucketKey = tuple[tuple[tuple[int, int], ...], int, int, int | None, GangKey | None]


def short_of(counts: list[int], need: int, slots: list[int]) -> list[tuple[int, int]]:
    """Return which slots are short for ``need`` of so many pods (0: any); none if none may be.

    A result is ``(place, threshold)``: while all these slots are below their thresholds there is
    too little room. So one place is enough whose class alone is short. If only the sum is, one of
    the places that could add to it has to rise by its share of what is missing.
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


class Likes:
    """Gangs of one likeness, in the order of the queue.

    ``is_tried``: one of them was tried in vain, and nothing happened since that could help.
    ``failed_in`` is the turn of that. ``watches`` are those on room for its classes, by number;
    ``interests`` is what else could help. ``noted`` is the gang that its bucket thinks is first.
    ``number`` tells likes apart.
    """

    __slots__ = (
        "bucket",
        "failed_in",
        "interests",
        "is_tried",
        "likeness",
        "live",
        "looks_further",
        "noted",
        "number",
        "ordered",
        "sums",
        "watches",
    )

    def __init__(self, number: int, likeness: Likeness, bucket: Bucket) -> None:
        self.number = number
        self.likeness = likeness
        self.bucket = bucket
        self.live: dict[GangKey, OrderKey] = {}
        self.ordered: list[OrderKey] = []
        """A heap; some of it is not live any more."""
        self.noted: OrderKey | None = None
        self.is_tried = False
        self.failed_in = -1
        self.looks_further = False
        """Whether more decides than room and attributes of nodes."""
        self.watches: list[tuple[int, Tally]] = []
        self.interests: tuple[object, ...] = ()
        self.sums: list[int] = []
        """Watches on free room in all, where minResources are short."""

    def add(self, order: OrderKey) -> None:
        """Add a gang; its key is the last part of its order key."""
        self.live[order[-1]] = order
        heappush(self.ordered, order)

    def head(self) -> OrderKey | None:
        """Return the first gang; None when there is none."""
        ordered = self.ordered
        while ordered and self.live.get(ordered[0][-1]) != ordered[0]:
            heappop(ordered)
        return ordered[0] if ordered else None


class Bucket:
    """Gangs that ask for as many pods of the same shapes, at one priority.

    ``classes`` stand for the shapes. ``tallies`` are theirs, None where not asked for yet.
    ``watches`` are those on slots that it is short of, by number. ``number`` tells buckets apart.
    """

    __slots__ = (
        "_heads",
        "classes",
        "counts",
        "first",
        "first_likes",
        "is_under_way",
        "is_unwatched",
        "key",
        "level",
        "likes",
        "need",
        "news_heard",
        "number",
        "priority",
        "short",
        "tallies",
        "watches",
    )

    def __init__(self, number: int, key: BucketKey, likeness: Likeness) -> None:
        self.number = number
        self.key = key
        first = {pod_class.base: pod_class for pod_class, _ in reversed(likeness.classes)}
        self.classes = [first[base] for base, _ in key[0]]
        self.counts = [count for _, count in key[0]]
        self.need = likeness.need
        self.level = likeness.level
        self.priority = likeness.priority if likeness.alone is None else UNWITHHELD
        self.likes: dict[Likes, None] = {}
        self.first: OrderKey | None = None
        """The first gang of likes that were not tried in vain; None when there is none."""
        self.first_likes: Likes | None = None
        self._heads: list[tuple[OrderKey, int, Likes]] = []
        """A heap of the first gangs of likes; some are not that any more."""
        self.tallies: list[Tally | None] = [None] * len(self.classes)
        self.watches: list[tuple[int, Tally]] = []
        self.short: list[tuple[int, int]] = []
        """What it watches: places of classes, and their thresholds."""
        self.is_under_way = False
        """Whether the steps were over before all its gangs could be tried."""
        self.news_heard = -1
        """Of which news its gangs were tried last, if it has no tallies."""
        self.is_unwatched = False
        """Whether there are too many classes for tallies of its own."""

    def refresh(self, likes: Likes | None = None) -> None:
        """Find out which gang is first; ``likes`` are those of which another one may be."""
        if likes is not None and not likes.is_tried:
            head = likes.head()
            if head is not None and head != likes.noted:
                likes.noted = head
                heappush(self._heads, (head, likes.number, likes))
        while self._heads:
            order, _, first = self._heads[0]
            if not first.is_tried and first.head() == order:
                self.first, self.first_likes = order, first
                return
            heappop(self._heads)
            if first.noted == order:
                first.noted = None
        self.first = self.first_likes = None


def bucket_key(likeness: Likeness) -> BucketKey:
    """Return which bucket gangs of this likeness are in."""
    counts: dict[int, int] = {}
    for pod_class, count in likeness.classes:
        counts[pod_class.base] = counts.get(pod_class.base, 0) + count
    asked = tuple(sorted(counts.items()))
    return asked, likeness.need, likeness.priority, likeness.level, likeness.alone
