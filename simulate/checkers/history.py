"""The state of each pod, node and gang at each revision: the facts that checkers use.

In: the store's events, and the present writer. Out: plain records. It parses objects itself and
shares no code with the core, so that both cannot be wrong in the same way.

A scheduler acts on the events it has received, so most checks use the state at the last revision
that a replica has received. A pod only moves forward (created, bound, ended, gone), so one revision
for each step describes its life.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pocketkube.store.store import Event, Store
from quorate.core.model import GangKey
from simulate.checkers.records import (
    ATTEMPT,
    GANG_LABEL,
    GROUP_BUCKETS,
    MIN_LABEL,
    NEVER,
    REFUSALS,
    RULED_LABEL,
    STARTED,
    Amounts,
    GangTruth,
    NodeTruth,
    NodeVersion,
    PodTruth,
)


class History:
    """Listens to a store. ``writer`` names the writer of the write under way."""

    def __init__(self, store: Store) -> None:
        self.pods: dict[str, PodTruth] = {}
        self.by_name: dict[str, PodTruth] = {}
        self.nodes: dict[str, NodeTruth] = {}
        self.gangs: dict[str, GangTruth] = {}
        self.ours = {"quorate"}
        """The scheduler names that belong to quorate."""
        self.objects: dict[tuple[str, str, str], str] = {}
        """The gang of each object, by dialect, namespace and name."""
        self.on_node: dict[str, dict[str, PodTruth]] = {}
        self.lease_holder = ""
        self.writer = ""
        self.writes_late = False
        self.on_bound: list[Callable[[PodTruth], None]] = []
        self.goes_on: Callable[[PodTruth, list[PodTruth]], bool] = lambda *_: False
        """Whether a bound pod belongs to the same life as these others, none of them alive now."""
        store.watch("pods", self._pod)
        store.watch("nodes", self._node)
        store.watch("leases.coordination.k8s.io", self._lease)
        for bucket in GROUP_BUCKETS:
            store.watch(bucket, self._group)

    def of_object(self, dialect: str, namespace: str, name: str) -> str:
        """Return the gang whose object has this name."""
        return self.objects.get((dialect, namespace, name), name)

    def of_key(self, key: GangKey) -> str:
        """Return the gang with this key of the core."""
        return self.of_object(key.dialect, key.namespace, key.name)

    def gang(self, name: str, dialect: str) -> GangTruth:
        """Return the record of a gang, created on first use."""
        found = self.gangs.get(name)
        if found is None:
            found = self.gangs[name] = GangTruth(name, dialect)
        return found

    # Events

    def _pod(self, event: Event) -> None:
        obj, revision = event.object, event.entry.revision
        meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
        pod = self.pods.get(meta["uid"])
        if pod is None:
            pod = self._met(meta, spec, revision)
        if event.type == "DELETED":
            pod.gone = revision
            self.on_node.get(pod.node, {}).pop(pod.uid, None)
            if self.by_name.get(pod.name) is pod:
                del self.by_name[pod.name]
        self._step(pod, meta, spec, status, revision)
        self._move(pod, (meta.get("labels") or {}).get(GANG_LABEL, ""), revision)
        is_new_bind = bool(spec.get("nodeName")) and not pod.node
        if is_new_bind:
            pod.node, pod.bound = spec["nodeName"], revision
            pod.bound_by, pod.bound_late = self.writer, self.writes_late
            annotations = meta.get("annotations") or {}
            pod.attempt, pod.marked = annotations.get(ATTEMPT, ""), STARTED in annotations
            pod.marked &= not pod.moved
            self.on_node.setdefault(pod.node, {})[pod.uid] = pod
        gang = self.gangs.get(pod.gang)
        if gang is not None:
            self._count(gang, pod, revision, is_new_bind=is_new_bind)
        for tell in self.on_bound if is_new_bind else ():
            tell(pod)

    def _met(self, meta: dict[str, Any], spec: dict[str, Any], revision: int) -> PodTruth:
        labels = meta.get("labels") or {}
        wants = {"pods": 1}
        for container in spec["containers"]:
            for name, amount in (container.get("resources") or {}).get("requests", {}).items():
                wants[name] = wants.get(name, 0) + int(amount)
        name = labels.get(GANG_LABEL, "")
        ours = spec.get("schedulerName") in self.ours
        is_plain = RULED_LABEL not in labels
        apart = is_plain and "podAntiAffinity" in (spec.get("affinity") or {})
        pod = PodTruth(meta["uid"], meta["name"], name, ours, apart, wants, revision)
        pod.namespace, pod.is_plain = meta["namespace"], is_plain
        pod.owner = next((one["uid"] for one in meta.get("ownerReferences") or ()), "")
        pod.apart_from = name if apart else ""
        pod.priority = spec.get("priority") or 0
        pod.selector = spec.get("nodeSelector") or {}
        pod.tolerates = any("simulation" in one.get("key", "") for one in spec["tolerations"])
        self.pods[pod.uid] = self.by_name[pod.name] = pod
        gang = self.gangs.get(name)
        if gang is not None:
            gang.pods[pod.uid] = pod
            if MIN_LABEL in labels and not gang.minima:
                gang.minima.append((0, int(labels[MIN_LABEL])))
        return pod

    @staticmethod
    def _step(
        pod: PodTruth,
        meta: dict[str, Any],
        spec: dict[str, Any],
        status: dict[str, Any],
        revision: int,
    ) -> None:
        if pod.ungated == NEVER and not spec.get("schedulingGates"):
            pod.ungated = revision
        if pod.terminating == NEVER and "deletionTimestamp" in meta:
            pod.terminating = revision
        pod.phase = status.get("phase", "Pending")
        if pod.finished == NEVER and pod.phase in ("Succeeded", "Failed"):
            pod.finished = revision
            pod.refused = str(status.get("reason", "")).startswith(REFUSALS)
        pod.nominated = status.get("nominatedNodeName", "")
        pod.told = ""
        for condition in status.get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                pod.told = f"{condition.get('reason', '')}: {condition.get('message', '')}"

    def _move(self, pod: PodTruth, name: str, revision: int) -> None:
        """Move a pod to the gang of its label; the starts of both gangs are no longer judged."""
        if name == pod.gang:
            return
        before, after = self.gangs.get(pod.gang), self.gangs.get(name)
        pod.gang, pod.moved, pod.apart = name, True, False
        if before is not None:
            del before.pods[pod.uid]
            before.tampered = True  # the binder of its members may not know it yet
            self._count(before, pod, revision, is_new_bind=False)
        if after is not None:
            after.pods[pod.uid] = pod
            after.tampered |= bool(pod.node)

    def _count(self, gang: GangTruth, pod: PodTruth, revision: int, *, is_new_bind: bool) -> None:
        bound = [one for one in gang.pods.values() if one.node and one.gone == NEVER]
        before = [one for one in bound if one is not pod]
        goes_on = any(one.is_alive for one in before) or self.goes_on(pod, before)
        if is_new_bind and not goes_on:
            for one in before:
                one.past = True  # the pod begins a new life of the gang
            gang.end_life(revision)
        done = gang.done([one for one in bound if one.past])
        gang.bound = len([one for one in bound if not (one.refused or one.past)]) + len(done)
        if pod.refused or (is_new_bind and (pod.moved or not pod.attempt)):
            gang.tampered = True
        if not bound:
            if gang.tampered:
                gang.tampered_before = revision
            gang.end_life(revision)
            gang.tampered, gang.by_edit = False, False
        self._note_quorum(gang, revision)

    def _note_quorum(self, gang: GangTruth, revision: int) -> None:
        if gang.bound and gang.bound >= gang.min_now:
            if gang.quorate_since == NEVER and gang.bound - gang.leaving < gang.min_now:
                gang.tampered = True  # its scheduler may hear of the bind first, or of the deletion
            gang.go_on(revision, self.lease_holder)
        if not gang.is_partial:
            gang.partial_s = 0.0

    def _node(self, event: Event) -> None:
        truth = self.nodes.setdefault(event.entry.name, NodeTruth())
        amounts: Amounts | None = None
        cordoned, labels, is_tainted = False, {}, False
        if event.type != "DELETED":
            obj = event.object
            found = (obj.get("status") or {}).get("allocatable") or {}
            amounts = {name: _amount(name, value) for name, value in found.items()}
            cordoned = bool(obj["spec"].get("unschedulable"))
            labels = dict(obj["metadata"].get("labels") or {})
            is_tainted = bool(obj["spec"].get("taints"))
        truth.versions.append(
            NodeVersion(event.entry.revision, amounts, cordoned, labels, is_tainted)
        )

    def _group(self, event: Event) -> None:
        revision = event.entry.revision
        dialect, namespace = GROUP_BUCKETS[event.bucket], event.object["metadata"]["namespace"]
        gang = self.gang(self.of_object(dialect, namespace, event.entry.name), dialect)
        value: int | None = None
        if event.type != "DELETED":
            spec = event.object["spec"]
            value = spec.get("minMember")
            if gang.dialect == "native":
                value = spec["schedulingPolicy"]["gang"]["minCount"]
        if not gang.minima or gang.minima[-1][1] != value:
            gang.minima.append((revision, value))
        was_quorate = gang.quorate_since != NEVER
        self._note_quorum(gang, revision)
        gang.by_edit |= not was_quorate and gang.quorate_since != NEVER
        if gang.by_edit and gang.bound < gang.min_now:
            gang.tampered = True  # whether it was quorate depends on the order of events

    def _lease(self, event: Event) -> None:
        holder = event.object["spec"].get("holderIdentity")
        self.lease_holder = "" if event.type == "DELETED" else str(holder or "")


def _amount(name: str, value: str) -> int:
    """Parse an amount that the simulation writes: a whole number, or memory in Gi."""
    return int(value.removesuffix("Gi")) if value.removesuffix("Gi").isdigit() else 0
