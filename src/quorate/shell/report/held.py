"""Events about held slots: one when what is held for a gang differs, not one for each member.

In: a gang and its explanation. Out: what to say, and where it can be found again by ``quorate why``
(``shell.leader_facts``). Called by ``reporter``.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.holds import Holds
from quorate.core.model import GangKey, Pod
from quorate.dialects import by_name
from quorate.dialects.common.fields import format_time
from quorate.shell.annotations import HELD_FOR, HELD_UNTIL

HELD, NOT_HELD, RELEASED = "SlotHeld", "SlotNotHeld", "SlotReleased"


class HeldNote(NamedTuple):
    """An Event to write. ``pod`` is a member; ``regarding`` the gang's object, if it has one."""

    pod: Pod
    reason: str
    note: str
    annotations: dict[str, str]
    regarding: dict[str, str] | None


class HeldNotes:
    """Remembers what was said of each gang."""

    def __init__(self) -> None:
        self._said: dict[GangKey, tuple[str, str]] = {}
        """The reason and the sentence of the last Event about each gang."""

    def news(self, gang: GangEntry, held: str, holds: Holds) -> HeldNote | None:
        """Return what is to be said now; ``held`` is the explanation's sentence."""
        reason_before, before = self._said.get(gang.key, ("", ""))
        member = next((entry.pod for entry in gang.members.values() if entry.node), None)
        if held == before or member is None:
            return None
        if not held:
            del self._said[gang.key]
            if reason_before == NOT_HELD:
                return None
            note = "no room is held for replacements any more"
            return HeldNote(member, RELEASED, note, _annotations(gang.key), object_of(gang))
        not_held = holds.not_held(gang.key)
        ends_s = [hold.until_s for hold in holds.of(gang.key)]
        reason = HELD if ends_s else NOT_HELD
        self._said[gang.key] = reason, held
        annotations = _annotations(gang.key)
        if not ends_s and not_held is not None:
            ends_s = [not_held.until_s]
        annotations[HELD_UNTIL] = format_time(max(ends_s, default=0.0))
        return HeldNote(member, reason, held, annotations, object_of(gang))

    def forget(self, key: GangKey) -> None:
        """Forget a gang that is gone."""
        self._said.pop(key, None)


def _annotations(key: GangKey) -> dict[str, str]:
    return {HELD_FOR: f"{key.dialect}/{key.name}"}


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
