"""Gangs that wait for a decision, for room, or for the end of a back-off.

In: touched gangs, grown nodes, the time. Out: the gangs to try now, in order. Called by
``scheduler``. A gang is in at most one of the three places; one with nothing to place is in none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quorate.core.model import GangKey
from quorate.core.queue.ordering import OrderKey, order_key
from quorate.core.queue.requeue import Blocked
from quorate.core.state.encoding import PodClass
from quorate.core.state.gangs import GangEntry


class Queue:
    """Who is ready, who is blocked, who backs off."""

    def __init__(self) -> None:
        self.ready: set[GangKey] = set()
        self.blocked = Blocked()
        self.backing_off: dict[GangKey, float] = {}
        self.alarms: dict[GangKey, float] = {}
        """When to try a blocked gang again though no room grows: a node is avoided no more."""
        self._ranked: list[OrderKey] = []
        """Where ready gangs stand that an earlier decision did not come to, the first one last."""
        self._ranks: dict[GangKey, OrderKey] = {}
        """The ranks of those to which nothing happened since."""

    def make_ready(self, keys: Iterable[GangKey]) -> None:
        """Try these gangs at the next decision: something happened that could help them."""
        for key in keys:
            self.blocked.discard(key)
            self.backing_off.pop(key, None)
            self.alarms.pop(key, None)
            self._ranks.pop(key, None)
            self.ready.add(key)

    def room_grew(self, could_help: Callable[[PodClass, int | None], bool]) -> None:
        """Wake the blocked gangs that the change could help, by their classes."""
        self.make_ready(self.blocked.woken_by(could_help))

    def time_passed(self, now_s: float) -> None:
        """Wake the gangs whose back-off is over."""
        for due in (self.backing_off, self.alarms):
            self.make_ready([key for key, due_s in due.items() if due_s <= now_s])

    def take_ready(self, gangs: dict[GangKey, GangEntry]) -> Iterator[GangEntry]:
        """Yield the ready gangs that still exist, in order; one that was yielded is ready no more.

        Whoever stops early leaves the rest ready, and in their order: it is not found out anew.
        """
        ranks = [order_key(gangs[key]) for key in self.ready - self._ranks.keys() if key in gangs]
        self._ranks.update((rank[-1], rank) for rank in ranks)
        self.ready.intersection_update(self._ranks)
        self._ranked = sorted(self._ranked + ranks, reverse=True)
        while self._ranked:
            rank = self._ranked.pop()
            key = rank[-1]
            if self._ranks.get(key) is not rank:
                continue  # something happened to the gang since: it was ranked anew
            del self._ranks[key]
            self.ready.discard(key)
            if key in gangs:
                yield gangs[key]

    def block(self, key: GangKey, classes: Iterable[PodClass], priority: int | None = None) -> None:
        """Leave the gang alone until room for one of its classes grows; see ``Blocked.add``."""
        self.blocked.add(key, classes, priority)

    def back_off(self, key: GangKey, until_s: float) -> None:
        """Leave the gang alone until then."""
        self.backing_off[key] = until_s
