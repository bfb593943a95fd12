"""Names for news that may let in a pod which a rule refused: what a rule looks at, and where.

A rule names what it looks at on other nodes than the one in question. News that come carry the same
names. Changes of the node itself need no name: more room, free ports, other labels or taints.
"""

from __future__ import annotations

from quorate.core.model import PodSelector
from quorate.core.room.room import Room

DEVICES = "devices"
"""Devices are free or new, or device classes are others."""
TAINTS = "taints"
"""A node came or went, or has other taints, or was cordoned, or not any more."""
RESOURCES = "resources"
"""Nodes have other resources than before, or devices stand for others."""
UNKNOWN = "unknown"
"""Any pod came or went that some selector means."""

Interest = tuple[str, str | int] | str


def label(key: str) -> Interest:
    """Name the news that a node has another value of a label, or came or went with one."""
    return "label", key


def selector(number: int) -> Interest:
    """Name the news that pods came or went that a selector means, or with a term of it."""
    return "selector", number


def pods_of(of: PodSelector, room: Room) -> set[Interest]:
    """Name the news of pods that a selector means; one that nobody uses any more has no number."""
    try:
        return {selector(room.snapshot.neighbours.selector_id(of))}
    except KeyError:
        return {UNKNOWN}
