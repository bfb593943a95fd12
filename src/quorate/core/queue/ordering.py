"""Which gang comes first: half-started ones, then priority, then the age of the gang."""

from __future__ import annotations

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey

OrderKey = tuple[bool, int, float, GangKey]


def order_key(gang: GangEntry) -> OrderKey:
    """Return the sort key of a gang; smaller comes first.

    A partly bound gang comes first, so that it is completed before others start. A gang that does
    not fit does not block those after it. The last element makes the order total.
    """
    half_started = gang.bound > 0 and not gang.started
    return (not half_started, -gang.priority, gang.created_s, gang.key)
