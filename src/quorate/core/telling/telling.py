"""Decides what is said of a gang, and when. In: explanations and times. Out: sayings, rate-limited.

It does no I/O: ``shell.report.reporter``, which sends, and the simulation call it. A pod's
condition has the newest message; the gang's Event counts repetitions; ``docs/adr/0019`` says why
each pod has an Event too. A new reason is said at once, a few times; a new message of the same
reason, which differs in numbers, ``policy.AGAIN_S`` after the last one. What is deferred is
explained again later, so the last message is always said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where, key_of
from quorate.core.cluster.gangs.pods import UNDER_WAY
from quorate.core.model import GangKey, Pod, PodSpec, policy
from quorate.core.model.reasons import Explanation, GangView, Reason
from quorate.core.queue.gate import unanswered_since_s
from quorate.core.telling.counted_gangs import CountedGangs
from quorate.core.telling.outbox import Outbox
from quorate.core.telling.quiet_gangs import QuietGangs
from quorate.core.telling.sayings import SayCondition, SayEvent, Saying, SayStatus
from quorate.core.words.explain import Explainer

_UNSAID = frozenset({Reason.NONE, Reason.STARTING})
_OF_THEIR_OWN = frozenset({Where.INVALID, Where.NEXT_RUN})
"""Places of members that have a reason of their own to wait."""


class Now(NamedTuple):
    """One instant, in seconds of a monotonic clock and of the wall clock."""

    s: float
    wall_s: float


class _Said(msgspec.Struct):
    """What a pod's condition says, since when, and the reasons of its Events so far."""

    namespace: str
    reason: Reason
    message: str
    at_s: float
    events: set[Reason]
    is_lost: bool = False


class _Series(msgspec.Struct):
    """An Event of a gang that may continue as a series."""

    began_s: float
    at_s: float
    words: tuple[object, ...]
    count: int = 1


class _Gang(msgspec.Struct):
    """What was said of one gang; ``uid`` is its object's when that began."""

    reason: Reason
    uid: str
    changed_s: list[float] = []
    """When its reason changed in the last ``policy.AGAIN_S``."""
    series: dict[Reason, _Series] = {}
    event_reason: Reason | None = None
    """The reason of its last Event."""
    status: tuple[Reason, str, float] | None = None
    """The reason and message in the object's status, and since when."""
    is_before_pods: bool = False
    """Whether it has no pods, and its last Event said, or says no longer, that room is short."""


class Telling:
    """Decides for one scheduler core; ``take`` yields what may be said now."""

    def __init__(self) -> None:
        self.quiet_gangs = QuietGangs()
        self.counted = CountedGangs()
        self._outbox = Outbox()
        self._gangs: dict[GangKey, _Gang] = {}
        self._pods: dict[str, _Said] = {}
        self._stamp_s = 0.0

    def __len__(self) -> int:
        """Return how many sayings wait to be sent."""
        return len(self._outbox)

    def __contains__(self, key: object) -> bool:
        """Whether something is known to have been said of the gang, and it is ours."""
        one = self._gangs.get(key) if isinstance(key, GangKey) else None
        return one is not None and one.reason is not Reason.OTHER_SCHEDULER

    def is_before_pods(self, key: GangKey) -> bool:
        """Whether something is said of a gang that has no pods; if not, nobody waits there."""
        one = self._gangs.get(key)
        return one is not None and one.is_before_pods

    def take(self, now_s: float) -> Iterator[Saying]:
        """Yield the sayings that may be sent now (seconds of a monotonic clock)."""
        return self._outbox.take(now_s)

    def unused(self) -> None:
        """Give back the allowance of the last saying: it needed no request."""
        self._outbox.give_back()

    # What happens to pods and gangs

    def has_node(self, pod: Pod) -> None:
        """Forget a pod that has its node, and drop its queued sayings: they are no longer true."""
        self._forget_pod(pod.uid)
        key = key_of(pod)
        if key.is_single:
            self.settle(key)

    def gone(self, uid: str) -> None:
        """Forget a deleted pod, and drop its queued sayings."""
        self._forget_pod(uid)

    def lost(self, key: GangKey, uid: str, now_s: float) -> None:
        """Note that a pod's condition could not be written; it is said again later."""
        said = self._pods.get(uid)
        if said is not None:
            said.is_lost, said.at_s = True, now_s
        self.quiet_gangs.explain_at(key, now_s + policy.AFTER_LOSS_S)

    def event_lost(self, key: GangKey, now_s: float) -> None:
        """Note that a gang's Event could not be written; it is said again later."""
        one = self._gangs.get(key)
        if one is not None:
            one.event_reason = None
        self.quiet_gangs.explain_at(key, now_s + policy.AFTER_LOSS_S)

    def status_lost(self, key: GangKey, now_s: float) -> None:
        """Note that the status of a gang's object could not be written; it is said again later."""
        self.quiet_gangs.explain_at(key, now_s + policy.AFTER_LOSS_S)

    def settle(self, key: GangKey) -> None:
        """Forget a gang of which nothing has to be reported now."""
        self.quiet_gangs.forget(key)
        self.counted.drop(key)
        one = self._gangs.pop(key, None)
        for reason in one.series if one is not None else ():
            self._outbox.drop(key.namespace, ("FailedScheduling", key, reason))

    def _forget_pod(self, uid: str) -> None:
        said = self._pods.pop(uid, None)
        if said is None:
            return
        self._outbox.drop(said.namespace, ("condition", uid))
        for reason in said.events:
            self._outbox.drop(said.namespace, ("FailedScheduling", uid, reason))

    # What is said

    def tell(
        self, gang: GangEntry, explainer: Explainer, explanation: Explanation, now: Now
    ) -> None:
        """Queue the sayings that follow from a gang's explanation."""
        one = self._known(gang, explanation.reason)
        if one.reason is not explanation.reason and explanation.reason not in _UNSAID:
            one.changed_s = [at_s for at_s in one.changed_s if now.s - at_s < policy.AGAIN_S]
            one.changed_s.append(now.s)
        one.reason = explanation.reason
        is_of_nodes = explanation.reason.nodes_would_help
        self.quiet_gangs.note_told(gang.key, explainer.nodes_version if is_of_nodes else None)
        if explanation.reason is Reason.STARTING and explanation.members.waiting:
            # Nothing is said of it; if another gang takes that room, nothing else tells of it.
            self.quiet_gangs.explain_at(gang.key, now.s + policy.PATIENCE_S)
        recipients = self._waiting(gang, explanation)
        first = next((entry for entry in recipients if entry.where is Where.WAITING), None)
        first = first or next(iter(recipients), None)
        if first is not None:
            words = explainer.pod_message(first, explanation)
            self._tell_readers(one, first.pod, words, explanation, now)
        self._tell_before_pods(one, _awaited_under(gang, explainer, explanation), explanation, now)
        if gang.members or explanation.reason.holds_the_first_pod:
            self.counted.put(gang, explanation.state, explanation.reason, recipients)
        else:
            self.counted.drop(gang.key)
        for entry in recipients:
            self._tell_pod(gang, one, entry, explainer.pod_message(entry, explanation), now)
        if not gang.key.is_single:
            bare = None if _has_object(gang) else first
            self._tell_of_pods(gang.key, [entry for entry in recipients if entry is not bare], now)
        self._tell_status(one, explainer.view(gang.key, explanation), now)

    def tell_of_another(
        self, gang: GangEntry, cluster: Cluster, explainer: Explainer, now: Now
    ) -> bool:
        """Tell a gang that is not ours when its own scheduler has been silent for long.

        Return whether it is silent; if it is not, there is nothing to tell.
        """
        since_s = unanswered_since_s(gang, cluster)
        if since_s is None:
            return False
        left_s = since_s + policy.ANSWER_S - now.wall_s
        if left_s > 0:
            self.quiet_gangs.explain_at(gang.key, now.s + left_s)
        elif (explanation := explainer.explain(gang.key)) is not None:
            self.tell(gang, explainer, explanation, now)
        return True

    def tell_first(self, gang: GangEntry, explainer: Explainer) -> None:
        """Queue the first status of an object without pods, whosever its pods will be.

        Kubeflow's training-operator may look at a job again only when its PodGroup changes.
        """
        explanation = None if gang.members else explainer.explain(gang.key)
        view = explainer.view(gang.key, explanation) if explanation is not None else None
        if view is not None:
            first = msgspec.structs.replace(view, scheduler_known=False)
            self._outbox.put(SayStatus(gang.key, first), again=False)

    def _known(self, gang: GangEntry, reason: Reason) -> _Gang:
        """Return what was said of the gang; nothing if it is an object alone, and made anew."""
        uid, one = gang.spec.uid if gang.spec is not None else "", self._gangs.get(gang.key)
        if one is not None and one.uid != uid and not gang.members:
            self.settle(gang.key)
            one = None
        if one is None:
            one = self._gangs[gang.key] = _Gang(reason, uid)
        return one

    def _waiting(self, gang: GangEntry, explanation: Explanation) -> list[PodEntry]:
        """Return the members that are told why they wait; forget the sayings of others."""
        recipients = []
        for entry in gang.members.values():
            if entry.where in UNDER_WAY and entry.ours:
                continue  # if its bind fails, its condition is still the same
            if entry.where is Where.FOREIGN and explanation.reason is Reason.OTHER_SCHEDULER:
                recipients.append(entry)
            elif entry.where not in (Where.WAITING, *_OF_THEIR_OWN) or not entry.ours:
                self._forget_pod(entry.pod.uid)
            elif entry.where in _OF_THEIR_OWN or explanation.reason not in _UNSAID:
                recipients.append(entry)
        return recipients

    def _tell_pod(
        self, gang: GangEntry, one: _Gang, entry: PodEntry, words: tuple[Reason, str], now: Now
    ) -> None:
        """Queue a pod's condition if it changed and is due."""
        pod, (reason, message) = entry.pod, words
        said = self._pods.get(pod.uid)
        if said is None:
            said = _Said(pod.namespace, reason, message, now.s, set())
            self._pods[pod.uid] = said
            again = False
        elif not self._is_due(gang.key, one, said, words, now):
            return
        else:
            again = said.reason is reason
            said.reason, said.message, said.at_s, said.is_lost = reason, message, now.s, False
        if entry.ours:  # else the condition is another's to write
            self._outbox.put(SayCondition(gang.key, pod, reason, message), again=again)

    def _tell_of_pods(self, key: GangKey, recipients: list[PodEntry], now: Now) -> None:
        """Queue an Event for each member whose current reason has had no Event on it yet."""
        for entry in recipients:
            said = self._pods[entry.pod.uid]
            if said.reason not in said.events:
                said.events.add(said.reason)
                event = SayEvent(
                    key=key,
                    pod=entry.pod,
                    reason=said.reason,
                    message=said.message,
                    of_gang=False,
                    count=1,
                    began_s=self.stamp(now.wall_s),
                )
                self._outbox.put(event, again=True)  # it repeats what the condition says

    def _is_due(
        self, key: GangKey, one: _Gang, said: _Said, words: tuple[Reason, str], now: Now
    ) -> bool:
        """Whether a changed message is to be said now; if it is only due later, note that time."""
        if said.is_lost:
            due_s = said.at_s + policy.AFTER_LOSS_S
        elif (said.reason, said.message) == words:
            return False
        elif said.reason is not words[0] and len(one.changed_s) <= policy.CHANGES_AT_ONCE_MAX:
            return True
        else:
            due_s = said.at_s + policy.AGAIN_S
        if now.s >= due_s:
            return True
        self.quiet_gangs.explain_at(key, due_s)
        return False

    def _tell_readers(
        self,
        one: _Gang,
        pod: Pod,
        words: tuple[Reason, str],
        explanation: Explanation,
        now: Now,
    ) -> None:
        """Queue the gang's Event: one for each reason, which continues as a series.

        It is what ``quorate why`` prints, so it is said when the condition is, and before it.
        """
        (reason, message), key, members = words, explanation.key, explanation.members
        said = message, explanation.hint, explanation.state, members.total, members.unassigned
        series, is_other = one.series.get(reason), reason is not one.event_reason
        if series is None:
            series = one.series[reason] = _Series(self.stamp(now.wall_s), now.s, said)
        else:
            is_said = series.words == said and not is_other
            due_s = series.at_s + (policy.STILL_SO_S if is_said else policy.AGAIN_S)
            at_once = is_other and len(one.changed_s) <= policy.CHANGES_AT_ONCE_MAX
            if now.s < due_s and not at_once:
                if not is_said:
                    self.quiet_gangs.explain_at(key, due_s)
                return
            series.at_s, series.words, series.count = now.s, said, series.count + 1
        one.event_reason = reason
        self.quiet_gangs.note_said(key, now.s)
        event = SayEvent(
            key=key,
            pod=pod,
            reason=reason,
            message=message,
            of_gang=True,
            count=series.count,
            began_s=series.began_s,
            explanation=explanation,
        )
        self._outbox.put(event, again=not is_other)

    def _tell_before_pods(
        self, one: _Gang, awaited_under: str, explanation: Explanation, now: Now
    ) -> None:
        """Queue the Event of a gang whose clients make no pod before it is admitted.

        Where that was said, it is said once that it is no longer so.
        """
        reason, key = explanation.reason, explanation.key
        holds, last = reason.holds_the_first_pod, one.event_reason
        is_told = one.is_before_pods or holds or (last is not None and last.holds_the_first_pod)
        one.is_before_pods = bool(awaited_under) and is_told
        if one.is_before_pods and (holds or reason is not last):
            pod = Pod("", key.namespace, key.name, scheduler=awaited_under, spec=PodSpec())
            self._tell_readers(one, pod, (reason, explanation.message), explanation, now)

    def _tell_status(self, one: _Gang, view: GangView | None, now: Now) -> None:
        """Queue the status of the gang's object: counts at once, a new message later.

        A message of the same reason waits ``policy.AGAIN_S`` since the last one.
        """
        if view is None or view.key.is_single:
            return
        before = one.status
        if before is not None and before[0] is view.reason and before[1] != view.message:
            due_s = before[2] + policy.AGAIN_S
            if now.s < due_s:
                self.quiet_gangs.explain_at(view.key, due_s)
                view = msgspec.structs.replace(view, message=before[1])
        if before is None or before[:2] != (view.reason, view.message):
            one.status = view.reason, view.message, now.s
        self._outbox.put(SayStatus(view.key, view), again=False)

    def stamp(self, wall_s: float) -> float:
        """Return a wall-clock time (epoch seconds) that no earlier Event has."""
        self._stamp_s = max(wall_s, self._stamp_s + 1e-6)
        return self._stamp_s


def _awaited_under(gang: GangEntry, explainer: Explainer, explanation: Explanation) -> str:
    """Return the scheduler name, ours or not, for which a gang without pods waits; "": for none."""
    if explanation.reason is Reason.OTHER_SCHEDULER and gang.spec is not None and not gang.members:
        return gang.spec.unanswered_by
    return explainer.awaited_under(gang)


def _has_object(gang: GangEntry) -> bool:
    return gang.spec is not None and bool(gang.spec.uid)
