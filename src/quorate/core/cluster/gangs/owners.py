"""What is known of owners, as far as they were looked up; kept while they have members here.

Owned by ``cluster.cluster``; read by ``queue.gate`` to explain why a gang has too few members, to
hold pods whose owner names their gang, and to tell the runs of a CronJob apart. An owner is looked
up again for its next gang, so it can be forgotten with its last pod.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey, Meant, Owner, policy
from quorate.core.model.changes import Brake, OwnerChanged

_Place = tuple[str, Owner]
"""An owner and its namespace, which is that of its pods' gangs."""


class OwnerFacts(NamedTuple):
    """What ``OwnerChanged`` says of an owner, in its order; None: that is unknown."""

    makes: int | None
    cron_job: str | None
    meant: Meant | None = None
    remedy: str = ""
    brake: Brake = Brake.NONE
    completions: int | None = None
    refused: str = ""
    first: int | None = 0
    gathered: str = ""

    @classmethod
    def of(cls, change: OwnerChanged) -> OwnerFacts:
        """Return what a change says."""
        _, _, *found = msgspec.structs.astuple(change)
        return cls(*found)

    @property
    def makes_together(self) -> int | None:
        """How many pods it makes, though none of them runs; None: that is unknown."""
        if self.makes is None or self.brake is Brake.NONE:
            return self.makes
        return 0 if self.brake is Brake.SUSPENDED else min(self.makes, 1)

    @property
    def holds(self) -> bool:
        """Whether it says what its pods of no gang have to wait for."""
        return bool(self.meant or self.gathered)


_UNREAD = OwnerFacts(None, None)


class Owners:
    """Owners of the members of gangs."""

    def __init__(self) -> None:
        self.known: dict[_Place, OwnerFacts] = {}
        self.unread: dict[_Place, int] = {}
        """How many times in a row an owner could not be read."""
        self.lacking = Lacking()
        self._gangs: dict[_Place, dict[GangKey, int]] = {}
        """By owner, its gangs and the number of its members in each."""

    def note(self, namespace: str, owner: Owner, facts: OwnerFacts) -> Collection[GangKey]:
        """Note what was found out; return the owner's gangs if it is new, or asked for again."""
        place = namespace, owner
        gangs, before = self._gangs.get(place), self.known.get(place)
        if gangs is None or (before == facts and facts.cron_job is not None):
            return ()
        if facts.cron_job is not None:
            self.unread.pop(place, None)
        else:
            self.unread[place] = self.unread.get(place, 0) + 1
            if before is not None and not facts.holds:
                facts = facts._replace(
                    meant=before.meant, gathered=before.gathered, remedy=before.remedy
                )
        self.known[place] = facts
        return gangs.keys()

    def makes(self, namespace: str, owner: Owner) -> int | None:
        """Return how many pods an owner makes, though none runs; None: that is unknown."""
        facts = self.known.get((namespace, owner))
        return facts.makes_together if facts is not None else None

    def cron_job_of(self, namespace: str, owner: Owner) -> str | None:
        """Return the name of the CronJob that made an owner, "" for none; None: that is unknown."""
        facts = self.known.get((namespace, owner))
        return facts.cron_job if facts is not None else None

    def of_single(
        self, namespace: str, owner: Owner, *, may_be_gathered: bool
    ) -> OwnerFacts | None:
        """Return what holds pods of no gang: a gang that their owner names, or that may name one.

        ``may_be_gathered``: somebody may be about to give them a gang. The facts hold nothing while
        the owner is to be read for that; None: nothing holds them.
        """
        if not (self.known or self.lacking or may_be_gathered):
            return None
        place = namespace, owner
        facts = self.known.get(place, _UNREAD)
        if facts.meant is not None or (facts.gathered and may_be_gathered):
            return facts
        is_awaited = facts.cron_job is None and self.unread.get(place, 0) < policy.OWNER_READS_MAX
        is_asked = may_be_gathered or bool(self.lacking.of(namespace))
        return facts if is_awaited and is_asked else None

    def count(self, gang: GangEntry | None, owner: Owner | None, times: int) -> None:
        """Add ``times`` members of a gang (negative: fewer) to the count of their owner."""
        if gang is None:
            return
        if not gang.key.is_single:
            self.lacking.note(gang)
        if owner is None:
            return
        place = gang.key.namespace, owner
        gangs = self._gangs.setdefault(place, {})
        if gang.key not in gangs and place in self.known:
            gang.runs.note_first(owner, self.known[place].first)
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
            if gang.key not in self._gangs.get(place, ()):
                gang.runs.note_first(owner, 0)
            if place not in self._gangs:
                self.known.pop(place, None)
                self.unread.pop(place, None)


class Lacking:
    """Gangs with fewer members than min, wherever these are."""

    __slots__ = ("_gangs",)

    def __init__(self) -> None:
        self._gangs: dict[str, set[GangKey]] = {}

    def __bool__(self) -> bool:
        return bool(self._gangs)

    def note(self, gang: GangEntry) -> None:
        """Take a gang's newest min and number of members. A min of 1 lacks nobody."""
        key, least = gang.key, gang.stated_min
        there = self._gangs.get(key.namespace)
        if least > max(1, len(gang.members)) and not gang.is_empty:
            if there is None:
                there = self._gangs[key.namespace] = set()
            there.add(key)
        elif there is not None:
            there.discard(key)
            if not there:
                del self._gangs[key.namespace]

    def of(self, namespace: str) -> set[GangKey]:
        """Return the gangs of a namespace that lack members."""
        return self._gangs.get(namespace, set())
