"""Why a gang is in its state, in one message and in facts.

In: the cluster, the room, a gang. Out: an ``Explanation`` (for conditions, Events, the command
line) and a ``GangView`` (for the dialects' status). Called by ``shell.report`` and ``cli`` through
``scheduler.explainer``. The message is made here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.cluster.gangs.reservation import Reservation
from quorate.core.cluster.nodes.nodes import NodesVersion
from quorate.core.cluster.unlisted_kinds import problem_for
from quorate.core.model import GangKey, Owner
from quorate.core.model import policy as bounds
from quorate.core.model.policy import Policy
from quorate.core.model.reasons import (
    Blocker,
    ClosedNodes,
    Explanation,
    GangView,
    Reason,
    available,
)
from quorate.core.place.members import members_of
from quorate.core.place.min_resources import Short, shortage
from quorate.core.place.one_pod.nominated import room_less_nominated
from quorate.core.queue.gate import asked_owners, held_by
from quorate.core.queue.ready import order_key
from quorate.core.room.promises import Promises
from quorate.core.room.reserved_room import (
    held_until_s,
    reserved_for,
    withheld_from,
    withheld_words,
    without,
)
from quorate.core.room.room import Room
from quorate.core.words.counting import counted
from quorate.core.words.diagnosis import Diagnoses, Diagnosis, would_fit
from quorate.core.words.gang_facts import (
    internal_error,
    members_in,
    state_of,
    unexplained,
    warnings_of,
)
from quorate.core.words.object_words import ApiWords, missing_class, object_words
from quorate.core.words.owner_words import maker_hint, maker_words, makers_of
from quorate.core.words.pod_words import (
    disagreement,
    elsewhere_words,
    exist_words,
    held_pod_words,
    next_run_words,
    settled_words,
    short_words,
    single_words,
    task_words,
)
from quorate.core.words.remedies import closed_to, closed_words

_FIX_CLAIM = "create or fix that object, or wait for it to be made"
_START_PODS = "start pods that match spec.affinity.podAffinity, or fix it"
_FIX_SELECTOR = "fix the selector or the tolerations, or the nodes' labels"
_AWAIT_NODES = "wait for the nodes that are not open to it, or ask who keeps them"
_FIX_TOPOLOGY = "correct that field, or give nodes that label"


class Explainer:
    """Explains gangs as of one instant. Reads the cluster, changes nothing."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        ask_room: Callable[[], Room],
        apis: dict[str, ApiWords],
        now_s: float,
        note_defect: Callable[[GangKey, Exception, float], str],
    ) -> None:
        self._cluster = cluster
        self._note_defect = note_defect
        self._policy = policy
        self._ask_room = ask_room
        self._apis = apis
        self._now_s = now_s

    @property
    def nodes_version(self) -> NodesVersion:
        """The version of the nodes that is explained."""
        return self._cluster.nodes.version

    @cached_property
    def _room(self) -> Room:
        return self._ask_room()

    @cached_property
    def _diagnoses(self) -> Diagnoses:
        return Diagnoses(self._cluster, self._policy)

    @cached_property
    def _promises(self) -> Promises:
        return Promises.of(self._cluster)

    def explain(self, key: GangKey) -> Explanation | None:
        """Return why the gang is in its state; None if there is no such gang.

        A defect in our code here costs only this gang its explanation.
        """
        gang = self._cluster.gangs.get(key)
        if gang is None:
            return None
        before = gang.memory.unexplained
        try:
            if before.is_active(self._now_s):
                return unexplained(key, before.incident)
            return self._explain(gang)
        except Exception as error:
            return unexplained(key, self._note_defect(key, error, self._now_s))

    def _explain(self, gang: GangEntry) -> Explanation:
        key = gang.key
        reason = held_by(gang, self._cluster, self._now_s)
        is_in_line = gang.waits and reason in (Reason.NONE, Reason.BACKING_OFF)
        message, hint = "", ""
        diagnosis: Diagnosis | None = None
        short = self._shortage(gang) if self._is_at_the_gate(gang, reason) else {}
        if short:
            reason = Reason.MIN_RESOURCES_SHORT
            message, hint = short_words(short, gang.spec.owner if gang.spec else None)
            members, labels = members_of(gang, self._cluster), self._policy.life_cycle
            few = islice(members, bounds.EXPLAINED_CLASSES_MAX)
            closed = (closed_to(one, self._room, labels) for one in few)
            if words := next(filter(None, map(closed_words, closed)), ""):
                message = f"{message}; {words}"
        elif reason is Reason.NONE and gang.waits:
            room, withheld = self._room_for(gang)
            diagnosis, plain = self._diagnoses.of(gang, room, self._room)
            reason, message, hint = self._room_words(gang, diagnosis)
            if plain and not diagnosis.fits:
                message = _with_detail(plain, diagnosis.hint or closed_words(diagnosis.closed))
            in_all = gang, self._cluster, self._room, self._policy
            if withheld and not diagnosis.fits and would_fit(*in_all):
                reason, hint = Reason.ROOM_HELD, "free or add room, or wait"
                message = self._held_room_words(gang, diagnosis, withheld)
        elif reason is Reason.NONE:
            reason, message = settled_words(gang)
        else:
            message, hint = self._held_words(gang, reason)
            if reason is Reason.BACKING_OFF:
                reason, message, diagnosis = self._behind_back_off(gang, message)
        reservations = self._cluster.reservations
        held = reservations.of(key), reservations.not_reserved(key)
        lacks_class = missing_class(gang, self._cluster)
        return Explanation(
            key=key,
            state=state_of(gang),
            reason=reason,
            message=message,
            hint=hint,
            members=members_in(gang),
            nodes=self._room.snapshot.nodes_alive,
            blockers=diagnosis.blockers if diagnosis else (),
            priority=gang.priority,
            missing_class=lacks_class,
            warnings=warnings_of(gang, lacks_class),
            held=reserved_for(*held),
            held_until_s=held_until_s(*held),
            order=tuple(map(float, order_key(gang)[:-1])) if is_in_line else (),
            exhausted=reason is Reason.NOT_ENOUGH_ROOM and bool(diagnosis and diagnosis.exhausted),
        )

    def awaited_under(self, gang: GangEntry) -> str:
        """Return the scheduler name under which its clients wait for us before they make any pod.

        ``""``: there are pods, or nobody waits for us.
        """
        return "" if gang.members else self._words(gang.key.dialect).awaited_under

    def view(self, key: GangKey, explanation: Explanation) -> GangView | None:
        """Return what the gang's dialect needs to write its object's status.

        None: there is no such gang, or the status is another scheduler's to write.
        """
        gang = self._cluster.gangs.get(key)
        if gang is None or explanation.reason is Reason.OTHER_SCHEDULER:
            return None
        first = next(iter(gang.members.values()), None)
        return GangView(
            key=key,
            uid=gang.spec.uid if gang.spec else "",
            state=explanation.state,
            members=explanation.members,
            admitted=gang.started
            or not (explanation.reason.holds_the_first_pod or self._shortage(gang)),
            reason=explanation.reason,
            message=explanation.message,
            created_s=gang.created_s,
            owner=first.pod.owner if first else None,
            priority=gang.priority,
        )

    def pod_message(self, entry: PodEntry, explanation: Explanation) -> tuple[Reason, str]:
        """Return the reason and message of one pod: its own defect, or its gang's."""
        pod = entry.pod
        if entry.where is Where.INVALID:
            return Reason(pod.defect_reason or Reason.POD_INVALID), pod.defect
        if entry.where is Where.NEXT_RUN and entry.gang is not None:
            return Reason.EARLIER_RUN, next_run_words(entry.gang, self._cluster.owners)[0]
        return explanation.reason, explanation.message

    def owners(self, key: GangKey) -> tuple[Owner, ...]:
        """Return the members' owners, where the number of pods that they make explains more."""
        gang = self._cluster.gangs.get(key)
        if to_ask := self._cluster.reservations.owners_to_ask(key):
            return tuple(to_ask)  # a started gang: do they replace lost members?
        if gang is not None and gang.counts[Where.NEXT_RUN]:
            return tuple(gang.runs.jobs)  # are they runs of one CronJob?
        if gang is None or gang.key.is_single or gang.started or gang.exist >= gang.min_count:
            return asked_owners(gang, self._cluster)
        return tuple(owner for owner in gang.owners if owner)

    def _behind_back_off(
        self, gang: GangEntry, message: str
    ) -> tuple[Reason, str, Diagnosis | None]:
        """Return a lack of room that a back-off hides, for a pod of a kube-scheduler profile.

        Autoscalers must see it, and add a node, also after a preemption that failed.
        """
        if not (gang.key.is_single and gang.waits):
            return Reason.BACKING_OFF, message, None
        room, _ = self._room_for(gang)
        found, plain = self._diagnoses.of(gang, room, self._room)
        if not plain or found.fits:
            return Reason.BACKING_OFF, message, None
        failure = gang.memory.last_failure or message
        return self._room_words(gang, found)[0], _with_detail(plain, failure), found

    def _is_at_the_gate(self, gang: GangEntry, reason: Reason) -> bool:
        """Whether only room for minResources is asked for next: by pods, or before the first."""
        if reason is Reason.NONE:
            return bool(gang.waits) and not gang.started
        is_asked = gang.spec is not None and not gang.spec.admitted and gang.min_count > 0
        return reason is Reason.NOT_ENOUGH_MEMBERS and is_asked and bool(self.awaited_under(gang))

    def _shortage(self, gang: GangEntry) -> dict[str, Short]:
        return shortage(gang, self._room_for(gang)[0], self._cluster.resources)

    def _room_for(self, gang: GangEntry) -> tuple[Room, list[Reservation]]:
        """Return the room that the gang may use, and the reservations withheld from it."""
        reservations, room = self._cluster.reservations, self._room
        if promised := self._promises.to_others(gang.priority, gang):
            members = list(members_of(gang, self._cluster))
            room = room_less_nominated(room, promised, members, self._cluster)
        if not reservations:
            return room, []
        withheld = withheld_from(gang, reservations)[-1]
        return without(room, withheld), withheld

    # Words

    def _held_words(self, gang: GangEntry, reason: Reason) -> tuple[str, str]:
        """Return message and hint of a gang that is held back before any node is looked at."""
        if (said := object_words(gang, reason, self._cluster, self._words)) is not None:
            return said
        match reason:
            case Reason.NOT_ENOUGH_MEMBERS | Reason.OWNER_MAKES_TOO_FEW | Reason.MEMBERS_GATED:
                return self._member_words(gang, reason)
            case Reason.API_NOT_AVAILABLE:
                return problem_for(gang, self._cluster) or held_pod_words(gang, self._cluster)
            case Reason.OTHER_SCHEDULER:
                return elsewhere_words(gang, self._cluster)
            case Reason.MEMBERS_DISAGREE:
                return disagreement(gang, self._words(gang.key.dialect).min_key)
            case Reason.INTERNAL_ERROR:
                return internal_error(gang.memory.aside.incident)
            case Reason.BACKING_OFF:
                failure = gang.memory.last_failure or "the attempt's time was over"
                is_long = gang.memory.not_before_s - self._now_s > self._policy.backoff_s_max
                when = f"within {bounds.ASIDE_S_MAX / 60:.0f} minutes" if is_long else "shortly"
                return f"the last attempt failed ({failure}); another follows {when}", ""
            case _:
                return held_pod_words(gang, self._cluster)

    def _member_words(self, gang: GangEntry, reason: Reason) -> tuple[str, str]:
        counts, need = gang.counts, gang.min_count
        if gang.key.is_single:
            return single_words(next(iter(gang.members.values()))), ""
        of_tasks, hint = task_words(gang)
        parts = [*exist_words(gang), *of_tasks]
        if counts[Where.GATED]:
            verb = "is" if counts[Where.GATED] == 1 else "are"
            parts.append(f"{counts[Where.GATED]} more {verb} scheduling-gated")
        if counts[Where.NEXT_RUN]:
            parts.append(next_run_words(gang, self._cluster.owners)[0])
        if count := counts[Where.TERMINATING] + gang.leaving:
            parts.append(f"{count} more {'is' if count == 1 else 'are'} terminating")
        if reason is Reason.MEMBERS_GATED:
            return "; ".join(parts), "the gates' owner has to remove them"
        if hint and gang.exist >= need:
            return "; ".join(parts), hint
        makers = makers_of(gang, self._cluster.owners)
        hint = maker_hint(gang.key.namespace, makers, gang.exist, need)
        return "; ".join([*parts, *maker_words(makers)]), hint

    def _words(self, dialect: str) -> ApiWords:
        return self._apis.get(dialect, ApiWords("PodGroup", dialect, "the group's name"))

    def _room_words(self, gang: GangEntry, found: Diagnosis) -> tuple[Reason, str, str]:
        """Return reason, message and hint for missing room; kube-scheduler's words come first."""
        if found.fits:
            if avoided := sorted(gang.memory.avoided(self._now_s)):
                nodes = f"node{'s' * (len(avoided) > 1)} {', '.join(avoided[:3])}"
                when = f"within {max(1, round(self._policy.avoid_s / 60))} minutes"
                words = f"there is room with {nodes}, which refused a member: tried again {when}"
                return Reason.BACKING_OFF, words, ""
            return Reason.STARTING, "there is room; the next cycle places it", ""
        nowhere = (
            (found.claim_problem, Reason.CLAIM_NOT_USABLE, _FIX_CLAIM),
            (found.impossible, Reason.POD_INVALID, "fix that pod's template"),
            (found.unknown_topology, Reason.NO_NODE_MATCHES, _FIX_TOPOLOGY),
            (found.awaits_pods, Reason.AWAITS_PODS, _START_PODS),
            (found.no_node_matches, Reason.NO_NODE_MATCHES, _FIX_SELECTOR),
        )
        for one, reason, hint in nowhere:
            if one is not None:
                words = self._words_of(gang, found, one, f"no node takes pod {one.pod}", one.closed)
                return reason, words, _AWAIT_NODES if _may_open(one.closed) else hint
        if found.too_large is not None:
            blocker, lack = found.too_large
            asks = f"pod {blocker.pod} asks for {lack}"
            words = self._words_of(gang, found, blocker, asks, blocker.closed)
            hint = "lower the request, or add a larger node"
            return Reason.REQUEST_TOO_LARGE, words, _AWAIT_NODES if blocker.closed else hint
        ending = " (the search for a joint placement was cut short)" if found.exhausted else ""
        if not found.blockers:
            words = _joined(self._fit_words(gang, found), "no joint placement of all its pod")
            return Reason.NOT_ENOUGH_ROOM, f"{words} classes was found{ending}", "free or add room"
        in_the_way, hint = found.room_words
        first, closed = found.blockers[0], found.closed
        words = self._words_of(gang, found, first, in_the_way, closed) + ending
        return Reason.NOT_ENOUGH_ROOM, words, hint

    def _words_of(
        self,
        gang: GangEntry,
        found: Diagnosis,
        blocker: Blocker,
        more: str = "",
        closed: Sequence[ClosedNodes] = (),
    ) -> str:
        """Return kube-scheduler's message for a blocker, followed by the gang's own part."""
        plain = available(self._room.snapshot.nodes_alive, blocker.ruled_out)
        ours = _joined(self._fit_words(gang, found), more)
        ours = "; ".join(filter(None, (ours, closed_words(closed))))
        return _with_detail(f"{plain} {ours}" if ours else plain, blocker.hint)

    def _held_room_words(
        self, gang: GangEntry, found: Diagnosis, withheld: list[Reservation]
    ) -> str:
        held = withheld_words(withheld)
        if found.blockers:
            return self._words_of(gang, found, found.blockers[0], held)
        return _joined(self._fit_words(gang, found), held)

    def _fit_words(self, gang: GangEntry, found: Diagnosis) -> str:
        if gang.key.is_single:
            return ""
        if found.looked_at is not None:
            return f"{gang.waits} members wait, and of {found.looked_at} looked at {found.fit} fit"
        if not gang.need:
            return f"{found.fit} of {counted(gang.waits, 'more member', 'fits', 'fit')}"
        if gang.need == 1:
            return f"1 member must start now and {found.fit} fit"
        return f"{gang.need} members must start together and {found.fit} fit"


def _with_detail(message: str, detail: str) -> str:
    return f"{message} ({detail})" if detail else message


def _may_open(closed: Sequence[ClosedNodes]) -> bool:
    return any(not one.for_others for one in closed)


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)
