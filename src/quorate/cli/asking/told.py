"""What is told of gangs: the leader's words of those that wait, the objects' own of all others.

In: a core that knows the pods and gangs, and what the leader has said of them. Out: explanations,
and when each was said. Nothing is decided here: a gang of which no pod waits for a scheduler has
its state in its objects, and of the others the leader alone knows which have started, whose lives
are over, and where there is room: also for gangs without pods that it has not admitted. See ADR 31.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from quorate.core.cluster.gangs.gangs import GangEntry, Where
from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation, GangState, Members, Reason
from quorate.core.words.counting import counted
from quorate.core.words.explain import Explainer
from quorate.core.words.gang_facts import members_in, state_of, warnings_of
from quorate.shell.heard import Heard

Asked = Callable[[GangKey], Heard | None]


class Said(NamedTuple):
    """When the leader said it (epoch seconds), and whether pods have come, gone or moved since."""

    at_s: float
    is_older: bool


class Told(NamedTuple):
    """An explanation; ``said`` is None where nothing was said that counts."""

    explanation: Explanation
    said: Said | None


class Line(NamedTuple):
    """The gangs in line, in order, among those of a namespace (``""``: of all)."""

    places: dict[GangKey, int]
    """From 1; pods of no gang have theirs too."""
    namespace: str


def line_in(gangs: Mapping[GangKey, GangEntry], heard: Asked, namespace: str) -> Line:
    """Return the line of the gangs that wait, by what the leader said of each."""
    ranks = []
    for key, gang in gangs.items():
        said = heard(key) if is_leaders(gang) else None
        if said is not None and said.explanation.order:
            ranks.append((said.explanation.order, key))
    return Line({key: place for place, (_, key) in enumerate(sorted(ranks), 1)}, namespace)


def is_leaders(gang: GangEntry) -> bool:
    """Whether the leader has to say why the gang stands where it stands: pods wait for it."""
    return bool(gang.counts[Where.WAITING] or gang.counts[Where.INVALID])


def told(gang: GangEntry, heard: Heard | None, explainer: Explainer, now_s: float) -> Told:
    """Return what is known of a gang that ``explainer`` knows."""
    is_held = not gang.members and heard is not None and _says_held(gang, heard)
    if not (is_leaders(gang) or is_held):
        found = explainer.explain(gang.key)
        assert found is not None
        return Told(_with_held(found, heard, now_s), None)
    if heard is None:
        return Told(_unsaid(gang), None)
    before, now = heard.explanation.members, members_in(gang)
    is_older = (before.total, before.unassigned) != (now.total, now.unassigned)
    one = msgspec.structs.replace(
        heard.explanation,
        members=now if is_older or is_held else _with_phases(before, now),
        warnings=warnings_of(gang, heard.explanation.missing_class),
    )
    if is_older and one.state is not GangState.STARTED:
        one = msgspec.structs.replace(one, state=_state(gang))
    return Told(_with_held(one, heard, now_s), Said(heard.at_s, is_older))


def _says_held(gang: GangEntry, heard: Heard) -> bool:
    """Whether the leader has said what has to change before it admits this object.

    Its clients make no pod before. Nodes and queues are known to the leader alone.
    """
    one, uid = heard.explanation, gang.spec.uid if gang.spec is not None else ""
    is_so = one.reason.holds_the_first_pod and not one.members.total
    return is_so and heard.uid == uid


def _with_held(one: Explanation, heard: Heard | None, now_s: float) -> Explanation:
    """Return the explanation with what the leader holds for the gang's lost members until later."""
    said = heard.explanation if heard is not None else None
    held = said.held if said is not None and said.held_until_s > now_s else ""
    return msgspec.structs.replace(one, held=held)


def _with_phases(before: Members, now: Members) -> Members:
    """Return the counts that were said, with the phases of now, of which nobody is told."""
    if not before.placed:
        return before  # the pods that have ended are of an earlier life
    phases = {"running": now.running, "succeeded": now.succeeded, "failed": now.failed}
    return msgspec.structs.replace(before, **phases)


def _state(gang: GangEntry) -> GangState:
    """Return the state by the objects: amid its binds no pod tells yet that a gang has started."""
    if not gang.started and any(e.is_alive and e.pod.attempt for e in gang.members.values()):
        return GangState.STARTING
    return state_of(gang)


def _unsaid(gang: GangEntry) -> Explanation:
    state, members = _state(gang), members_in(gang)
    if state is GangState.STARTING:
        words = f"{gang.bound} of {counted(gang.exist, 'member', 'is', 'are')} bound"
    elif gang.key.is_single:
        words = "the pod waits; no scheduler has said anything of it yet"
    else:
        waits = counted(
            gang.counts[Where.WAITING] + gang.counts[Where.INVALID], "member", "waits", "wait"
        )
        words = f"{waits}; no scheduler has said anything of them yet"
    return Explanation(
        key=gang.key,
        state=state,
        reason=Reason.STARTING if state is GangState.STARTING else Reason.NONE,
        message=words,
        members=members,
        priority=gang.priority,
        warnings=warnings_of(gang, ""),
    )
