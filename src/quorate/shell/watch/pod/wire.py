"""The fields of a pod's JSON that quorate reads, as the API server writes them.

Parts that are equal in all pods of a job stay ``Raw``: their bytes are the key under which
``decoding`` caches what ``spec`` and ``requests`` made of them. Fields without meaning here (env,
mounts, managedFields) are skipped without being decoded. Nulls are read as absent where
Kubernetes' own decoder does so.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct, field

from quorate.dialects.common.fields import UNREADABLE
from quorate.shell.kube.objects import Metadata

EMPTY = Raw()
T = TypeVar("T")
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_MESSAGE = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)


class SpecError(ValueError):
    """A field of a pod that cannot be used; the text names it."""


class PodMetadata(Metadata, gc=False, kw_only=True):
    """``metadata`` of a pod, which has a namespace and a uid as well."""

    name: str
    namespace: str
    uid: str


class Container(Struct, gc=False, rename="camel"):
    """``spec.containers[]`` and ``spec.initContainers[]``."""

    name: str = ""
    resources: Raw = EMPTY
    ports: Raw = EMPTY
    restart_policy: str | None = None
    restart_policy_rules: Raw = EMPTY


class ClaimSource(Struct, gc=False, rename="camel"):
    """``persistentVolumeClaim`` of a volume."""

    claim_name: str = ""


class Volume(Struct, gc=False, rename="camel"):
    """``spec.volumes[]``: its kind, as far as kube-scheduler has a rule for it."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Raw = EMPTY
    gce_persistent_disk: Raw = EMPTY
    aws_elastic_block_store: Raw = EMPTY
    azure_disk: Raw = EMPTY
    cinder: Raw = EMPTY
    portworx_volume: Raw = EMPTY
    iscsi: Raw = EMPTY
    rbd: Raw = EMPTY


class Gate(Struct, gc=False):
    """``spec.schedulingGates[]``."""

    name: str


class SchedulingGroup(Struct, gc=False, rename="camel"):
    """``spec.schedulingGroup``."""

    pod_group_name: str | None = None


class Spec(Struct, gc=False, rename="camel"):
    """``spec``."""

    containers: list[Container]
    init_containers: list[Container] | None = None
    scheduler_name: str | None = None
    node_name: str | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None
    scheduling_gates: list[Gate] | None = None
    scheduling_group: SchedulingGroup | None = None
    volumes: list[Volume] | None = None
    affinity: Raw = EMPTY
    tolerations: Raw = EMPTY
    node_selector: Raw = EMPTY
    overhead: Raw = EMPTY
    resources: Raw = EMPTY
    topology_spread_constraints: Raw = EMPTY
    resource_claims: Raw = EMPTY
    host_network: bool | None = None
    host_users: bool | None = None


class ContainerStatus(Struct, gc=False, rename="camel"):
    """``status.containerStatuses[]``, for resizes in place."""

    name: str = ""
    allocated_resources: Raw = EMPTY
    resources: Raw = EMPTY


class Status(Struct, gc=False, rename="camel"):
    """``status``."""

    phase: str | None = None
    reason: str | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    conditions: Raw = EMPTY
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: Raw = EMPTY
    resources: Raw = EMPTY
    resource_claim_statuses: Raw = EMPTY


class WirePod(Struct, gc=False):
    """A pod."""

    metadata: PodMetadata
    spec: Spec
    status: Status | None = None


class Requests(Struct, gc=False):
    """``resources``: its limits are requests already, by the API server's defaults."""

    requests: dict[str, str | int | float] | None = None


class Expression(Struct, gc=False):
    """A match expression of a node or label selector."""

    key: str
    operator: str
    values: list[str] | None = None


class NodeTerm(Struct, gc=False, rename="camel"):
    """A node selector term."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeSelector(Struct, gc=False, rename="camel"):
    """Required node affinity."""

    node_selector_terms: list[NodeTerm] | None = None


class Preferred(Struct, gc=False):
    """Preferred node affinity."""

    weight: Annotated[int, Meta(ge=0, le=100)]
    preference: NodeTerm


class NodeAffinity(Struct, gc=False):
    """``spec.affinity.nodeAffinity``."""

    required: NodeSelector | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[Preferred] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodSelector(Struct, gc=False, rename="camel"):
    """metav1.LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class PodTerm(Struct, gc=False, rename="camel"):
    """A term of pod affinity or anti-affinity; its matchLabelKeys are in its selector already."""

    topology_key: str
    label_selector: PodSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: PodSelector | None = None


class WeightedPodTerm(Struct, gc=False, rename="camel"):
    """A preferred term of pod affinity or anti-affinity."""

    weight: Annotated[int, Meta(ge=0, le=100)]
    pod_affinity_term: PodTerm


class PodAffinity(Struct, gc=False):
    """``spec.affinity.podAffinity`` and ``podAntiAffinity``."""

    required: list[PodTerm] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodTerm] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct, gc=False, rename="camel"):
    """``spec.affinity``."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class WireToleration(Struct, gc=False):
    """``spec.tolerations[]``."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Port(Struct, gc=False, rename="camel"):
    """``ports[]`` of a container."""

    host_port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    host_ip: str | None = field(default=None, name="hostIP")
    protocol: str | None = None


class Spread(Struct, gc=False, rename="camel"):
    """``spec.topologySpreadConstraints[]``."""

    max_skew: Annotated[int, Meta(ge=1)]
    topology_key: str
    when_unsatisfiable: str | None = None
    label_selector: PodSelector | None = None
    min_domains: Annotated[int, Meta(ge=1)] | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class Condition(Struct, gc=False):
    """``status.conditions[]``."""

    type: str = ""
    reason: str | None = None
    status: str | None = None


def is_set(raw: Raw) -> bool:
    """Whether a part is there, and is neither null nor empty."""
    # An absent part is the default object itself: this saves a copy in the common case.
    return raw is not EMPTY and bytes(raw) not in (b"", b"null", b"{}", b"[]")


def decode_part(decoder: msgspec.json.Decoder[T], raw: Raw | bytes, path: str) -> T:
    """Decode one part of a pod; errors name the whole path. Raises ``SpecError``."""
    try:
        return decoder.decode(raw)
    except UNREADABLE as error:
        raise SpecError(defect_text(error, path)) from None


def defect_text(error: Exception, path: str = "") -> str:
    """Return msgspec's message as "field: what is wrong with it"."""
    match = _MESSAGE.fullmatch(str(error))
    what, inner = match.groups() if match else (str(error), "")
    joint = "." if path and inner and inner[0] != "[" else ""
    where = f"{path}{joint}{inner}" or "the pod"
    return f"{where}: {what.replace('`', '')}"[:500]
