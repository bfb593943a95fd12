"""Decode a pod's JSON into ``PodChanged``, in about 10 microseconds if its spec is cached.

In: the bytes of one pod, from a list or a watch. Out: a change for the core. Called by ``objects``
for each version of each pod of the cluster, ours or not: foreign pods take room on their nodes too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec
from msgspec import Raw

from quorate.core.model import DEFAULT_SCHEDULER, ClaimUse, Owner, Pod, PodClaim, PodSpec, policy
from quorate.core.model.changes import PodChanged, PodGone
from quorate.core.model.reasons import Reason
from quorate.dialects import PodFacts, Resolution, gathered_by, resolve
from quorate.dialects.base import INT32_MAX, Malformed
from quorate.dialects.common.fields import UNREADABLE, parse_time
from quorate.dialects.common.hold_time import FOR_NOBODY
from quorate.shell.annotations import ATTEMPT, ATTEMPT_SIZE, GANG, STARTED
from quorate.shell.watch.pod import spec as pod_spec
from quorate.shell.watch.pod import volumes as pod_volumes
from quorate.shell.watch.pod.controllers import owner_of, run_of
from quorate.shell.watch.pod.device_claims import pod_claims
from quorate.shell.watch.pod.limits import bounded, bounded_uses
from quorate.shell.watch.pod.wire import (
    Condition,
    PodMetadata,
    Spec,
    SpecError,
    Status,
    WirePod,
    decode_part,
    defect_text,
    is_set,
)

SPECS_MAX = 16384
"""Entries of each cache. A full cache is cleared, which is cheap and equal in every run."""

_NOTHING: Mapping[str, str] = MappingProxyType({})
_DECODER = msgspec.json.Decoder(WirePod)
_PARTS = msgspec.json.Decoder(dict[str, Raw])
_CONDITIONS = msgspec.json.Decoder(list[Condition] | None)
_TEXT = msgspec.json.Decoder(str)
_TEXTS = msgspec.json.Decoder(dict[str, str])
K = TypeVar("K")
V = TypeVar("V")
_COUNT = re.compile(r"[0-9]{1,10}")
_REFUSALS = frozenset(
    {
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
    }
)


class PodDecoder:
    """Decodes pods, and caches their specs.

    ``owned`` are the scheduler names whose pods are ours.
    """

    def __init__(self, owned: frozenset[str]) -> None:
        self._owned = owned
        self._specs: dict[tuple[object, ...], tuple[PodSpec, str]] = {}
        """By the bytes of the parts: a spec within all bounds, and the first field above one."""
        self._canonical: dict[PodSpec, PodSpec] = {}

    def decode(self, raw: bytes) -> PodChanged:
        """Return the pod; a pod that cannot be used is returned with ``defect`` set.

        Raises ``Malformed`` if its uid, name or namespace cannot be read.
        """
        try:
            return PodChanged(self._pod(_DECODER.decode(raw)))
        except SpecError as error:
            defect = str(error)
        except UNREADABLE as error:
            defect = defect_text(error)
        return PodChanged(self._defective(raw, defect))

    def news(self, raw: bytes) -> PodChanged | PodGone:
        """Return the change for the core: ``PodGone`` for a pod that no longer matters.

        Raises ``Malformed`` as ``decode`` does.
        """
        change = self.decode(raw)
        return PodGone(change.pod.uid) if self._is_past(change.pod) else change

    def _is_past(self, pod: Pod) -> bool:
        """Whether the pod has finished and is neither ours nor of a gang: nothing reads it again.

        It holds no room, its labels do not count, and the phases Succeeded and Failed are final. A
        finished pod of a gang counts while others of its life are alive; a finished pod of ours may
        have bind outcomes to come.
        """
        is_anybodys = pod.membership is not None or pod.bound_for or pod.scheduler in self._owned
        return pod.finished and not is_anybodys

    def _pod(self, wire: WirePod) -> Pod:
        meta, spec, status = wire.metadata, wire.spec, wire.status
        if not (meta.uid and meta.name and meta.namespace):
            raise SpecError("metadata: uid, name and namespace must not be empty")
        labels = meta.labels or _NOTHING
        annotations = meta.annotations or _NOTHING
        scheduler = spec.scheduler_name or DEFAULT_SCHEDULER
        node = spec.node_name or ""
        owned = scheduler in self._owned
        group = spec.scheduling_group
        facts = PodFacts(
            meta.namespace,
            meta.name,
            labels,
            annotations,
            (group.pod_group_name or "") if group else "",
        )
        said = self._resolve(facts, owned)
        is_others = said.membership is not None and not owned
        own, above = self._spec(meta, spec, status, rules=owned or not node)
        claims, device_claims, more = _claims(meta, spec, status)
        is_ours_to_place = owned and not node
        own_disk = pod_volumes.own_disk(spec.volumes or []) if is_ours_to_place else ""
        excess = above or more or own_disk
        is_held = bool(excess) and is_ours_to_place
        controller = next((one for one in meta.owner_references or () if one.controller), None)
        owner = owner_of(controller, labels) if controller else None
        return Pod(
            uid=meta.uid,
            namespace=meta.namespace,
            name=meta.name,
            scheduler=scheduler,
            spec=PodSpec() if is_held else own,
            created_s=_created_s(meta),
            node=node,
            phase=(status and status.phase) or "Pending",
            priority=spec.priority or 0,
            claims=claims,
            device_claims=device_claims,
            labels=tuple(sorted(labels.items())),
            gates=tuple([gate.name for gate in spec.scheduling_gates or ()]),
            terminating=meta.deletion_timestamp is not None,
            membership=said.membership,
            owner=owner,
            defect=said.defect or (excess if is_held else ""),
            defect_reason=said.defect_reason or (Reason.POD_INVALID.value if is_held else ""),
            warning=said.warning or ("" if is_held else excess) or _of_hold(said, owner),
            attempt=annotations.get(ATTEMPT, ""),
            attempt_size=_attempt_size(annotations),
            bound_for=annotations.get(GANG, ""),
            started=STARTED in annotations,
            hold_s=said.hold_s,
            refusal=_refusal(status) if node and status is not None else "",
            nominated=(status and not node and status.nominated_node_name) or "",
            start_time=(status and status.start_time) or "",
            preempted=meta.deletion_timestamp is not None and _is_preempted(status),
            never_preempts=spec.preemption_policy == "Never",
            run=run_of(controller, labels) if said.membership and controller else "",
            meant=said.meant,
            gathered_by=gathered_by(scheduler) if controller and said.membership is None else "",
            unanswered=is_others and not node and _is_unanswered(status),
        )

    def _resolve(self, facts: PodFacts, owned: bool) -> Resolution:
        """Return the gang, also of a foreign pod, to detect members with different schedulerNames.

        Other defects of a foreign pod's labels are ignored: they concern its own scheduler.
        """
        said = resolve(facts)
        return said if owned else Resolution(said.membership, meant=said.meant)

    def _spec(
        self, meta: PodMetadata, spec: Spec, status: Status | None, *, rules: bool
    ) -> tuple[PodSpec, str]:
        """Return the spec, and the first field that was cut because it is above a bound.

        The ``rules`` of a foreign pod on a node are left out.
        So the pods of a DaemonSet, each of which names its node in an affinity, share one spec.
        """
        resized = status if spec.node_name else None
        key = (
            rules and _rules_key(spec),
            *_neighbours_key(meta, spec, rules=rules),
            *_room_key(spec, resized),
        )
        found = self._specs.get(key)
        if found is None:
            whole = (
                pod_spec.pod_spec(spec, resized, meta.namespace, meta.labels or _NOTHING)
                if rules
                else pod_spec.taken(spec, resized, meta.namespace)
            )
            _make_room(self._specs)
            _make_room(self._canonical)
            made, above = bounded(whole)
            found = self._specs[key] = self._canonical.setdefault(made, made), above
        return found

    def _defective(self, raw: bytes, defect: str) -> Pod:
        """Return a pod with the defect and the fields that can be decoded."""
        whole = _parts(raw)
        meta, spec, status = (_parts(whole.get(key)) for key in ("metadata", "spec", "status"))
        known = {key: _text(meta.get(key)) for key in ("namespace", "name", "uid")}
        if not all(known.values()):
            raise Malformed(defect, **known)
        scheduler = _text(spec.get("schedulerName"))
        labels, annotations = _texts(meta.get("labels")), _texts(meta.get("annotations"))
        group = _parts(spec.get("schedulingGroup"))
        facts = PodFacts(
            known["namespace"], known["name"], labels, annotations, _text(group.get("podGroupName"))
        )
        return Pod(
            uid=known["uid"],
            namespace=known["namespace"],
            name=known["name"],
            scheduler=scheduler or DEFAULT_SCHEDULER,
            spec=PodSpec(),
            created_s=parse_time(_text(meta.get("creationTimestamp"))) or 0.0,
            node=_text(spec.get("nodeName")),
            phase=_text(status.get("phase")) or "Pending",
            terminating=bytes(meta.get("deletionTimestamp", b"null")) != b"null",
            membership=resolve(facts).membership,
            defect=defect,
            defect_reason=Reason.POD_INVALID.value,
            attempt=annotations.get(ATTEMPT, ""),
            attempt_size=_attempt_size(annotations),
            bound_for=annotations.get(GANG, ""),
            started=STARTED in annotations,
        )


def _of_hold(said: Resolution, owner: Owner | None) -> str:
    return FOR_NOBODY if said.hold_s and owner is None else ""


def _claims(
    meta: PodMetadata, spec: Spec, status: Status | None
) -> tuple[tuple[ClaimUse, ...], tuple[PodClaim, ...], str]:
    """Return a pod's claims of volumes and of devices, and the first field above a bound."""
    of_volumes = pod_volumes.claims(meta.name, spec.volumes) if spec.volumes else ()
    of_devices = pod_claims(spec, status) if is_set(spec.resource_claims) else ()
    if not (of_volumes or of_devices):
        return (), (), ""
    most = policy.VOLUMES_PER_POD_MAX
    of_volumes, volumes_said = bounded_uses(of_volumes, "spec.volumes", most)
    most = policy.DEVICE_CLAIMS_PER_POD_MAX
    of_devices, devices_said = bounded_uses(of_devices, "spec.resourceClaims", most)
    return of_volumes, of_devices, volumes_said or devices_said


def _rules_key(spec: Spec) -> tuple[object, ...]:
    """Return the bytes of all parts that say where a pod may run. Equal keys give equal rules."""
    return (
        spec.host_network is True and spec.host_users is False,
        bytes(spec.affinity),
        bytes(spec.tolerations),
        bytes(spec.node_selector),
        bytes(spec.topology_spread_constraints),
    )


def _neighbours_key(meta: PodMetadata, spec: Spec, *, rules: bool) -> tuple[object, ...]:
    """Return the parts that say which other pods matter, and the default namespace of terms."""
    affinity, spread = bytes(spec.affinity), bytes(spec.topology_spread_constraints)
    near = affinity if b'"podAffinity"' in affinity or b'"podAntiAffinity"' in affinity else b""
    own = meta.labels if b'"matchLabelKeys"' in spread else None
    return (
        near,
        meta.namespace if near or (rules and spread) else "",
        tuple(sorted(own.items())) if own and rules else (),
    )


def _room_key(spec: Spec, status: Status | None) -> list[object]:
    """Return the bytes of all parts that say what a pod takes of its node."""
    parts: list[object] = [bytes(spec.overhead), bytes(spec.resources)]
    for container in spec.containers:
        parts += (
            container.name,
            bytes(container.resources),
            bytes(container.ports),
            bytes(container.restart_policy_rules),
        )
    for container in spec.init_containers or ():
        parts += (
            container.restart_policy == "Always",
            container.name,
            bytes(container.resources),
            bytes(container.ports),
            bytes(container.restart_policy_rules),
        )
    if status is not None:
        parts.append(b'"PodResizePending"' in bytes(status.conditions) and bytes(status.conditions))
        parts += (bytes(status.allocated_resources), bytes(status.resources))
        for statuses in (status.container_statuses, status.init_container_statuses):
            parts.append(None)  # a divider, so that the two lists cannot be confused
            for one in statuses or ():
                parts += (one.name, bytes(one.allocated_resources), bytes(one.resources))
    return parts


def _make_room(cache: dict[K, V]) -> None:
    if len(cache) >= SPECS_MAX:
        cache.clear()


def _created_s(meta: PodMetadata) -> float:
    if meta.creation_timestamp is None:
        return 0.0
    created_s = parse_time(meta.creation_timestamp)
    if created_s is None:
        written = meta.creation_timestamp[:60]
        raise SpecError(f"metadata.creationTimestamp: {written!r} is not an RFC3339 time")
    return created_s


def _attempt_size(annotations: Mapping[str, str]) -> int:
    written = annotations.get(ATTEMPT_SIZE)
    if written is None or not _COUNT.fullmatch(written):
        return 0
    return min(int(written), INT32_MAX)


def _refusal(status: Status) -> str:
    """Return the reason if a kubelet refused to run the pod; "" for any other failure.

    Source: the admission handlers of pkg/kubelet in Kubernetes 1.36.
    """
    reason = status.reason
    if status.phase != "Failed" or not reason:
        return ""
    return reason if reason.startswith("OutOf") or reason in _REFUSALS else ""


def _is_unanswered(status: Status | None) -> bool:
    """Whether no scheduler has said of the pod that it cannot be placed yet, or is gated."""
    return status is None or b'"PodScheduled"' not in bytes(status.conditions)


def _is_preempted(status: Status | None) -> bool:
    """Whether a scheduler has marked the pod as the victim of a preemption."""
    if status is None or b'"PreemptionByScheduler"' not in bytes(status.conditions):
        return False
    conditions = decode_part(_CONDITIONS, status.conditions, "status.conditions") or ()
    first = next((one for one in conditions if one.type == "DisruptionTarget"), None)
    is_true = first is not None and first.status == "True"
    return is_true and first is not None and first.reason == "PreemptionByScheduler"


def _parts(raw: Raw | bytes | None) -> dict[str, Raw]:
    try:
        return _PARTS.decode(raw) if raw is not None else {}
    except UNREADABLE:
        return {}


def _text(raw: Raw | None) -> str:
    try:
        return _TEXT.decode(raw) if raw is not None else ""
    except UNREADABLE:
        return ""


def _texts(raw: Raw | None) -> dict[str, str]:
    try:
        return _TEXTS.decode(raw) if raw is not None else {}
    except UNREADABLE:
        return {}
