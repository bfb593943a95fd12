"""What the agents read of pods and nodes: few fields, decoded without building the whole object.

In: the bytes of one entry of the store. Out: ``PodFacts`` and ``NodeFacts``. Called by ``agents``
for each change of a bound pod, so a pod takes microseconds: what many pods have in common is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from msgspec import Struct

from pocketkube.agents.pods.needs import PodNeeds, Spec, amount_of, pod_needs
from pocketkube.agents.settings import COMPLETE_AFTER, FAIL_AFTER, START_AFTER

NEEDS_MAX = 4096
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""All that decoding foreign JSON can raise."""
TERMINAL = frozenset({"Succeeded", "Failed"})


class _PodMetadata(Struct, gc=False, rename="camel"):
    name: str
    uid: str
    namespace: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class _PodSpec(Spec, gc=False, rename="camel"):
    restart_policy: str | None = None
    readiness_gates: msgspec.Raw = msgspec.Raw()


class _PodStatus(Struct, gc=False, rename="camel"):
    phase: str | None = None
    start_time: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")


class _Pod(Struct, gc=False):
    metadata: _PodMetadata
    spec: _PodSpec
    status: _PodStatus | None = None


class _NodeMetadata(Struct, gc=False, rename="camel"):
    name: str
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _NodeSpec(Struct, gc=False, rename="camel"):
    taints: list[dict[str, str | None]] | None = None
    pod_cidr: str | None = msgspec.field(default=None, name="podCIDR")


class _Condition(Struct, gc=False):
    type: str
    status: str
    reason: str | None = None


class _Address(Struct, gc=False):
    type: str
    address: str


class _NodeStatus(Struct, gc=False):
    allocatable: dict[str, str | int | float] | None = None
    conditions: list[_Condition] | None = None
    addresses: list[_Address] | None = None


class _Node(Struct, gc=False):
    metadata: _NodeMetadata
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


_PODS = msgspec.json.Decoder(_Pod)
_NODES = msgspec.json.Decoder(_Node)


class PodFacts(NamedTuple):
    """What the kubelet of a pod's node wants to know about it."""

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    start_time: str
    pod_ip: str
    may_finish: bool  # its restartPolicy is not Always
    restarts_failed: bool  # its restartPolicy is not Never
    has_gates: bool  # readiness gates: others decide with the kubelet whether it is ready
    deleting: bool
    grace_s: int | None
    has_finalizers: bool
    delays: Mapping[str, str]  # annotations that say how long something takes
    needs: PodNeeds


class Condition(NamedTuple):
    """A condition of a node."""

    status: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a kubelet knows of its node."""

    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Mapping[str, str | None], ...]
    pod_cidr: str
    host_ip: str  # empty as long as the node has no address
    allocatable: Mapping[str, int]
    conditions: Mapping[str, Condition]


class PodReader:
    """Reads pods, and keeps what pods of one job have in common."""

    def __init__(self) -> None:
        self._needs: dict[tuple[object, ...], PodNeeds] = {}

    def read(self, raw: bytes) -> PodFacts | None:
        """Return the facts of a pod; None when it is on no node. Raises ValueError: unreadable."""
        if b'"nodeName":' not in raw:  # most pods of a backlog; the rest is decided below
            return None
        try:
            wire = _PODS.decode(raw)
            needs = self._needs_of(wire.spec) if wire.spec.node_name else None
        except UNREADABLE as error:
            raise ValueError(f"a pod cannot be read: {error}") from error
        meta, spec, status = wire.metadata, wire.spec, wire.status
        if not spec.node_name or needs is None:
            return None
        policy = spec.restart_policy or "Always"
        return PodFacts(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            node=spec.node_name,
            phase=(status and status.phase) or "Pending",
            start_time=(status and status.start_time) or "",
            pod_ip=(status and status.pod_ip) or "",
            may_finish=policy != "Always",
            restarts_failed=policy != "Never",
            has_gates=bytes(spec.readiness_gates) not in (b"", b"null", b"[]"),
            deleting=meta.deletion_timestamp is not None,
            grace_s=meta.deletion_grace_period_seconds,
            has_finalizers=bool(meta.finalizers),
            delays=_delays(meta.annotations),
            needs=needs,
        )

    def _needs_of(self, spec: _PodSpec) -> PodNeeds:
        parts: list[object] = [
            bytes(spec.affinity),
            bytes(spec.tolerations),
            bytes(spec.node_selector),
            bytes(spec.overhead),
            bytes(spec.resources),
        ]
        for container in spec.containers:
            parts += (bytes(container.resources), bytes(container.ports))
        for container in spec.init_containers or ():
            parts += (
                container.restart_policy == "Always",
                bytes(container.resources),
                bytes(container.ports),
            )
        key = tuple(parts)
        needs = self._needs.get(key)
        if needs is None:
            if len(self._needs) >= NEEDS_MAX:
                self._needs.clear()
            needs = self._needs[key] = pod_needs(spec)
        return needs


_DELAYS = (START_AFTER, *COMPLETE_AFTER, FAIL_AFTER)
_NO_DELAYS: Mapping[str, str] = {}


def _delays(annotations: dict[str, str] | None) -> Mapping[str, str]:
    if not annotations:
        return _NO_DELAYS
    return {key: annotations[key] for key in _DELAYS if key in annotations} or _NO_DELAYS


def read_node(raw: bytes) -> NodeFacts:
    """Return the facts of a node; amounts that are no quantities count as zero.

    Raises ValueError: the node cannot be read at all.
    """
    try:
        wire = _NODES.decode(raw)
    except UNREADABLE as error:
        raise ValueError(f"a node cannot be read: {error}") from error
    meta, spec, status = wire.metadata, wire.spec or _NodeSpec(), wire.status or _NodeStatus()
    addresses = {one.type: one.address for one in status.addresses or ()}
    return NodeFacts(
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        taints=tuple(spec.taints or ()),
        pod_cidr=spec.pod_cidr or "",
        host_ip=addresses.get("InternalIP", ""),
        allocatable={
            name: _amount(name, str(text)) for name, text in (status.allocatable or {}).items()
        },
        conditions={
            one.type: Condition(one.status, one.reason or "") for one in status.conditions or ()
        },
    )


def _amount(name: str, text: str) -> int:
    try:
        return max(0, amount_of(name, text))
    except ValueError:
        return 0
