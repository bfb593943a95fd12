"""Sayings: what to report of gangs, as data. Made by ``telling``; sent by ``shell.report``."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from quorate.core.model import GangKey, Pod
from quorate.core.model.reasons import Explanation, GangView, Reason


class SayCondition(msgspec.Struct, frozen=True):
    """The pod's condition PodScheduled=False."""

    key: GangKey
    pod: Pod
    reason: Reason
    message: str

    @property
    def about(self) -> tuple[Hashable, ...]:
        """What a newer saying takes the place of."""
        return ("condition", self.pod.uid)


class SayEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The Event FailedScheduling of a pod or, if ``of_gang``, of a gang with ``pod`` as a member.

    Of a gang without pods, ``pod`` has no uid: it has what an Event needs to be about the object.

    ``count`` is how many times it has been said, this time included: from 2 on, the existing Event
    continues as a series. ``began_s`` (wall clock, epoch seconds) is when it was first said, which
    distinguishes it from other Events about the same object. A gang's carries its ``explanation``.
    """

    key: GangKey
    pod: Pod
    reason: Reason
    message: str
    of_gang: bool
    count: int
    began_s: float
    explanation: Explanation | None = None

    @property
    def about(self) -> tuple[Hashable, ...]:
        """What a newer saying takes the place of."""
        return ("FailedScheduling", self.key if self.of_gang else self.pod.uid, self.reason)


class SayStatus(msgspec.Struct, frozen=True):
    """The status of the gang's object. The dialect may find that nothing has to be written."""

    key: GangKey
    view: GangView

    @property
    def about(self) -> tuple[Hashable, ...]:
        """What a newer saying takes the place of."""
        return ("status", self.key)


Saying = SayCondition | SayEvent | SayStatus
