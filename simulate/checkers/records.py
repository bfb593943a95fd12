"""Plain records of the state of each pod, node and gang at each revision.

Written by ``history``, read by all checkers and by ``chaos``. They share no code with the core, so
that both cannot be wrong in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

NEVER = 1 << 62
GANG_LABEL = "simulation/gang"
RULED_LABEL = "simulation/ruled"
"""Marks pods with rules besides room and anti-affinity: room alone does not decide if they fit."""
MIN_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
ATTEMPT = "quorate.dev/attempt"
STARTED = "quorate.dev/started"
GROUP_BUCKETS = {
    "podgroups.scheduling.x-k8s.io": "x-k8s",
    "podgroups.scheduling.sigs.k8s.io": "sigs",
    "podgroups.scheduling.k8s.io": "native",
    "podgroups.scheduling.volcano.sh": "volcano",
}
PODS_PATH = "/api/v1/pods"
POD_GROUP_PATHS = {
    "x-k8s": "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    "sigs": "/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups",
    "native": "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    "volcano": "/apis/scheduling.volcano.sh/v1beta1/podgroups",
}
REFUSALS = ("OutOf", "UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "TaintToleration")

Amounts = dict[str, int]


@dataclass(slots=True)
class PodTruth:
    """One pod, by uid; each number is the revision at which the state began."""

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
    bound_late: bool = False  # after its sender got an error
    phase: str = "Pending"
    refused: bool = False
    told: str = ""  # the message of its condition PodScheduled=False
    attempt: str = ""
    marked: bool = False  # its Binding said that its gang has started
    past: bool = False  # it was bound in a life of its gang that is over
    owner: str = ""  # uid of who made it
    namespace: str = "default"
    priority: int = 0
    is_plain: bool = True
    selector: dict[str, str] = field(default_factory=dict)
    tolerates: bool = False
    nominated: str = ""
    moved: bool = False  # it was relabelled into another gang
    apart_from: str = ""  # the gang that its anti-affinity names, also when it has left it

    @property
    def holds_room(self) -> bool:
        """Whether it takes room on its node now."""
        return bool(self.node) and self.finished == NEVER and self.gone == NEVER

    @property
    def is_alive(self) -> bool:
        """Whether it has a node, has not finished and is not being deleted."""
        return self.holds_room and not self.refused and self.terminating == NEVER


class NodeVersion(NamedTuple):
    """A node's state from one revision on; ``amounts`` is None while it does not exist."""

    since: int
    amounts: Amounts | None = None
    cordoned: bool = False
    labels: Mapping[str, str] = MappingProxyType({})
    is_tainted: bool = False

    def suits(self, pod: PodTruth) -> bool:
        """Whether it takes the pod, by its labels and taints."""
        if self.is_tainted and not pod.tolerates:
            return False
        return pod.selector.items() <= self.labels.items()


@dataclass(slots=True)
class NodeTruth:
    """The states of all nodes of one name, each with its first revision."""

    versions: list[NodeVersion] = field(default_factory=list)

    def version_at(self, revision: int) -> NodeVersion:
        """Return the node's state at a revision."""
        for version in reversed(self.versions):
            if version.since <= revision:
                return version
        return NodeVersion(0)

    def at(self, revision: int) -> tuple[Amounts | None, bool]:
        """Return allocatable amounts, and whether it is cordoned, at a revision."""
        version = self.version_at(revision)
        return version.amounts, version.cordoned


@dataclass(slots=True)
class GangTruth:
    """One gang of the workload."""

    name: str
    dialect: str
    minima: list[tuple[int, int | None]] = field(default_factory=list)
    pods: dict[str, PodTruth] = field(default_factory=dict)
    bound: int = 0
    quorate_since: int = NEVER  # revision; NEVER when it has to become quorate yet
    quorate_for: int = NEVER  # the same, as known to the sender of the bind that let it go on
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
        """Return min at a revision; None if it was unknown then."""
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
    def leaving(self) -> int:
        """How many of ``bound`` are being deleted: they do not count towards quorum."""
        bound = (pod for pod in self.members() if pod.node and not (pod.refused or pod.past))
        return sum(pod.terminating != NEVER for pod in bound)

    @property
    def is_going(self) -> bool:
        """Whether all bound pods are being deleted, which a finalizer may delay for long."""
        bound = [pod for pod in self.members() if pod.node and not pod.refused]
        return all(pod.terminating != NEVER for pod in bound)

    def is_unclear(self, revision: int) -> bool:
        """Whether the state at a revision does not show if the gang had started."""
        return self.tampered or revision < self.tampered_before

    def has_started_by(self, revision: int) -> bool:
        """Whether it had been quorate, and had not lost all its pods since, at a revision."""
        spans = [*self.quorate_before, (self.quorate_for, NEVER)]
        return any(since <= revision < until for since, until in spans)

    def go_on(self, revision: int, leader: str, told: int = NEVER) -> None:
        """It counts as started, by what its scheduler could know when it bound a member.

        ``told`` is the revision by which that scheduler knew it as started before the bind.
        """
        if self.quorate_since == NEVER:
            self.quorate_since, self.quorate_under, self.is_on_record = revision, leader, False
            self.quorate_for = min(revision, told)

    def end_life(self, revision: int) -> None:
        """End the gang's life: pods bound from now on have to become quorate again."""
        if self.quorate_since != NEVER:
            self.quorate_before.append((self.quorate_for, revision))
        self.quorate_since = self.quorate_for = NEVER

    def is_started_by(self, told: dict[str, int]) -> bool:
        """Whether the revisions received, by path, show that the gang has started."""
        if self.quorate_since == NEVER or not told:
            return False
        bound = [pod.bound for pod in self.pods.values() if pod.bound <= self.quorate_since]
        edited, _ = self.minima[-1] if self.minima else (0, None)
        path = POD_GROUP_PATHS.get(self.dialect, PODS_PATH)
        return told.get(PODS_PATH, 0) >= max(bound, default=0) and told.get(path, 0) >= edited

    def can_be_known_by(self, replica: str, told: int) -> bool:
        """Whether a replica can know that the gang had started.

        It can if it led at that time, or a marked member of that life is left, or the Lease records
        it. A gang whose marked members and leader are lost before the next renewal leaves no trace.
        """
        return (
            self.is_on_record
            or replica == self.quorate_under
            or any(
                pod.marked and not pod.past and pod.bound <= told < pod.gone
                for pod in self.pods.values()
            )
        )

    def lost_unheard(self, pod: PodTruth, told: int) -> int:
        """Return how many members were lost without the sender of a pod's bind knowing it."""
        return sum(
            one.bound < pod.bound and told < one.gone != NEVER and not (one.refused and one.attempt)
            for one in self.pods.values()
        )

    @property
    def state(self) -> str:
        """Return how many members are bound, in words."""
        is_quorate = self.quorate_since != NEVER
        since = f", quorate since revision {self.quorate_since}" if is_quorate else ""
        return f"{self.bound} of {self.min_now} bound{since}"

    def done(self, past: Sequence[PodTruth]) -> list[PodTruth]:
        """Return which of these past members count: they succeeded, and their run goes on.

        It does if all others were made by somebody who made members of an earlier life too.
        """
        uids, owners = {pod.uid for pod in past}, {pod.owner for pod in past}
        current = {
            pod.owner for pod in self.members() if pod.uid not in uids and pod.finished == NEVER
        }
        if not current <= owners:
            return []
        return [pod for pod in past if pod.phase == "Succeeded" and pod.owner in current]

    def members(self) -> list[PodTruth]:
        """Return the pods that exist."""
        return [pod for pod in self.pods.values() if pod.gone == NEVER]
