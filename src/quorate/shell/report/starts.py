"""The Event that says that a gang has started, about its object. Called by ``reporter``.

Each member has an Event of its own when it is bound; this one is for those who look at the object.
In: binds, and gangs that are reported. Out: what to say, once for each start that we made.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey, Pod
from quorate.core.words.counting import counted
from quorate.shell.report.reservations import object_of

STARTED = "GangStarted"


class StartEvent(NamedTuple):
    """An Event to write: a member, what to say, and the gang's object."""

    pod: Pod
    note: str
    regarding: dict[str, str]


class Starts:
    """Counts the members that we bound, until their gang has started."""

    def __init__(self) -> None:
        self._bound: dict[GangKey, int] = {}

    def bound(self, key: GangKey) -> None:
        """Count one more member with a node."""
        if not key.is_single:
            self._bound[key] = self._bound.get(key, 0) + 1

    def news(self, gang: GangEntry) -> StartEvent | None:
        """Return the Event to write now, if any.

        There is none when less than a quorum was bound since the last: these were replacements, or
        another leader began the start.
        """
        if not gang.started or gang.assumed or gang.key not in self._bound:
            return None
        least, bound = max(1, gang.min_count), self._bound.pop(gang.key)
        regarding = object_of(gang)
        member = next((entry.pod for entry in gang.members.values() if entry.node), None)
        if bound < least or regarding is None or member is None:
            return None
        of_all = counted(len(gang.members), "member", "has", "have")
        note = f"{gang.bound} of {of_all} a node; {least} had to start"
        return StartEvent(member, f"{note} together" if least > 1 else note, regarding)

    def forget(self, key: GangKey) -> None:
        """Forget a gang that is gone."""
        self._bound.pop(key, None)
