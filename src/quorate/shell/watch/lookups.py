"""Objects that are looked up besides pods, nodes and gangs: to ``ObjectChanged`` and so on.

Called by ``objects`` for each version of each of them. To add a kind: a decoder, and a row in
``LOOKUPS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from quorate.core.model import (
    DeviceClass,
    LabelSelector,
    Namespace,
    PriorityClass,
    Queue,
    ResourceClaim,
    ResourceSlice,
)
from quorate.core.model.budgets import PodDisruptionBudget
from quorate.core.model.changes import AnyObject
from quorate.core.model.storage import (
    Claim,
    CSINode,
    StorageClass,
    Volume,
)
from quorate.dialects.base import Malformed, Resource
from quorate.dialects.common.fields import UNREADABLE, FieldError, resources
from quorate.shell.kube.objects import NamedMetadata, NamedObject
from quorate.shell.watch import storage
from quorate.shell.watch.devices import decode_claim, decode_class, decode_slice
from quorate.shell.watch.pod.neighbours import label_selector
from quorate.shell.watch.pod.wire import PodSelector, SpecError, defect_text


class Lookup(NamedTuple):
    """One kind. ``decode`` raises ``Malformed``; ``struct`` is what it returns.

    The API of an ``optional`` kind need not be served.
    """

    resource: Resource
    struct: type[Struct]
    decode: Callable[[bytes], AnyObject]
    optional: bool = False


class _BySelector(Struct, gc=False):
    selector: PodSelector | None = None


class _WireBySelector(Struct, gc=False):
    metadata: NamedMetadata
    spec: _BySelector | None = None


class _QueueSpec(Struct, gc=False):
    parent: str | None = None


class _QueueStatus(Struct, gc=False):
    state: str | None = None
    allocated: dict[str, object] | None = None


class _WireQueue(Struct, gc=False):
    metadata: NamedMetadata
    spec: _QueueSpec | None = None
    status: _QueueStatus | None = None


class _WirePriorityClass(Struct, gc=False):
    metadata: NamedMetadata
    value: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] = 0


class _BudgetStatus(Struct, gc=False, rename="camel"):
    disruptions_allowed: int | None = None
    disrupted_pods: dict[str, msgspec.Raw] | None = None


class _WireBudget(Struct, gc=False):
    metadata: NamedMetadata
    spec: _BySelector | None = None
    status: _BudgetStatus | None = None


_NAMESPACE = msgspec.json.Decoder(NamedObject)
_BY_SELECTOR = msgspec.json.Decoder(_WireBySelector)
_QUEUE = msgspec.json.Decoder(_WireQueue)
_PRIORITY_CLASS = msgspec.json.Decoder(_WirePriorityClass)
_BUDGET = msgspec.json.Decoder(_WireBudget)
T = TypeVar("T", bound=Struct)


def _decode(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    try:
        return decoder.decode(raw)
    except UNREADABLE as error:
        what = defect_text(error).replace("the pod", "the object")
        try:
            who = _NAMESPACE.decode(raw).metadata
        except UNREADABLE:
            raise Malformed(what) from error
        raise Malformed(what, namespace=who.namespace, name=who.name) from error


def _namespace(raw: bytes) -> Namespace:
    meta = _decode(_NAMESPACE, raw).metadata
    return Namespace(meta.name, tuple(sorted((meta.labels or {}).items())))


def _queue(raw: bytes) -> Queue:
    """Return a queue of Volcano's; one without a state is not closed by anybody.

    Amounts that cannot be read are as good as none: they are written anew.
    """
    wire = _decode(_QUEUE, raw)
    spec, status = wire.spec or _QueueSpec(), wire.status or _QueueStatus()
    try:
        allocated = resources({"allocated": status.allocated or {}}, "allocated", "status")
    except FieldError:
        allocated = ()
    closed = status.state in ("Closed", "Closing")
    return Queue(wire.metadata.name, closed, parent=spec.parent or "", allocated=allocated)


def _priority_class(raw: bytes) -> PriorityClass:
    wire = _decode(_PRIORITY_CLASS, raw)
    return PriorityClass(wire.metadata.name, wire.value)


def _devices(plural: str, kind: str) -> Resource:
    return Resource("resource.k8s.io", "v1", plural, kind)


def _budget(raw: bytes) -> PodDisruptionBudget:
    meta, selector = _selecting(raw)
    status = _decode(_BUDGET, raw).status or _BudgetStatus()
    return PodDisruptionBudget(
        meta.namespace,
        meta.name,
        selector,
        status.disruptions_allowed or 0,
        tuple(sorted(status.disrupted_pods or ())),
    )


def _selecting(raw: bytes) -> tuple[NamedMetadata, LabelSelector | None]:
    wire = _decode(_BY_SELECTOR, raw)
    written = wire.spec.selector if wire.spec is not None else None
    if written is None:
        return wire.metadata, None
    try:
        return wire.metadata, label_selector(written, "spec.selector")
    except SpecError as error:
        who = wire.metadata
        raise Malformed(str(error), namespace=who.namespace, name=who.name) from error


def _storage(plural: str, kind: str) -> Resource:
    return Resource("storage.k8s.io", "v1", plural, kind)


LOOKUPS: tuple[Lookup, ...] = (
    Lookup(Resource("", "v1", "namespaces", "Namespace"), Namespace, _namespace),
    Lookup(
        Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"),
        PriorityClass,
        _priority_class,
    ),
    Lookup(
        Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue"),
        Queue,
        _queue,
        optional=True,
    ),
    Lookup(
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        PodDisruptionBudget,
        _budget,
    ),
    Lookup(
        Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
        Claim,
        storage.decode_claim,
    ),
    Lookup(
        Resource("", "v1", "persistentvolumes", "PersistentVolume"), Volume, storage.decode_volume
    ),
    Lookup(_storage("storageclasses", "StorageClass"), StorageClass, storage.decode_storage_class),
    Lookup(_storage("csinodes", "CSINode"), CSINode, storage.decode_csi_node),
    Lookup(_devices("deviceclasses", "DeviceClass"), DeviceClass, decode_class, optional=True),
    Lookup(_devices("resourceslices", "ResourceSlice"), ResourceSlice, decode_slice, optional=True),
    Lookup(_devices("resourceclaims", "ResourceClaim"), ResourceClaim, decode_claim, optional=True),
)
