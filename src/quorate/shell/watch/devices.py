"""Objects of resource.k8s.io/v1 to values of the core: slices, classes, claims.

Called by ``lookups`` for each version of each of them. What is written there and has no meaning
for placing (configuration for drivers) is kept as text, because it goes into allocations.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from quorate.core.model import DeviceClass, ResourceClaim, ResourceSlice, SelectorTerm, Taint
from quorate.core.model.changes import ClaimWritten
from quorate.core.model.devices import (
    Allocation,
    Attribute,
    Capacity,
    ClaimSpec,
    CounterUse,
    Device,
    DeviceChoice,
    DeviceConfig,
    DeviceConstraint,
    DeviceId,
    DeviceRequest,
    DeviceTraits,
    GivenConfig,
    GivenDevice,
    Nodes,
)
from quorate.core.model.quantity import QuantityError, exact
from quorate.dialects.base import Malformed
from quorate.dialects.common.fields import UNREADABLE, parse_time
from quorate.shell.kube.objects import NamedMetadata, NamedObject
from quorate.shell.watch import device_wire as wire
from quorate.shell.watch.pod.neighbours import requirements
from quorate.shell.watch.pod.spec import tolerations
from quorate.shell.watch.pod.wire import EMPTY, NodeSelector, SpecError, defect_text, is_set

_SLICE = msgspec.json.Decoder(wire.WireSlice)
_CLASS = msgspec.json.Decoder(wire.WireClass)
_CLAIM = msgspec.json.Decoder(wire.WireClaim)
_NAMED = msgspec.json.Decoder(NamedObject)
BINDING_TIMEOUT_S = 600.0
"""How long a device may take until its binding conditions are true: kube-scheduler's default."""
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
T = TypeVar("T")


def decode_slice(raw: bytes) -> ResourceSlice:
    """Return a slice. Raises ``Malformed``."""
    found = _decode(_SLICE, raw)
    spec, name = found.spec, found.metadata.name
    try:
        return ResourceSlice(
            name=name,
            driver=spec.driver,
            pool=spec.pool.name,
            generation=spec.pool.generation,
            slices=spec.pool.resource_slice_count,
            nodes=_nodes(spec),
            devices=tuple(
                Device(
                    one.name,
                    _traits(one, spec.driver),
                    (_nodes(one) or Nodes()) if spec.per_device_node_selection else None,
                )
                for one in spec.devices or ()
            ),
            counters=tuple(
                CounterUse(one.name, _counters(one.counters)) for one in spec.shared_counters or ()
            ),
        )
    except QuantityError as error:
        raise Malformed(f"spec: {error}", name=name) from error


def decode_class(raw: bytes) -> DeviceClass:
    """Return a device class. Raises ``Malformed``."""
    found = _decode(_CLASS, raw)
    name, spec = found.metadata.name, found.spec
    try:
        selectors = _selectors(spec.selectors, f"class {name}")
    except SpecError as error:
        raise Malformed(str(error), name=name) from error
    return DeviceClass(
        name=name,
        selectors=selectors,
        config=tuple(DeviceConfig((), _opaque(one)) for one in spec.config or ()),
        extended=spec.extended_resource_name or "",
        created_s=parse_time(found.metadata.creation_timestamp or "") or 0.0,
    )


def decode_claim(raw: bytes) -> ResourceClaim:
    """Return a claim; what its spec has that is not known here is its ``defect``.

    Raises ``Malformed``.
    """
    found = _decode(_CLAIM, raw)
    meta, status = found.metadata, found.status or wire.ClaimStatus()
    name = f"{meta.namespace}/{meta.name}"
    try:
        spec = _claim_spec(found.spec.devices, name)
        allocation = _allocation(status.allocation) if status.allocation else None
    except (SpecError, QuantityError) as error:
        spec, allocation = ClaimSpec(defect=f"claim {name}: {error}"), None
    failed, pending = _binding(status, allocation)
    owners = [one.uid for one in meta.owner_references or () if one.controller]
    return ResourceClaim(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        spec=spec,
        owner_uid=owners[0] if owners else "",
        terminating=meta.deletion_timestamp is not None,
        allocation=allocation,
        reserved_for=tuple(one.uid for one in status.reserved_for or ()),
        binding_failed=failed,
        binding_pending=pending,
        binding_due_s=_due_s(status.allocation) if pending else None,
        special=(meta.annotations or {}).get(EXTENDED_CLAIM) == "true",
    )


def written_claims(raw: bytes) -> list[ClaimWritten]:
    """Return the news of a claim that we wrote; none if it cannot be read: the watch will tell."""
    try:
        return [ClaimWritten(decode_claim(raw))]
    except Malformed:
        return []


def _decode(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    try:
        return decoder.decode(raw)
    except UNREADABLE as error:
        try:
            who = _NAMED.decode(raw).metadata
        except UNREADABLE:
            who = NamedMetadata(name="")
        text = defect_text(error).replace("the pod", "the object")
        raise Malformed(text, namespace=who.namespace, name=who.name) from error


def _nodes(found: wire.SliceSpec | wire.WireDevice) -> Nodes | None:
    if not (found.node_name or found.all_nodes or found.node_selector is not None):
        return None
    return Nodes(
        name=found.node_name or "",
        everywhere=bool(found.all_nodes),
        terms=_terms(found.node_selector) if found.node_selector else None,
    )


def _terms(selector: NodeSelector) -> tuple[SelectorTerm, ...]:
    return tuple(
        SelectorTerm(requirements(one.match_expressions), requirements(one.match_fields))
        for one in selector.node_selector_terms or ()
    )


def _traits(device: wire.WireDevice, driver: str) -> DeviceTraits:
    conditions = device.binding_conditions
    return DeviceTraits(
        driver=driver,
        attributes=tuple(_attribute(*item) for item in sorted((device.attributes or {}).items())),
        capacity=tuple(_capacity(*item) for item in sorted((device.capacity or {}).items())),
        taints=tuple(Taint(one.key, one.effect, one.value or "") for one in device.taints or ()),
        counters=tuple(
            CounterUse(one.counter_set, _counters(one.counters))
            for one in device.consumes_counters or ()
        ),
        shareable=bool(device.allow_multiple_allocations),
        binding_conditions=None if conditions is None else tuple(conditions),
        binding_failures=tuple(device.binding_failure_conditions or ()),
        binds_to_node=bool(device.binds_to_node),
    )


def _attribute(name: str, written: wire.WireAttribute) -> Attribute:
    values: dict[str, bool | int | str | None] = {
        "int": written.int,
        "bool": written.bool,
        "string": written.string,
        "version": written.version,
    }
    for kind, value in values.items():
        if value is not None:
            return Attribute(name, kind, value)
    return Attribute(name, "", "")


def _capacity(name: str, written: wire.WireCapacity) -> Capacity:
    policy = written.request_policy or wire.RequestPolicy()
    valid = policy.valid_range or wire.ValidRange()
    return Capacity(
        name=name,
        value=_quantity(written.value),
        default=_optional(policy.default),
        values=tuple(_quantity(one) for one in policy.valid_values or ()),
        smallest=_optional(valid.min),
        largest=_optional(valid.max),
        step=_optional(valid.step),
    )


def _quantity(written: str | int | float) -> str:
    """Return a quantity as text. Raises ``QuantityError``."""
    exact(str(written))
    return str(written)


def _optional(written: str | int | float | None) -> str | None:
    return None if written is None else _quantity(written)


def _counters(written: dict[str, wire.Counter] | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, _quantity(one.value)) for name, one in sorted((written or {}).items()))


def _selectors(written: list[wire.Selector] | None, path: str) -> tuple[str, ...]:
    found = []
    for index, one in enumerate(written or ()):
        if one.cel is None:
            raise SpecError(f"{path}, selector #{index}: it is no CEL expression")
        found.append(one.cel.expression)
    return tuple(found)


def _opaque(written: wire.Config) -> str:
    return bytes(written.opaque).decode() if is_set(written.opaque) else ""


def _claim_spec(written: wire.ClaimDevices | None, claim: str) -> ClaimSpec:
    devices = written or wire.ClaimDevices()
    constraints = []
    for index, one in enumerate(devices.constraints or ()):
        if not (one.match_attribute or one.distinct_attribute):
            raise SpecError(f"constraint #{index}: it is of an unknown kind")
        constraints.append(
            DeviceConstraint(
                tuple(one.requests or ()), one.match_attribute or "", one.distinct_attribute or ""
            )
        )
    return ClaimSpec(
        requests=tuple(_request(one, claim) for one in devices.requests or ()),
        constraints=tuple(constraints),
        config=tuple(
            DeviceConfig(tuple(one.requests or ()), _opaque(one)) for one in devices.config or ()
        ),
    )


def _request(written: wire.Request, claim: str) -> DeviceRequest:
    if written.exactly is not None:
        return DeviceRequest(written.name, (_choice(written.exactly, written.name),))
    if not written.first_available:
        raise SpecError(f"request {written.name}: it is of an unknown kind")
    choices = tuple(_choice(one, one.name) for one in written.first_available)
    return DeviceRequest(written.name, choices, is_list=True)


def _choice(written: wire.Choice, name: str) -> DeviceChoice:
    if written.allocation_mode not in (None, "", "ExactCount", "All"):
        raise SpecError(f"request {name}: unsupported count mode {written.allocation_mode}")
    takes_all = written.allocation_mode == "All"
    requests = (written.capacity.requests if written.capacity else None) or {}
    raw = written.tolerations
    return DeviceChoice(
        name=name,
        device_class=written.device_class_name,
        selectors=_selectors(written.selectors, f"request {name}"),
        count=None if takes_all else written.count or 1,
        admin=written.admin_access,
        tolerations=tolerations(raw),
        tolerations_text=bytes(raw).decode() if is_set(raw) else "",
        capacity=tuple((key, _quantity(value)) for key, value in sorted(requests.items())),
    )


def _allocation(written: wire.WireAllocation) -> Allocation:
    devices = written.devices or wire.AllocatedDevices()
    return Allocation(
        devices=tuple(_given(one) for one in devices.results or ()),
        nodes=_terms(written.node_selector) if written.node_selector else None,
        config=tuple(
            GivenConfig(one.source, tuple(one.requests or ()), _opaque(one))
            for one in devices.config or ()
        ),
    )


def _given(one: wire.Result) -> GivenDevice:
    return GivenDevice(
        request=one.request,
        device=DeviceId(one.driver, one.pool, one.device),
        admin=one.admin_access,
        share_id=one.share_id or "",
        consumed=tuple(
            (key, _quantity(value)) for key, value in sorted((one.consumed_capacity or {}).items())
        ),
        binding_conditions=tuple(one.binding_conditions or ()),
        binding_failures=tuple(one.binding_failure_conditions or ()),
        tolerations_text=bytes(one.tolerations).decode() if one.tolerations is not EMPTY else "",
    )


def _due_s(allocation: wire.WireAllocation | None) -> float | None:
    """Return when devices that need conditions have to be ready: kube-scheduler's default."""
    given_s = parse_time((allocation and allocation.allocation_timestamp) or "")
    return None if given_s is None else given_s + BINDING_TIMEOUT_S


def _binding(status: wire.ClaimStatus, allocation: Allocation | None) -> tuple[str, bool]:
    """Return which condition of a device failed, and whether one is not true yet."""
    said = {
        DeviceId(one.driver, one.pool, one.device): {
            condition.type for condition in one.conditions or () if condition.status == "True"
        }
        for one in status.devices or ()
    }
    pending = False
    for given in allocation.devices if allocation else ():
        if not given.binding_conditions:
            continue
        true = said.get(given.device, set())
        for condition in given.binding_failures:
            if condition in true:
                return f"{condition} of device {given.device}", False
        pending |= not set(given.binding_conditions) <= true
    return "", pending
