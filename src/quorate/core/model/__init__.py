"""The nouns of the core: nodes, pods, pod specs and gangs, as values.

Written by ``dialects`` and ``shell.watch`` from Kubernetes objects; read by all of the core.
All values are frozen: a new version of an object is a new value. Resource amounts are integers in
base units: millicores for ``cpu``, bytes or plain counts for everything else.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from quorate.core.model.devices import (
    Allocation,
    DeviceClass,
    DeviceId,
    PodClaim,
    ResourceClaim,
    ResourceSlice,
)
from quorate.core.model.selectors import (
    LabelSelector,
    PodSelector,
    PodTerm,
    PreferredTerm,
    Requirement,
    SelectorTerm,
    SpreadConstraint,
    Taint,
    Toleration,
    WeightedPodTerm,
    all_of,
)
from quorate.core.model.storage import ClaimUse

__all__ = [
    "DEFAULT_SCHEDULER",
    "EVERY_ADDRESS",
    "Allocation",
    "ClaimUse",
    "DeviceClass",
    "DeviceId",
    "GangKey",
    "GangSpec",
    "HostPort",
    "LabelSelector",
    "Membership",
    "Namespace",
    "Node",
    "Owner",
    "Pod",
    "PodClaim",
    "PodSelector",
    "PodSpec",
    "PodTerm",
    "PreferredTerm",
    "Requirement",
    "ResourceClaim",
    "ResourceSlice",
    "SelectorTerm",
    "SpreadConstraint",
    "Taint",
    "Toleration",
    "WeightedPodTerm",
    "all_of",
]


class GangKey(NamedTuple):
    """Who a gang is. The same name in two namespaces, or in two dialects, is two gangs.

    ``dialect`` is ``"pod"`` for a pod that belongs to no gang: it is a gang of one, named by its
    own name and uid, so that every pod passes through the same queue under the same rule.
    """

    namespace: str
    dialect: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.bare_name}"

    @property
    def bare_name(self) -> str:
        """The name as a person knows it: of a pod that belongs to no gang without its uid."""
        return self.name.rpartition("@")[0] if self.is_single else self.name

    @property
    def is_single(self) -> bool:
        """Whether this is an ordinary pod that belongs to no gang."""
        return self.dialect == "pod"


DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler of pods that name none: Kubernetes' own."""
EVERY_ADDRESS = "0.0.0.0"
"""The address of a host port that is taken on all addresses of its node."""


def is_address_taken(wanted: str, taken: Collection[str]) -> bool:
    """Whether a host port cannot be had on an address, where these are taken for it."""
    return bool(taken) and (wanted == EVERY_ADDRESS or wanted in taken or EVERY_ADDRESS in taken)


class HostPort(NamedTuple):
    """A host port that a pod takes on its node."""

    protocol: str
    ip: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Whether both cannot be on one node (kube-scheduler's NodePorts rule)."""
        same = self.port == other.port and self.protocol == other.protocol
        return same and is_address_taken(self.ip, (other.ip,))


class PodSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that a filter or a score reads of a pod. Pods of one spec are one pod class.

    ``requests`` are sorted by name and include init containers, sidecars and overhead, as
    kube-scheduler's NodeResourcesFit computes them. ``required_terms`` is None when the pod has no
    required node affinity; an empty tuple matches no node. ``affinity`` and ``anti_affinity`` are
    the required terms, ``preferred_affinity`` those of both. ``node_features`` must be declared
    by the node. ``scored`` is cpu and memory as scores of allocation count them,
    ``scored_pending`` the same of a pod that has no node yet, where it differs. ``containers``
    counts init containers too.
    """

    requests: tuple[tuple[str, int], ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    required_terms: tuple[SelectorTerm, ...] | None = None
    preferred_terms: tuple[PreferredTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    preferred_affinity: tuple[WeightedPodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    node_features: tuple[str, ...] = ()
    scored: tuple[int, int] = (0, 0)
    scored_pending: tuple[int, int] | None = None
    containers: int = 1


class Owner(NamedTuple):
    """The controller that makes a pod, as a person would name it (Deployment, not ReplicaSet)."""

    api_version: str
    kind: str
    name: str

    @property
    def title(self) -> str:
        """The owner as a sentence names it: "Job train"."""
        return f"{self.kind} {self.name}"


class Meant(NamedTuple):
    """A gang that a pod was meant for, and does not belong to; ``words`` say where it is named.

    Such as "annotation scheduling.x-k8s.io/pod-group is read by no scheduler".
    """

    gang: GangKey
    words: str


class Membership(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a pod names its gang. ``min_count`` is set where the pod itself carries it (labels).

    ``task`` is the pod's part in the gang, as ``GangSpec.min_by_task`` names it.
    """

    key: GangKey
    min_count: int | None = None
    task: str = ""


class Pod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod, as the core sees it.

    ``defect`` says why the pod cannot be read or must not be placed as it is (malformed, or a label
    that looks like a gang's but is nobody's); ``warning`` is said aloud but holds nothing back.
    ``claims`` (of volumes) and ``device_claims`` are no part of the spec: alike pods of a
    StatefulSet have each a claim of their own.
    ``attempt`` is the id that our Binding left on the pod, ``attempt_size`` that attempt's size;
    ``bound_for`` names the gang that the Binding was of, as the journal does.
    ``started`` marks the members that were bound when all others of a quorum were, or later.
    ``refusal`` is the kubelet's reason, such as OutOfcpu, for not running it where it was bound.
    ``hold_s`` is how long room is reserved for its replacement; None: its gang's, or the default.
    ``nominated`` is the node on which it was promised room; ``start_time`` is the API's own text
    (UTC, so that it sorts). ``preempted`` says that it terminates because a scheduler preempted it.
    ``run`` tells what one controller made, such as one Job, from a later run of the same name; it
    is of members of gangs alone.
    ``meant`` is set where the pod names its gang in vain. ``gathered_by`` is the API whose
    controllers give a gang to a pod without one if its owner asks for that; "" if none do.
    ``unanswered`` is of another scheduler's member without a node: no scheduler has written its
    condition PodScheduled.
    """

    uid: str
    namespace: str
    name: str
    scheduler: str
    spec: PodSpec
    created_s: float = 0.0
    node: str = ""
    phase: str = "Pending"
    priority: int = 0
    claims: tuple[ClaimUse, ...] = ()
    device_claims: tuple[PodClaim, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    gates: tuple[str, ...] = ()
    terminating: bool = False
    membership: Membership | None = None
    owner: Owner | None = None
    defect: str = ""
    defect_reason: str = ""
    warning: str = ""
    attempt: str = ""
    attempt_size: int = 0
    bound_for: str = ""
    started: bool = False
    refusal: str = ""
    hold_s: float | None = None
    nominated: str = ""
    start_time: str = ""
    preempted: bool = False
    never_preempts: bool = False
    run: str = ""
    meant: Meant | None = None
    gathered_by: str = ""
    unanswered: bool = False

    @property
    def finished(self) -> bool:
        """Whether the pod has ended, so that it holds no room any more."""
        return self.phase in ("Succeeded", "Failed")


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node: its name, labels, taints, cordon and allocatable resources (with ``pods``).

    ``declared_features`` are sorted.
    """

    name: str
    allocatable: tuple[tuple[str, int], ...]
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    declared_features: tuple[str, ...] = ()


class Namespace(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A namespace: its labels decide which pods a ``namespaceSelector`` means."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()


class Queue(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A queue of Volcano's. ``closed``: its gangs may not start, as it is closed or closes.

    ``parent`` is the queue above it; "" means ``root``. ``allocated`` is what its status says that
    its gangs take, in base units, sorted, without zeros.
    """

    name: str
    closed: bool = False
    parent: str = ""
    allocated: tuple[tuple[str, int], ...] = ()


class PriorityClass(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """The priority that a name stands for."""

    name: str
    value: int


class GangSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an object of an API says of its gang.

    ``timeout_s`` bounds one attempt; None means the default. ``defect`` says why the object cannot
    be used as it is, ``warning`` what is odd about it. ``hold_s`` is as in ``Pod``.
    ``min_by_task`` is how many members of each task (``Membership.task``) must be able to start,
    each at least 1, sorted by name; they are part of ``min_count``, and sum up to no more.
    ``queue`` and ``priority_class`` are names of objects: the gang starts only from an open queue,
    and that class, where it exists, has its priority, whatever its members have. ``mixed`` is
    whether these may differ in priority.
    ``admitted`` is whether its status tells clients that wait for that to make its pods;
    ``unanswered_by`` names the scheduler that has to write it, and has written nothing yet.
    """

    key: GangKey
    min_count: int
    uid: str = ""
    created_s: float = 0.0
    min_resources: tuple[tuple[str, int], ...] = ()
    timeout_s: float | None = None
    queue: str = ""
    owner: Owner | None = None
    defect: str = ""
    hold_s: float | None = None
    warning: str = ""
    min_by_task: tuple[tuple[str, int], ...] = ()
    priority_class: str = ""
    mixed: bool = False
    admitted: bool = False
    unanswered_by: str = ""
