"""One reservation: the room of a lost member on its node, and who was lost. Of ``reservations``."""

from __future__ import annotations

from typing import Literal, NamedTuple

from quorate.core.cluster.gangs.gangs import PodEntry, Where
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import GangKey, Owner, Pod


class Placed(NamedTuple):
    """A member of a started gang with a node, as it was before a change of it."""

    key: GangKey
    node: str
    where: Where
    runs: bool
    """Whether it took room on its node."""
    pod_class: PodClass
    priority: int
    """That by which its gang stands in line."""


class Reservation:
    """The room of one lost member on its node. Times are epoch seconds, 0 until the first decision.

    ``asked_s`` is the length (seconds) that the member or its gang's object asked for. ``makes`` is
    how many pods its owner makes, once ``is_told``; None: that is unknown. ``failed`` says that the
    member failed by itself: nobody had told it to go.
    """

    __slots__ = (
        "asked_s",
        "failed",
        "is_told",
        "key",
        "makes",
        "node",
        "owner",
        "pod_class",
        "priority",
        "since_s",
        "until_s",
    )

    def __init__(self, was: Placed, pod: Pod) -> None:
        self.key = was.key
        self.pod_class = was.pod_class
        self.node = was.node
        self.priority = was.priority
        self.owner: Owner | None = pod.owner
        self.asked_s = pod.hold_s
        self.failed = pod.phase == "Failed" and not pod.terminating
        self.is_told = False
        self.makes: int | None = None
        self.since_s = 0.0
        self.until_s = 0.0

    @property
    def cut_to_s(self) -> float | None:
        """Its length in seconds, if the operator's bound made it shorter than asked; else None."""
        length_s = self.until_s - self.since_s
        return length_s if self.asked_s is not None and self.asked_s > length_s + 1e-3 else None


class NotReserved(NamedTuple):
    """Slots that a gang lost and a bound keeps from being reserved: ``whose`` bound, ``most``."""

    slots: int
    whose: Literal["gang", "namespace"]
    most: int
    until_s: float
    """When the reservations would have ended (epoch seconds)."""


def placed(entry: PodEntry) -> Placed | None:
    """Return a member whose loss may be reserved for, as it is now; None for other pods."""
    gang = entry.gang
    if gang is None or entry.where not in (Where.BOUND, Where.ASSUMED):
        return None
    if gang.key.is_single or not entry.ours or not gang.started or gang.min_count < 1:
        return None
    runs = not entry.pod.finished
    priority = entry.pod.priority if gang.class_priority is None else gang.class_priority
    return Placed(gang.key, entry.node, entry.where, runs, entry.pod_class, priority)
