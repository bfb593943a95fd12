"""The JSON of storage objects to values of the core. Called through ``lookups``' table.

An object of which a field cannot be used is left out, rather than used wrongly: each decoder raises
``Malformed`` with the object's name and the field.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct, field

from quorate.core.model import LabelSelector, Requirement, SelectorTerm
from quorate.core.model.quantity import QuantityError, parse_quantity
from quorate.core.model.storage import (
    Claim,
    ClaimRef,
    CSINode,
    StorageClass,
    Volume,
)
from quorate.dialects.base import Malformed
from quorate.dialects.common.fields import UNREADABLE
from quorate.shell.kube.objects import NamedMetadata, NamedObject
from quorate.shell.watch.pod.wire import NodeSelector, PodSelector, defect_text

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
Quantity = str | int | float
T = TypeVar("T", bound=Struct)


class _Resources(Struct, gc=False):
    requests: dict[str, Quantity] | None = None


class _ClaimSpec(Struct, gc=False, rename="camel"):
    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None
    volume_attributes_class_name: str | None = None
    selector: PodSelector | None = None
    resources: _Resources | None = None


class _Phase(Struct, gc=False):
    phase: str | None = None


class _WireClaim(Struct, gc=False):
    metadata: NamedMetadata
    spec: _ClaimSpec = field(default_factory=_ClaimSpec)
    status: _Phase | None = None


class _WireRef(Struct, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Csi(Struct, gc=False, rename="camel"):
    driver: str = ""
    volume_handle: str = ""


class _Affinity(Struct, gc=False):
    required: NodeSelector | None = None


class _VolumeSpec(Struct, gc=False, rename="camel"):
    capacity: dict[str, Quantity] | None = None
    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: _WireRef | None = None
    node_affinity: _Affinity | None = None
    csi: _Csi | None = None


class _WireVolume(Struct, gc=False):
    metadata: NamedMetadata
    spec: _VolumeSpec = field(default_factory=_VolumeSpec)
    status: _Phase | None = None


class _TopologyLabel(Struct, gc=False):
    key: str
    values: list[str] | None = None


class _Topology(Struct, gc=False, rename="camel"):
    match_label_expressions: list[_TopologyLabel] | None = None


class _WireClass(Struct, gc=False, rename="camel"):
    metadata: NamedMetadata
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[_Topology] | None = None


class _Count(Struct, gc=False):
    count: int | None = None


class _NodeDriver(Struct, gc=False):
    name: str
    allocatable: _Count | None = None


class _CSINodeSpec(Struct, gc=False):
    drivers: list[_NodeDriver] | None = None


class _WireCSINode(Struct, gc=False):
    metadata: NamedMetadata
    spec: _CSINodeSpec = field(default_factory=_CSINodeSpec)


_CLAIM = msgspec.json.Decoder(_WireClaim)
_VOLUME = msgspec.json.Decoder(_WireVolume)
_CLASS = msgspec.json.Decoder(_WireClass)
_CSI_NODE = msgspec.json.Decoder(_WireCSINode)
_NAMED = msgspec.json.Decoder(NamedObject)


def decode_claim(raw: bytes) -> Claim:
    """Return a PersistentVolumeClaim. Raises ``Malformed``."""
    wire = _decoded(_CLAIM, raw, "the claim")
    meta, spec = wire.metadata, wire.spec
    notes = meta.annotations or {}
    requests = (spec.resources and spec.resources.requests) or {}
    return Claim(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        storage_class=notes.get(_BETA_CLASS, spec.storage_class_name or ""),
        size=_size(requests.get("storage"), "spec.resources.requests.storage", meta),
        access_modes=tuple(sorted(spec.access_modes or ())),
        volume_mode=spec.volume_mode or "Filesystem",
        attributes_class=spec.volume_attributes_class_name or "",
        selector=_selector(spec.selector, "spec.selector", meta),
        volume=spec.volume_name or "",
        bound=BIND_COMPLETED in notes,
        selected_node=notes.get(SELECTED_NODE),
        lost=wire.status is not None and wire.status.phase == "Lost",
        terminating=meta.deletion_timestamp is not None,
        controller=next((one.uid for one in meta.owner_references or () if one.controller), ""),
    )


def decode_volume(raw: bytes) -> Volume:
    """Return a PersistentVolume. Raises ``Malformed``."""
    wire = _decoded(_VOLUME, raw, "the volume")
    meta, spec = wire.metadata, wire.spec
    ref, affinity = spec.claim_ref, spec.node_affinity
    notes = meta.annotations or {}
    return Volume(
        name=meta.name,
        version=meta.resource_version,
        storage_class=notes.get(_BETA_CLASS, spec.storage_class_name or ""),
        capacity=_size((spec.capacity or {}).get("storage"), "spec.capacity.storage", meta) or 0,
        access_modes=tuple(sorted(spec.access_modes or ())),
        volume_mode=spec.volume_mode or "Filesystem",
        attributes_class=spec.volume_attributes_class_name or "",
        phase=(wire.status and wire.status.phase) or "",
        claim=ClaimRef(ref.namespace, ref.name, ref.uid) if ref else None,
        affinity=_terms(affinity.required) if affinity and affinity.required else None,
        labels=tuple(sorted((meta.labels or {}).items())),
        driver=spec.csi.driver if spec.csi else "",
        handle=spec.csi.volume_handle if spec.csi else "",
        terminating=meta.deletion_timestamp is not None,
    )


def decode_storage_class(raw: bytes) -> StorageClass:
    """Return a StorageClass. Raises ``Malformed``."""
    wire = _decoded(_CLASS, raw, "the class")
    return StorageClass(
        name=wire.metadata.name,
        provisioner=wire.provisioner,
        binding_mode=wire.volume_binding_mode or "Immediate",
        topologies=tuple(
            tuple((one.key, tuple(one.values or ())) for one in term.match_label_expressions or ())
            for term in wire.allowed_topologies or ()
        ),
    )


def decode_csi_node(raw: bytes) -> CSINode:
    """Return a CSINode. Raises ``Malformed``."""
    wire = _decoded(_CSI_NODE, raw, "the CSINode")
    limits = {
        one.name: one.allocatable.count
        for one in wire.spec.drivers or ()
        if one.allocatable is not None and one.allocatable.count is not None
    }
    return CSINode(wire.metadata.name, tuple(sorted(limits.items())))


def _decoded(decoder: msgspec.json.Decoder[T], raw: bytes, what: str) -> T:
    try:
        return decoder.decode(raw)
    except UNREADABLE as error:
        namespace = name = ""
        try:
            meta = _NAMED.decode(raw).metadata
            namespace, name = meta.namespace, meta.name
        except UNREADABLE:
            pass
        text = defect_text(error).replace("the pod", what)
        raise Malformed(text, namespace=namespace, name=name) from error


def _size(written: Quantity | None, path: str, meta: NamedMetadata) -> int | None:
    if written is None:
        return None
    try:
        return parse_quantity(str(written))
    except QuantityError as error:
        raise Malformed(f"{path}: {error}", namespace=meta.namespace, name=meta.name) from error


def _selector(written: PodSelector | None, path: str, meta: NamedMetadata) -> LabelSelector | None:
    if written is None:
        return None
    found = [
        Requirement(key, "In", (value,))
        for key, value in sorted((written.match_labels or {}).items())
    ]
    for one in written.match_expressions or ():
        if one.operator not in _OPERATORS:
            text = f"{path}: {one.operator[:60]!r} is not an operator of a label selector"
            raise Malformed(text, namespace=meta.namespace, name=meta.name)
        found.append(Requirement(one.key, one.operator, tuple(one.values or ())))
    return LabelSelector(tuple(found))


def _terms(selector: NodeSelector) -> tuple[SelectorTerm, ...]:
    """Return the terms; kube-scheduler looks at a node's labels alone here, not at its name."""
    return tuple(
        SelectorTerm(
            expressions=tuple(
                Requirement(one.key, one.operator, tuple(one.values or ()))
                for one in term.match_expressions or ()
            )
        )
        for term in selector.node_selector_terms or ()
        if not term.match_fields
    )
