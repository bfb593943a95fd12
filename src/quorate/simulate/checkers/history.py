"""What was true of each pod, node and gang at each revision: the ground that checkers stand on.

In: the store's events, and who writes at the moment. Out: plain records. It reads objects by itself
and shares no code with the core, so that both cannot be wrong in the same way.

A scheduler acts on what it has been told, so most checks ask what was true at the revision up to
which a replica had been told. A pod's life only moves forward (created, bound, ended, gone), hence
one revision for each step says all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pocketkube.store.store import Event, Store

NEVER = 1 << 62
GANG_LABEL = "simulation/gang"
MIN_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
ATTEMPT = "quorate.dev/attempt"
STARTED = "quorate.dev/started"
GROUP_BUCKETS = {
    "podgroups.scheduling.x-k8s.io": "x-k8s",
    "podgroups.scheduling.sigs.k8s.io": "sigs",
    "podgroups.scheduling.k8s.io": "native",
}
PODS_PATH = "/api/v1/pods"
POD_GROUP_PATHS = {
    "x-k8s": "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    "sigs": "/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups",
    "native": "/apis/scheduling.k8s.io/v1alpha2/podgroups",
}
_REFUSALS = ("OutOf", "UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "TaintToleration")

Amounts = dict[str, int]


@dataclass(slots=True)
class PodTruth:
    """One pod, by uid; each number is the revision at which that became true."""

    uid: str
    name: str
    gang: str
    ours: bool
    apart: bool  # from other members of its gang
    wants: Amounts
    created: int
    ungated: int = NEVER
    bound: int = NEVER
    terminating: int = NEVER
    finished: int = NEVER
    gone: int = NEVER
    node: str = ""
    bound_by: str = ""
    bound_late: bool = False  # after the one who sent it had been told that it failed
    phase: str = "Pending"
    refused: bool = False
    told: str = ""  # the message of its condition PodScheduled=False
    attempt: str = ""
    marked: bool = False  # its Binding said that its gang has started
    past: bool = False  # it was bound in a life of its gang that is over

    @property
    def holds_room(self) -> bool:
        """Whether it takes room on its node now."""
        return bool(self.node) and self.finished == NEVER and self.gone == NEVER

    @property
    def is_alive(self) -> bool:
        """Whether it has a node, has not finished and is not being deleted."""
        return self.holds_room and not self.refused and self.terminating == NEVER


@dataclass(slots=True)
class NodeTruth:
    """One name of a node: what it had from which revision on; None while it does not exist."""

    versions: list[tuple[int, Amounts | None, bool]] = field(default_factory=list)

    def at(self, revision: int) -> tuple[Amounts | None, bool]:
        """Return allocatable and cordon at a revision."""
        for since, amounts, cordoned in reversed(self.versions):
            if since <= revision:
                return amounts, cordoned
        return None, False


@dataclass(slots=True)
class GangTruth:
    """One gang of the workload."""

    name: str
    dialect: str
    minima: list[tuple[int, int | None]] = field(default_factory=list)
    pods: dict[str, PodTruth] = field(default_factory=dict)
    bound: int = 0
    quorate_since: int = NEVER  # revision; NEVER when it has to become quorate yet
    quorate_under: str = ""  # who led then
    by_edit: bool = False  # because min was lowered, and not by a bind
    is_on_record: bool = False  # whether a leader that knew it has renewed its Lease since
    quorate_before: list[tuple[int, int]] = field(default_factory=list)  # from and until when
    tampered: bool = False  # a rival bound a member, or a kubelet refused one: no rule says what is
    tampered_before: int = 0  # revision
    partial_s: float = 0.0  # how long it was bound in part while one leader was able to act
    partial_under: str = ""  # that leader
    was_left_so: bool = False  # by an earlier one
    timeout_s: float = 0.0

    def min_at(self, revision: int) -> int | None:
        """Return min at a revision, None when nobody could say."""
        for since, value in reversed(self.minima):
            if since <= revision:
                return value
        return None

    @property
    def min_now(self) -> int:
        """Return min; of an object that is gone, its last one."""
        for _, value in reversed(self.minima):
            if value is not None:
                return value
        return 1

    @property
    def is_partial(self) -> bool:
        """Whether it is bound in part and was never quorate."""
        is_less = 0 < self.bound < self.min_now
        return is_less and self.quorate_since == NEVER and self.is_alive

    @property
    def is_alive(self) -> bool:
        """Whether a member with a node has not finished and is not being deleted."""
        return any(pod.is_alive for pod in self.members())

    @property
    def is_going(self) -> bool:
        """Whether all that is bound is being deleted: a finalizer may hold it for long."""
        bound = [pod for pod in self.members() if pod.node and not pod.refused]
        return all(pod.terminating != NEVER for pod in bound)

    def is_unclear(self, revision: int) -> bool:
        """Whether nobody can say if it had started, by what was told up to a revision."""
        return self.tampered or revision < self.tampered_before

    def has_started_by(self, revision: int) -> bool:
        """Whether it had been quorate, and had not lost all its pods since, at a revision."""
        spans = [*self.quorate_before, (self.quorate_since, NEVER)]
        return any(since <= revision < until for since, until in spans)

    def go_on(self, revision: int, leader: str) -> None:
        """It counts as started, by what its scheduler could know when it bound a member."""
        if self.quorate_since == NEVER:
            self.quorate_since, self.quorate_under, self.is_on_record = revision, leader, False

    def end_life(self, revision: int) -> None:
        """Whatever is bound from now on has to become quorate by itself."""
        if self.quorate_since != NEVER:
            self.quorate_before.append((self.quorate_since, revision))
        self.quorate_since = NEVER

    def is_started_by(self, told: dict[str, int]) -> bool:
        """Whether what was told, by path, says that it has started."""
        if self.quorate_since == NEVER:
            return False
        bound = [pod.bound for pod in self.pods.values() if pod.bound <= self.quorate_since]
        edited, _ = self.minima[-1] if self.minima else (0, None)
        path = POD_GROUP_PATHS.get(self.dialect, PODS_PATH)
        return told.get(PODS_PATH, 0) >= max(bound) and told.get(path, 0) >= edited

    def can_be_known_by(self, replica: str, told: int) -> bool:
        """Whether a replica has something to know from that the gang had started.

        It led when that happened, or a marked member is left, or the Lease says so. A gang whose
        marked members and whose leader are lost before the next renewal leaves no trace.
        """
        return (
            self.is_on_record
            or replica == self.quorate_under
            or any(pod.marked and pod.bound <= told < pod.gone for pod in self.pods.values())
        )

    def members(self) -> list[PodTruth]:
        """Return the pods that exist."""
        return [pod for pod in self.pods.values() if pod.gone == NEVER]


class History:
    """Listens to a store. ``writer`` says who writes while a write is under way."""

    def __init__(self, store: Store) -> None:
        self.pods: dict[str, PodTruth] = {}
        self.by_name: dict[str, PodTruth] = {}
        self.nodes: dict[str, NodeTruth] = {}
        self.gangs: dict[str, GangTruth] = {}
        self.on_node: dict[str, dict[str, PodTruth]] = {}
        self.lease_holder = ""
        self.writer = ""
        self.writes_late = False
        self.on_bound: list[Callable[[PodTruth], None]] = []
        self.goes_on: Callable[[PodTruth, list[PodTruth]], bool] = lambda *_: False
        """Whether a bound pod belongs to the life of these others, none of which is alive now."""
        store.watch("pods", self._pod)
        store.watch("nodes", self._node)
        store.watch("leases.coordination.k8s.io", self._lease)
        for bucket in GROUP_BUCKETS:
            store.watch(bucket, self._group)

    def gang(self, name: str, dialect: str) -> GangTruth:
        """Return the record of a gang, made anew when it is new."""
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
        is_new_bind = bool(spec.get("nodeName")) and not pod.node
        if is_new_bind:
            pod.node, pod.bound = spec["nodeName"], revision
            pod.bound_by, pod.bound_late = self.writer, self.writes_late
            annotations = meta.get("annotations") or {}
            pod.attempt, pod.marked = annotations.get(ATTEMPT, ""), STARTED in annotations
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
        ours = spec.get("schedulerName") == "quorate"
        apart = "podAntiAffinity" in (spec.get("affinity") or {})
        pod = PodTruth(meta["uid"], meta["name"], name, ours, apart, wants, revision)
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
            pod.refused = str(status.get("reason", "")).startswith(_REFUSALS)
        pod.told = ""
        for condition in status.get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                pod.told = f"{condition.get('reason', '')}: {condition.get('message', '')}"

    def _count(self, gang: GangTruth, pod: PodTruth, revision: int, *, is_new_bind: bool) -> None:
        bound = [one for one in gang.pods.values() if one.node and one.gone == NEVER]
        before = [one for one in bound if one is not pod]
        goes_on = any(one.is_alive for one in before) or self.goes_on(pod, before)
        if is_new_bind and not goes_on:
            for one in before:
                one.past = True  # it is the first of a new life
            bound = [pod]
            gang.end_life(revision)
        gang.bound = len([one for one in bound if not (one.refused or one.past)])
        if pod.refused or (is_new_bind and not pod.attempt):
            gang.tampered = True
        if not bound:
            if gang.tampered:
                gang.tampered_before = revision
            gang.end_life(revision)
            gang.tampered, gang.by_edit = False, False
        self._note_quorum(gang, revision)

    def _note_quorum(self, gang: GangTruth, revision: int) -> None:
        if gang.bound and gang.bound >= gang.min_now:
            gang.go_on(revision, self.lease_holder)
        if not gang.is_partial:
            gang.partial_s = 0.0

    def _node(self, event: Event) -> None:
        truth = self.nodes.setdefault(event.entry.name, NodeTruth())
        amounts: Amounts | None = None
        cordoned = False
        if event.type != "DELETED":
            obj = event.object
            found = (obj.get("status") or {}).get("allocatable") or {}
            amounts = {name: _amount(name, value) for name, value in found.items()}
            cordoned = bool(obj["spec"].get("unschedulable"))
        truth.versions.append((event.entry.revision, amounts, cordoned))

    def _group(self, event: Event) -> None:
        revision = event.entry.revision
        gang = self.gang(event.entry.name, GROUP_BUCKETS[event.bucket])
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
            gang.tampered = True  # whether it was quorate depends on when which news was heard

    def _lease(self, event: Event) -> None:
        holder = event.object["spec"].get("holderIdentity")
        self.lease_holder = "" if event.type == "DELETED" else str(holder or "")


def _amount(name: str, value: str) -> int:
    """Read what the simulation itself writes: whole numbers, and memory in Gi."""
    return int(value.removesuffix("Gi")) if value.removesuffix("Gi").isdigit() else 0
