"""What is known of owners, as far as they were looked up; kept while they have members here.

Owned by ``cluster.cluster``; read by ``queue.gate`` to explain why a gang has too few members, and
to tell the runs of a CronJob apart. An owner is looked up again for its next gang, so it can be
forgotten with its last pod.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey, Owner

_Place = tuple[str, Owner]
"""An owner and its namespace, which is that of its pods' gangs."""


class OwnerFacts(NamedTuple):
    """How many pods an owner makes, and the CronJob that made it; None: that is unknown."""

    makes: int | None
    cron_job: str | None


class Owners:
    """Owners of the members of gangs."""

    def __init__(self) -> None:
        self.known: dict[_Place, OwnerFacts] = {}
        self._gangs: dict[_Place, dict[GangKey, int]] = {}
        """By owner, its gangs and the number of its members in each."""

    def note(self, namespace: str, owner: Owner, facts: OwnerFacts) -> Collection[GangKey]:
        """Note what was found out; return the owner's gangs if it is new, or asked for again."""
        place = namespace, owner
        gangs = self._gangs.get(place)
        if gangs is None or (self.known.get(place) == facts and facts.cron_job is not None):
            return ()
        self.known[place] = facts
        return gangs.keys()

    def makes(self, namespace: str, owner: Owner) -> int | None:
        """Return how many pods an owner makes; None: that is unknown."""
        facts = self.known.get((namespace, owner))
        return facts.makes if facts is not None else None

    def cron_job_of(self, namespace: str, owner: Owner) -> str | None:
        """Return the name of the CronJob that made an owner, "" for none; None: that is unknown."""
        facts = self.known.get((namespace, owner))
        return facts.cron_job if facts is not None else None

    def count(self, gang: GangEntry | None, owner: Owner | None, times: int) -> None:
        """Add ``times`` members of a gang (negative: fewer) to the count of their owner."""
        if gang is None or owner is None:
            return
        place = gang.key.namespace, owner
        gangs = self._gangs.setdefault(place, {})
        gangs[gang.key] = gangs.get(gang.key, 0) + times
        if not gangs[gang.key]:
            del gangs[gang.key]
            if not gangs:
                del self._gangs[place]

    def note_member_gone(self, gang: GangEntry | None, owner: Owner | None) -> None:
        """Forget an owner that has no members left, after one of the gang's members left it.

        ``count`` cannot do that: a member that changes is removed and counted again.
        """
        if gang is not None and owner is not None:
            place = gang.key.namespace, owner
            if place not in self._gangs:
                self.known.pop(place, None)
