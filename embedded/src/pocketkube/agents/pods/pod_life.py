"""Pods on nodes: they are admitted or refused, start, end, are restarted, and go.

In: versions of pods, and time. Out: writes through ``api``. Called by ``agents``. Every decision is
``examine``: it looks only at what is true now, so it does not matter why it is taken - news, a
timer, or a node that recovers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from pocketkube.agents.facts import TERMINAL, PodFacts, PodReader
from pocketkube.agents.ground import Node, Pod, Refusal, Room, Stage, refusal
from pocketkube.agents.pods import pod_status
from pocketkube.agents.settings import (
    COMPLETE_AFTER,
    FAIL_AFTER,
    REFUSE_PODS,
    START_AFTER,
    Settings,
    duration_s,
)
from pocketkube.api.api import Api
from pocketkube.api.background import Recorder, WorkQueue
from pocketkube.api.writing import Deleting
from pocketkube.errors import ApiError
from pocketkube.objects import Object, parsed_time_s, rfc3339

Key = tuple[str, str]
"""Namespace and name of a pod."""

_TURNS_MAX = 4  # at once, from binding to a first restart; what is due then rings a timer
_RESTARTS_COUNTED = 16  # the wait has long reached its maximum


class PodLife:
    """All pods that are bound, on the nodes of ``nodes``."""

    def __init__(
        self,
        api: Api,
        settings: Settings,
        chance: random.Random,
        nodes: Mapping[str, Node],
        due: WorkQueue[Key],
    ) -> None:
        self._api = api
        self._settings = settings
        self._chance = chance
        self._nodes = nodes
        self._due = due
        self._recorder = Recorder(api)
        self._reader = PodReader()
        self._pods: dict[Key, Pod] = {}
        self._on_node: dict[str, dict[Key, None]] = {}
        self._second, self._second_text = -1, ""
        self.writing: Key | None = None
        """The pod that is being written: the one event that follows is no news to us."""

    # What may make something due

    def changed(self, key: Key, raw: bytes | None, now_s: float) -> None:
        """Take in a version of a pod, None if it is gone."""
        known = self._pods.get(key)
        facts = None
        if raw is not None:
            try:
                facts = self._reader.read(raw)
            except ValueError:
                facts = None  # a kubelet could not read it either
        if known is not None and (facts is None or facts.uid != known.facts.uid):
            self._forget(key, known)
            known = None
        if facts is None:
            return
        if known is None:
            known = self._met(key, facts, now_s)
        else:
            self._renew(known, facts)
        self.examine(known, now_s)

    def node_acts(self, name: str, now_s: float) -> None:
        """Look at all pods of a node whose agent begins to act."""
        pods = [self._pods[key] for key in self._on_node.get(name, ())]
        node = self._nodes[name]
        node.room = Room()
        for pod in pods:
            if pod.holds:
                node.room.take(pod.facts.needs)
        for pod in pods:
            self.examine(pod, now_s)

    def look_at(self, key: Key, now_s: float) -> None:
        """Look at a pod for which something may be due."""
        pod = self._pods.get(key)
        if pod is not None:
            self.examine(pod, now_s)

    def examine(self, pod: Pod, now_s: float) -> None:
        """Do what is due for a pod, and see to it that it is looked at when the next thing is."""
        node = self._nodes.get(pod.facts.node)
        if node is None or not node.acts or pod.stage is Stage.GONE:
            return
        if pod.facts.deleting:
            self._remove_when_due(pod, now_s)
            return
        if pod.stage is Stage.BOUND:
            self._admit(pod, node, now_s)
        for _ in range(_TURNS_MAX):
            if pod.due_s is None or pod.due_s > now_s:
                break
            self._take_turn(pod, node, now_s)
        self._arm(pod, pod.due_s)

    # Coming and going

    def _met(self, key: Key, facts: PodFacts, now_s: float) -> Pod:
        """Return the record of a pod that is new here: just bound, or older than this process."""
        pod = Pod(facts, Stage.BOUND)
        self._pods[key] = pod
        self._on_node.setdefault(facts.node, {})[key] = None
        if facts.phase in TERMINAL:
            pod.stage = Stage.ENDED
        elif facts.phase != "Pending":
            pod.stage = Stage.RUNNING
            self._hold(pod)
            self._keep_address(pod)
            pod.began_s = now_s - self._age_s(facts)
            self._plan_end(pod, warns=False)
        return pod

    def _age_s(self, facts: PodFacts) -> float:
        try:
            return max(0.0, self._api.now_s() - parsed_time_s(facts.start_time))
        except ValueError:
            return 0.0

    def _keep_address(self, pod: Pod) -> None:
        node = self._nodes.get(pod.facts.node)
        prefix, _, number = pod.facts.pod_ip.rpartition(".")
        if node is not None and f"{prefix}." == node.prefix and number.isdecimal():
            pod.address = int(number)
            node.addresses.add(pod.address)

    def _renew(self, pod: Pod, facts: PodFacts) -> None:
        """Take in what others changed."""
        before, pod.facts = pod.facts, facts
        if facts.phase in TERMINAL and pod.stage not in (Stage.ENDED, Stage.GONE):
            self._release(pod)
            pod.stage, pod.due_s = Stage.ENDED, None
        if pod.holds and facts.needs is not before.needs:
            node = self._nodes.get(facts.node)
            if node is not None:
                node.room.free(before.needs)
                node.room.take(facts.needs)
        if pod.stage is Stage.RUNNING:
            if facts.delays != before.delays:
                self._plan_end(pod, warns=True)
            if facts.has_gates and not facts.deleting:
                self._write(pod, lambda obj: pod_status.set_readiness(obj, self._now()))

    def _forget(self, key: Key, pod: Pod) -> None:
        self._release(pod)
        del self._pods[key]
        there = self._on_node[pod.facts.node]
        del there[key]
        if not there:
            del self._on_node[pod.facts.node]

    def _remove_when_due(self, pod: Pod, now_s: float) -> None:
        if pod.removal_s is None:
            grace_s = self._settings.removal_s
            if pod.facts.grace_s is not None:
                grace_s = min(grace_s, pod.facts.grace_s)
            runs = pod.stage in (Stage.RUNNING, Stage.WAITING)
            pod.removal_s = now_s + (grace_s if runs else 0.0)
        if pod.removal_s > now_s:
            self._arm(pod, pod.removal_s)
            return
        facts = pod.facts
        if facts.has_finalizers and pod.stage is not Stage.ENDED:
            # Whoever set them wants to know how it ended; others see no more than the deletion.
            self._write(pod, lambda obj: pod_status.set_killed(obj, self._now()))
        self._release(pod)
        pod.stage, pod.due_s = Stage.GONE, None
        how = Deleting(grace_period_s=0, uid=facts.uid)
        try:
            pods = self._api.registry.named("v1", "pods")
            self._api.delete(pods, facts.namespace, facts.name, how)
        except ApiError:
            return  # it is gone already, or another one has its name: that is in the news

    # Stages

    def _admit(self, pod: Pod, node: Node, now_s: float) -> None:
        facts = pod.facts
        refused = self._refusal(facts, node)
        if refused is not None:
            pod.stage = Stage.ENDED
            reason, message = refused
            self._warn(facts, reason, message)
            self._write(pod, lambda obj: pod_status.set_refused(obj, reason, message, self._now()))
            return
        self._hold(pod)
        after_s = self._delay_s(facts, START_AFTER, warns=True)
        pod.stage = Stage.STARTING
        pod.due_s = now_s + (self._settings.start_s if after_s is None else after_s)

    def _refusal(self, facts: PodFacts, node: Node) -> Refusal | None:
        told = node.facts.annotations.get(REFUSE_PODS, "")
        if told and told != "false":
            return Refusal(told, f"node {node.facts.name} was told to refuse pods")
        return refusal(facts.needs, node.facts, node.room)

    def _take_turn(self, pod: Pod, node: Node, now_s: float) -> None:
        """Do what the pod's time has come for; sets its next turn."""
        if pod.stage is Stage.STARTING:
            ip = node.facts.host_ip or node.own_ip
            place = pod_status.Place(ip, node.give_address(pod))
            self._write(pod, lambda obj: pod_status.set_running(obj, place, self._now()))
            self._begin(pod, now_s)
        elif pod.stage is Stage.WAITING:
            self._write(pod, lambda obj: pod_status.set_running_again(obj, self._now()))
            self._begin(pod, now_s)
        elif pod.exit_code and pod.facts.restarts_failed:
            self._restart(pod, now_s)
        else:
            code = pod.exit_code
            self._write(pod, lambda obj: pod_status.set_ended(obj, code, self._now()))
            self._release(pod)
            pod.stage, pod.due_s = Stage.ENDED, None

    def _begin(self, pod: Pod, now_s: float) -> None:
        pod.stage, pod.began_s, pod.drawn_s = Stage.RUNNING, now_s, None
        self._plan_end(pod, warns=not pod.restarts)

    def _plan_end(self, pod: Pod, *, warns: bool) -> None:
        """Decide when the containers will exit, and with which code; later wishes replace it."""
        facts = pod.facts
        ends_s = self._first_delay_s(facts, warns=warns)
        fails_s = self._delay_s(facts, FAIL_AFTER, warns=warns)
        run_time = self._settings.run_time
        if ends_s is None and fails_s is None and run_time is not None and facts.may_finish:
            if pod.drawn_s is None:
                pod.drawn_s = run_time(self._chance)
            ends_s = pod.drawn_s
        fails = fails_s is not None and (ends_s is None or fails_s < ends_s)
        run_s = fails_s if fails else ends_s
        pod.exit_code = 1 if fails else 0
        pod.due_s = None if run_s is None else pod.began_s + run_s

    def _restart(self, pod: Pod, now_s: float) -> None:
        """Restart containers that failed: at once the first time, then as CrashLoopBackOff."""
        code = pod.exit_code
        if pod.restarts == 0:
            pod.restarts = 1
            self._write(pod, lambda obj: pod_status.set_restarted(obj, code, self._now()))
            self._begin(pod, now_s)
            return
        doublings = min(pod.restarts, _RESTARTS_COUNTED) - 1
        wait_s = min(self._settings.restart_s * 2**doublings, self._settings.restart_s_max)
        pod.restarts += 1
        self._write(pod, lambda obj: pod_status.set_waiting(obj, code, wait_s, self._now()))
        pod.stage, pod.due_s = Stage.WAITING, now_s + wait_s

    # Small things

    def _first_delay_s(self, facts: PodFacts, *, warns: bool) -> float | None:
        for annotation in COMPLETE_AFTER:
            if annotation in facts.delays:
                return self._delay_s(facts, annotation, warns=warns)
        return None

    def _delay_s(self, facts: PodFacts, annotation: str, *, warns: bool) -> float | None:
        """Return what an annotation says; None when it is not there, or says nothing usable."""
        text = facts.delays.get(annotation)
        if text is None:
            return None
        try:
            return duration_s(text)
        except ValueError as error:
            if warns:
                self._warn(facts, "InvalidAnnotation", f"{annotation}: {error}")
            return None

    def _hold(self, pod: Pod) -> None:
        pod.holds = True
        node = self._nodes.get(pod.facts.node)
        if node is not None:
            node.room.take(pod.facts.needs)

    def _release(self, pod: Pod) -> None:
        node = self._nodes.get(pod.facts.node)
        if node is not None:
            if pod.holds:
                node.room.free(pod.facts.needs)
            node.addresses.discard(pod.address)
        pod.holds, pod.address = False, 0

    def _arm(self, pod: Pod, due_s: float | None) -> None:
        if due_s is not None:
            self._due.add_at((pod.facts.namespace, pod.facts.name), due_s)

    def _warn(self, facts: PodFacts, reason: str, message: str) -> None:
        metadata = {"namespace": facts.namespace, "name": facts.name, "uid": facts.uid}
        about: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        self._recorder.record("kubelet", about, "Warning", reason, message, facts.node)

    def _now(self) -> str:
        second = int(self._api.now_s())
        if second != self._second:  # a thousand pods start in one second, and writing it is slow
            self._second, self._second_text = second, rfc3339(second)
        return self._second_text

    def _write(self, pod: Pod, change: Callable[[Object], None]) -> None:
        """Write the pod's status, unless it has ended or is another one of that name by now."""
        facts = pod.facts

        def change_if_alive(obj: Object) -> None:
            if obj["metadata"].get("uid") == facts.uid and not pod_status.has_ended(obj):
                change(obj)

        self.writing = (facts.namespace, facts.name)
        try:
            self._api.amend(
                "pods", facts.namespace, facts.name, change_if_alive, subresource="status"
            )
        finally:
            self.writing = None
