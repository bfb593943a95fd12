"""Gangs that wait for a decision, for room, for the end of a search or of a back-off.

In: touched gangs, the time. Out: where each gang is. Called by ``planning`` and ``waking``. A gang
is in at most one of the four places; one with nothing to place is in none.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.cluster.deadlines import Alarms
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey
from quorate.core.queue.ordering import order_key
from quorate.core.queue.ready import Ready
from quorate.core.queue.rounds import Rounds
from quorate.core.queue.wakeups.blocked import Blocked
from quorate.core.queue.wakeups.buckets import Likeness, Likes


class Queue:
    """Who is ready, who is blocked, who backs off."""

    def __init__(self) -> None:
        self.ready = Ready()
        self.blocked = Blocked()
        self.backing_off: Alarms[GangKey] = Alarms()
        self.alarms: Alarms[GangKey] = Alarms()
        """When to try a blocked gang again though no room grows: a node is avoided no more."""
        self.searching: dict[GangKey, None] = {}
        """Gangs for which a search goes on, in the order in which they came to it."""
        self.rounds = Rounds()
        """Goes over the blocked gangs when the words of all are others."""

    def make_ready(self, keys: Iterable[GangKey]) -> None:
        """Try these gangs at the next decision: something happened that could help them."""
        for key in keys:
            if key in self.searching:
                continue  # it is looked at as it is then, and has not to wait anew for its turn
            self.take(key)
            self.backing_off.discard(key)
            self.ready.add(key)

    def time_passed(self, now_s: float) -> None:
        """Wake the gangs whose back-off is over."""
        for due in (self.backing_off, self.alarms):
            self.make_ready(due.take_due(now_s))

    def block(self, gang: GangEntry, likeness: Likeness) -> Likes:
        """Leave the gang alone until something can give it what it asks for; return its likes."""
        self.rounds.add(gang.key)
        return self.blocked.add(order_key(gang), likeness)

    def take(self, key: GangKey) -> None:
        """Take a gang out that is blocked or searched for, to be tried now."""
        self.blocked.discard(key)
        self.searching.pop(key, None)
        self.alarms.discard(key)
        self.rounds.discard(key)

    def forget(self, key: GangKey) -> None:
        """Forget a gang."""
        self.take(key)
        self.backing_off.discard(key)
        self.ready.discard(key)

    def search(self, key: GangKey) -> None:
        """Go on with the gang's search in later turns, after those that are under way."""
        self.searching[key] = None

    def back_off(self, key: GangKey, until_s: float) -> None:
        """Leave the gang alone until then."""
        self.backing_off.set(key, until_s)

    def next_s(self) -> float | None:
        """Return when time alone wakes a gang; None when it wakes none."""
        due = [one.next_s() for one in (self.backing_off, self.alarms)]
        return min((due_s for due_s in due if due_s is not None), default=None)
