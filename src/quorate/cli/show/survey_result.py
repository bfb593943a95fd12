"""The result of a survey of the cluster, as ``why``, ``gangs`` and ``nodes`` print it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from quorate.cli.asking import mistakes
from quorate.cli.asking.owners_elsewhere import Elsewhere
from quorate.cli.asking.told import Line, Said
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation, GangState, Members, Reason
from quorate.core.scheduler import Scheduler
from quorate.shell.survey import Leader

FINISHED, FAILED = "Finished", "Failed"
STATES = (*(str(state) for state in GangState), FINISHED, FAILED)
"""The states that commands print: those of the scheduler, and two in which all members ended."""
STYLES = {
    GangState.STARTED: "green",
    GangState.STARTING: "cyan",
    GangState.WAITING: "yellow",
    FINISHED: "dim",
    FAILED: "red",
}


class SurveyResult(NamedTuple):
    """A core that has observed the cluster, the gangs that were asked for, and who leads.

    ``now_s`` is the time of the survey, in seconds since 1970. ``namespace`` is "" for all.
    ``found`` has the explanations of ``keys``, and ``said`` when the leader said them, if it did;
    ``line`` has all that wait, whether they were asked for or not.
    """

    scheduler: Scheduler
    keys: list[GangKey]
    leader: Leader
    now_s: float
    namespace: str
    found: list[Explanation]
    said: dict[GangKey, Said]
    line: Line = Line({}, "")

    def gang(self, key: GangKey) -> GangEntry:
        """Return the core's entry of a gang."""
        return self.scheduler.cluster.gangs[key]


def explanations(scheduler: Scheduler, keys: Iterable[GangKey], now_s: float) -> list[Explanation]:
    """Return the explanations of these gangs by this core; gangs that are gone are left out."""
    explainer = scheduler.explainer(now_s)
    made = [found for key in keys if (found := explainer.explain(key)) is not None]
    return with_mistakes(scheduler, made)


def with_mistakes(
    scheduler: Scheduler, made: Iterable[Explanation], elsewhere: Elsewhere | None = None
) -> list[Explanation]:
    """Return the explanations with what was meant for these gangs, or with how they have ended.

    ``elsewhere`` are owners that have made no pod yet, by their gang.
    """
    made = mistakes.explained(scheduler, made, elsewhere)
    return [_of_the_ended(one) if has_ended(one.members) else one for one in made]


def has_ended(members: Members) -> bool:
    """Whether a gang has members, and each of them has succeeded or failed."""
    return 0 < members.total == members.succeeded + members.failed


def state_of(explanation: Explanation) -> str:
    """Return one of ``STATES``: ``Finished`` if as many members succeeded as had to start."""
    members = explanation.members
    if not has_ended(members):
        return str(explanation.state)
    return FINISHED if members.succeeded >= max(1, members.needed) else FAILED


def _of_the_ended(explanation: Explanation) -> Explanation:
    members = explanation.members
    counts = [(members.succeeded, "succeeded"), (members.failed, "failed")]
    said = " and ".join(f"{count} {what}" for count, what in counts if count)
    message = f"all members have ended: {said}"
    return msgspec.structs.replace(explanation, reason=Reason.NONE, message=message, hint="")


def age(seconds: float) -> str:
    """Return a time span as kubectl shows ages, in one unit."""
    if not math.isfinite(seconds):
        return "?"  # the object has no time, and no pods
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
