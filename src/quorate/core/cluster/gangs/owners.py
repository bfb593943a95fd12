"""How many pods owners make, as far as they were looked up; kept while they have members here.

Owned by ``cluster.cluster``; read by ``queue.gate`` to explain why a gang has too few members. An
owner is looked up again for its next gang, so it can be forgotten with its last pod.
"""

from __future__ import annotations

from collections.abc import Collection

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey, Owner

_Place = tuple[str, Owner]
"""An owner and its namespace, which is that of its pods' gangs."""


class Owners:
    """Owners of the members of gangs."""

    def __init__(self) -> None:
        self.makes: dict[_Place, int | None] = {}
        """How many pods each owner makes; None: that is unknown."""
        self._gangs: dict[_Place, dict[GangKey, int]] = {}
        """By owner, its gangs and the number of its members in each."""

    def note_replicas(self, namespace: str, owner: Owner, makes: int | None) -> Collection[GangKey]:
        """Note how many pods an owner makes; return its gangs if that has changed."""
        place = namespace, owner
        gangs = self._gangs.get(place)
        if gangs is None or (place in self.makes and self.makes[place] == makes):
            return ()
        self.makes[place] = makes
        return gangs.keys()

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
                self.makes.pop(place, None)
