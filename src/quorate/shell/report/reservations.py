"""Events about reservations: one when the reservations of a gang change, not one for each member.

In: a gang and its explanation. Out: the Event to write. Called by ``reporter``.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.reservations import Reservations
from quorate.core.model import GangKey, Pod
from quorate.dialects import by_name

RESERVED, NOT_RESERVED, RELEASED = "SlotHeld", "SlotNotHeld", "SlotReleased"


class ReservationEvent(NamedTuple):
    """An Event to write. ``pod`` is a member; ``regarding`` the gang's object, if it has one."""

    pod: Pod
    reason: str
    note: str
    regarding: dict[str, str] | None


class ReservationEvents:
    """Remembers the last Event about each gang."""

    def __init__(self) -> None:
        self._said: dict[GangKey, tuple[str, str]] = {}
        """Reason and message of the last Event about each gang."""

    def news(
        self, gang: GangEntry, held: str, reservations: Reservations
    ) -> ReservationEvent | None:
        """Return the Event to write now, if any; ``held`` is the message of the explanation."""
        reason_before, before = self._said.get(gang.key, ("", ""))
        member = next((entry.pod for entry in gang.members.values() if entry.node), None)
        if held == before or member is None:
            return None
        if not held:
            del self._said[gang.key]
            if reason_before == NOT_RESERVED:
                return None
            note = "no room is held for replacements any more"
            return ReservationEvent(member, RELEASED, note, object_of(gang))
        reason = RESERVED if reservations.of(gang.key) else NOT_RESERVED
        self._said[gang.key] = reason, held
        return ReservationEvent(member, reason, held, object_of(gang))

    def forget(self, key: GangKey) -> None:
        """Forget a gang that is gone."""
        self._said.pop(key, None)


def object_of(gang: GangEntry) -> dict[str, str] | None:
    """Return a reference to the gang's object; None: it has none."""
    dialect = by_name(gang.key.dialect)
    resource = dialect.resource if dialect is not None else None
    if resource is None or gang.spec is None or not gang.spec.uid:
        return None
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "namespace": gang.key.namespace,
        "name": gang.key.name,
        "uid": gang.spec.uid,
    }
