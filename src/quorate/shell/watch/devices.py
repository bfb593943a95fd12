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
    Device,
    DeviceChoice,
    DeviceConfig,
    DeviceId,
    DeviceRequest,
    DeviceTraits,
    GivenConfig,
    GivenDevice,
)
from quorate.core.model.quantity import QuantityError, exact
from quorate.dialects.base import Malformed
from quorate.dialects.common.fields import UNREADABLE
from quorate.shell.kube.objects import NamedMetadata, NamedObject
from quorate.shell.watch import device_wire as wire
from quorate.shell.watch.pod.neighbours import requirements
from quorate.shell.watch.pod.spec import tolerations
from quorate.shell.watch.pod.wire import EMPTY, NodeSelector, SpecError, defect_text, is_set

_SLICE = msgspec.json.Decoder(wire.WireSlice)
_CLASS = msgspec.json.Decoder(wire.WireClass)
_CLAIM = msgspec.json.Decoder(wire.WireClaim)
_NAMED = msgspec.json.Decoder(NamedObject)
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
            node=spec.node_name or "",
            devices=tuple(
                Device(one.name, _traits(one, spec.driver)) for one in spec.devices or ()
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
    )


def decode_claim(raw: bytes) -> ResourceClaim:
    """Return a claim; what its spec has that is not supported here is its ``defect``.

    Raises ``Malformed``.
    """
    found = _decode(_CLAIM, raw)
    meta, status = found.metadata, found.status or wire.ClaimStatus()
    allocation = _allocation(status.allocation) if status.allocation else None
    owners = [one.uid for one in meta.owner_references or () if one.controller]
    return ResourceClaim(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        spec=_claim_spec(found.spec.devices or wire.ClaimDevices()),
        owner_uid=owners[0] if owners else "",
        terminating=meta.deletion_timestamp is not None,
        allocation=allocation,
        reserved_for=tuple(one.uid for one in status.reserved_for or ()),
        unusable=_unusable(status.allocation) if status.allocation else "",
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


def _terms(selector: NodeSelector) -> tuple[SelectorTerm, ...]:
    return tuple(
        SelectorTerm(requirements(one.match_expressions), requirements(one.match_fields))
        for one in selector.node_selector_terms or ()
    )


def _traits(device: wire.WireDevice, driver: str) -> DeviceTraits:
    return DeviceTraits(
        driver=driver,
        attributes=tuple(_attribute(*item) for item in sorted((device.attributes or {}).items())),
        capacity=tuple(
            Capacity(name, _quantity(one.value))
            for name, one in sorted((device.capacity or {}).items())
        ),
        taints=tuple(Taint(one.key, one.effect, one.value or "") for one in device.taints or ()),
        closed=_closed(device),
    )


def _closed(device: wire.WireDevice) -> str:
    """Return the field of a device that is not supported; "" if there is none."""
    if device.consumes_counters:
        return "consumesCounters"
    if device.allow_multiple_allocations:
        return "allowMultipleAllocations"
    return "bindingConditions" if device.binding_conditions else ""


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


def _quantity(written: str | int | float) -> str:
    """Return a quantity as text. Raises ``QuantityError``."""
    exact(str(written))
    return str(written)


def _selectors(written: list[wire.Selector] | None, path: str) -> tuple[str, ...]:
    found = []
    for index, one in enumerate(written or ()):
        if one.cel is None:
            raise SpecError(f"{path}, selector #{index}: it is no CEL expression")
        found.append(one.cel.expression)
    return tuple(found)


def _opaque(written: wire.Config) -> str:
    return bytes(written.opaque).decode() if is_set(written.opaque) else ""


def _claim_spec(written: wire.ClaimDevices) -> ClaimSpec:
    try:
        _refuse_constraints(written)
        return ClaimSpec(
            requests=tuple(
                _request(one, f"spec.devices.requests[{index}]")
                for index, one in enumerate(written.requests or ())
            ),
            config=tuple(
                DeviceConfig(tuple(one.requests or ()), _opaque(one))
                for one in written.config or ()
            ),
        )
    except SpecError as error:
        return ClaimSpec(defect=str(error))


def _refuse_constraints(written: wire.ClaimDevices) -> None:
    for index, one in enumerate(written.constraints or ()):
        path = f"spec.devices.constraints[{index}]"
        if one.match_attribute:
            raise SpecError(f"{path}.matchAttribute is not supported")
        if one.distinct_attribute:
            raise SpecError(f"{path}.distinctAttribute is not supported")
        raise SpecError(f"{path} is of an unknown kind")


def _request(written: wire.Request, path: str) -> DeviceRequest:
    if written.exactly is not None:
        choice = _choice(written.exactly, written.name, f"{path}.exactly")
        return DeviceRequest(written.name, (choice,))
    if not written.first_available:
        raise SpecError(f"request {written.name}: it is of an unknown kind")
    choices = tuple(
        _choice(one, one.name, f"{path}.firstAvailable[{index}]")
        for index, one in enumerate(written.first_available)
    )
    return DeviceRequest(written.name, choices, is_list=True)


def _choice(written: wire.Choice, name: str, path: str) -> DeviceChoice:
    if written.allocation_mode not in (None, "", "ExactCount", "All"):
        raise SpecError(f"request {name}: unsupported count mode {written.allocation_mode}")
    if written.admin_access:
        raise SpecError(f"{path}.adminAccess is not supported")
    if written.capacity is not None and written.capacity.requests:
        raise SpecError(f"{path}.capacity.requests is not supported")
    takes_all = written.allocation_mode == "All"
    raw = written.tolerations
    return DeviceChoice(
        name=name,
        device_class=written.device_class_name,
        selectors=_selectors(written.selectors, f"request {name}"),
        count=None if takes_all else written.count or 1,
        tolerations=tolerations(raw),
        tolerations_text=bytes(raw).decode() if is_set(raw) else "",
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
        is_exclusive=not (one.admin_access or one.share_id),
        tolerations_text=bytes(one.tolerations).decode() if one.tolerations is not EMPTY else "",
    )


def _unusable(written: wire.WireAllocation) -> str:
    """Return what another scheduler gave that is not supported here; "" if nothing."""
    devices = written.devices or wire.AllocatedDevices()
    for index, one in enumerate(devices.results or ()):
        if one.binding_conditions:
            path = f"status.allocation.devices.results[{index}].bindingConditions"
            return f"{path} is not supported"
    return ""
