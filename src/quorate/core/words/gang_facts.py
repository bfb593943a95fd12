"""A gang's state, member counts and warnings: the facts that go with its message.

Called by ``explain``.
"""

from __future__ import annotations

from collections import Counter

from quorate.core.cluster.gangs.gangs import GangEntry, Where
from quorate.core.cluster.gangs.pods import SETTLED
from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation, GangState, Members, Reason
from quorate.core.words.object_words import class_words


def state_of(gang: GangEntry) -> GangState:
    """Return the state of the gang."""
    if gang.started:
        return GangState.STARTED
    return GangState.STARTING if gang.attempt is not None else GangState.WAITING


def members_in(gang: GangEntry) -> Members:
    """Count the gang's pods by their state."""
    # If members wait and none is alive, all finished members belong to an earlier life.
    done = gang.runs.done
    begins_anew = gang.has_undecided and not gang.alive and not done
    there = frozenset({Where.BOUND}) if begins_anew else SETTLED
    phases = Counter(e.pod.phase for e in gang.members.values() if e.where in there)
    counts = gang.counts
    return Members(
        needed=gang.stated_min,
        exist=gang.exist,
        bound=gang.bound,
        assumed=gang.assumed,
        waiting=gang.waits,
        gated=counts[Where.GATED],
        terminating=counts[Where.TERMINATING] + gang.leaving,
        invalid=counts[Where.INVALID],
        running=phases["Running"],
        succeeded=phases["Succeeded"],
        failed=phases["Failed"],
        total=len(gang.members),
        past=0 if begins_anew else counts[Where.PAST],
        done=done,
        unassigned=sum(not entry.pod.node for entry in gang.members.values()),
    )


def warnings_of(gang: GangEntry, missing_class: str) -> tuple[str, ...]:
    """Return warnings about the gang that do not keep it from starting."""
    of_object = (gang.spec.warning,) if gang.spec is not None and gang.spec.warning else ()
    said = dict.fromkeys(e.pod.warning for e in gang.members.values() if e.pod.warning)
    refused = sorted(
        f"node {entry.pod.node} refused pod {entry.pod.name}: {entry.pod.refusal}"
        for entry in gang.members.values()
        if entry.where is Where.REFUSED
    )
    of_class = (class_words(missing_class),) if missing_class else ()
    return (*of_object, *of_class, *said, *refused)


def unexplained(key: GangKey, incident: str) -> Explanation:
    """Return the explanation of a gang whose real one failed by a defect of ours."""
    message, hint = internal_error(incident)
    return Explanation(
        key=key,
        state=GangState.WAITING,
        reason=Reason.INTERNAL_ERROR,
        message=message,
        hint=hint,
        members=Members(needed=0),
    )


def internal_error(incident: str) -> tuple[str, str]:
    """Return message and hint for a gang that met a defect of ours."""
    return (
        f"InternalError {incident}: a defect of quorate's own was met with this gang; it is set "
        "aside and tried again, and other gangs go on",
        f"report the log line and the recording of {incident}",
    )
