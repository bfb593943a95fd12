"""Which gangs lack members, by namespace. Owned by ``owners``.

In: gangs whose members or object changed. Out: whether pods of no gang may be meant for one of
them: only then it is worth a request to ask their owner (ADR 32). Each change costs the same.
"""

from __future__ import annotations

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey


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
