"""What there is to say, as data. Made by ``telling``; ``shell.report`` turns it into requests."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from quorate.core.model import GangKey, Pod
from quorate.core.model.reasons import GangView, Reason


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
    """The Event FailedScheduling of a pod, or of a gang: then ``of_gang``, and ``pod`` is a member.

    ``count`` is how often it has been said, this time included: from 2 on, the Event that there is
    goes on as a series. ``began_s`` (wall clock) is when it was said first, and tells it from
    others about the same object.
    """

    key: GangKey
    pod: Pod
    reason: Reason
    message: str
    of_gang: bool
    count: int
    began_s: float

    @property
    def about(self) -> tuple[Hashable, ...]:
        """What a newer saying takes the place of."""
        return ("FailedScheduling", self.key if self.of_gang else self.pod.uid, self.reason)


class SayStatus(msgspec.Struct, frozen=True):
    """The status of the gang's object. Its dialect may find that nothing is to be written."""

    key: GangKey
    view: GangView

    @property
    def about(self) -> tuple[Hashable, ...]:
        """What a newer saying takes the place of."""
        return ("status", self.key)


Saying = SayCondition | SayEvent | SayStatus
