"""Gangs that wait for a turn, for room, for a search to finish or for a back-off to end.

In: touched gangs, the time. Out: the place of each gang. Called by ``planning``, ``waking`` and
``advancing``. A gang is in at most one of the four places; one with nothing to place is in none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from quorate.core.cluster.alarms import Alarms
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey, policy
from quorate.core.queue.ready import Ready, order_key
from quorate.core.queue.wakeups.blocked import Blocked
from quorate.core.queue.wakeups.buckets import GangClass, GangGroup


class Rounds:
    """The gangs that rounds visit, the least recently visited first."""

    def __init__(self) -> None:
        self._places: dict[GangKey, int] = {}
        self._circle: deque[tuple[GangKey, int]] = deque()
        """Gangs with their places; entries of gangs that left or moved are outdated."""
        self._made = 0
        self._left = 0

    @property
    def is_under_way(self) -> bool:
        """Whether this round has gangs left to visit."""
        return self._left > 0

    def add(self, key: GangKey) -> None:
        """Add a gang whose message is up to date; rounds visit it last."""
        self._made += 1
        self._places[key] = self._made
        self._circle.append((key, self._made))
        if len(self._circle) > 2 * len(self._places) + policy.STALE_FEW:
            self._circle = deque(one for one in self._circle if self._places.get(one[0]) == one[1])
            self._left = min(self._left, len(self._circle))

    def discard(self, key: GangKey) -> None:
        """Remove a gang from rounds."""
        self._places.pop(key, None)

    def begin(self) -> None:
        """Begin a round: visit each gang once."""
        self._left = len(self._circle)

    def take(self, most: int) -> list[GangKey]:
        """Return the next gangs of the round, at most ``most``."""
        found: list[GangKey] = []
        while self._left > 0 and len(found) < most:
            self._left -= 1
            key, place = self._circle.popleft()
            if self._places.get(key) == place:
                self._circle.append((key, place))
                found.append(key)
        return found


class Queue:
    """The gangs that are ready, blocked, searched for, or backing off."""

    def __init__(self) -> None:
        self.ready = Ready()
        self.blocked = Blocked()
        self.backing_off: Alarms[GangKey] = Alarms()
        self.alarms: Alarms[GangKey] = Alarms()
        """When to try a blocked gang again without news: it then no longer avoids a node."""
        self.searching: dict[GangKey, None] = {}
        """Gangs whose searches are under way, in the order in which these began."""
        self.rounds = Rounds()
        """Visits the blocked gangs when the messages of all have changed."""

    def make_ready(self, keys: Iterable[GangKey]) -> None:
        """Have these gangs tried in the next turn: a change may help them."""
        for key in keys:
            if key in self.searching:
                continue  # its search will see the change, and it keeps its place among searches
            self.take(key)
            self.backing_off.discard(key)
            self.ready.add(key)

    def time_passed(self, now_s: float) -> None:
        """Wake the gangs whose back-off or avoidance ends by ``now_s`` (epoch seconds)."""
        for due in (self.backing_off, self.alarms):
            self.make_ready(due.take_due(now_s))

    def block(self, gang: GangEntry, gang_class: GangClass) -> GangGroup:
        """Block a gang until a change may give it what it needs; return the gangs of its class."""
        self.rounds.add(gang.key)
        return self.blocked.add(order_key(gang), gang_class)

    def take(self, key: GangKey) -> None:
        """Remove a gang from the blocked and the searched ones, to be tried now."""
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
        """Continue the gang's search in later turns, after those that began earlier."""
        self.searching[key] = None

    def back_off(self, key: GangKey, until_s: float) -> None:
        """Leave the gang alone until ``until_s`` (epoch seconds)."""
        self.backing_off.set(key, until_s)

    def next_s(self) -> float | None:
        """Return when the next back-off or avoidance ends (epoch seconds); None: there is none."""
        due = [one.next_s() for one in (self.backing_off, self.alarms)]
        return min((due_s for due_s in due if due_s is not None), default=None)
