"""Which gang comes first: half-started ones, then priority, then the age of the gang."""

from __future__ import annotations

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey

OrderKey = tuple[bool, int, float, GangKey]


def order_key(gang: GangEntry) -> OrderKey:
    """Return the sort key of a gang; smaller comes first.

    A gang that is bound in part is repaired before anything else. Equal gangs do not block one
    another: one that does not fit is passed by. The last element makes the order total.
    """
    half_started = gang.bound > 0 and not gang.started
    return (not half_started, -gang.priority, gang.created_s, gang.key)
