"""What owners of pods make, as far as they were asked: remembered while they have members here.

Owned by ``cluster.cluster``; read where it is said why a gang has too few members. An owner is
asked again for the next gang, so nothing has to be kept of one whose pods are gone.
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
        """How many pods each makes; None when that cannot be told."""
        self._gangs: dict[_Place, dict[GangKey, int]] = {}
        """Gangs by the owners of their members, and how many of these each has."""

    def said(self, namespace: str, owner: Owner, makes: int | None) -> Collection[GangKey]:
        """Note how many pods an owner makes; return the gangs to which that is news."""
        place = namespace, owner
        gangs = self._gangs.get(place)
        if gangs is None or (place in self.makes and self.makes[place] == makes):
            return ()
        self.makes[place] = makes
        return gangs.keys()

    def count(self, gang: GangEntry | None, owner: Owner | None, times: int) -> None:
        """Count a member for its owner."""
        if gang is None or owner is None:
            return
        place = gang.key.namespace, owner
        gangs = self._gangs.setdefault(place, {})
        gangs[gang.key] = gangs.get(gang.key, 0) + times
        if not gangs[gang.key]:
            del gangs[gang.key]
            if not gangs:
                del self._gangs[place]

    def left(self, gang: GangEntry | None, owner: Owner | None) -> None:
        """Forget what an owner makes if it has no member: one of the gang was its, and is not.

        Not as soon as none is counted: a member that changes is counted anew.
        """
        if gang is not None and owner is not None:
            place = gang.key.namespace, owner
            if place not in self._gangs:
                self.makes.pop(place, None)
