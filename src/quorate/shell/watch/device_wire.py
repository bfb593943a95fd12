"""The fields of resource.k8s.io/v1 that quorate reads, as the API server writes them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from quorate.shell.kube.objects import NamedMetadata
from quorate.shell.watch.pod.wire import EMPTY, NodeSelector

Quantity = str | int | float
Text = str
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Flag = bool


class WireAttribute(Struct, gc=False):
    """An attribute; lists of values are an alpha feature and stay unknown."""

    int: Number | None = None
    bool: Flag | None = None
    string: Text | None = None
    version: Text | None = None


class WireCapacity(Struct, gc=False):
    """A capacity."""

    value: Quantity


class WireTaint(Struct, gc=False):
    """``devices[].taints[]``."""

    key: str
    effect: str
    value: str | None = None


class WireDevice(Struct, gc=False, rename="camel"):
    """``spec.devices[]``."""

    name: str
    attributes: dict[str, WireAttribute] | None = None
    capacity: dict[str, WireCapacity] | None = None
    consumes_counters: list[Raw] | None = None
    taints: list[WireTaint] | None = None
    binding_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class Pool(Struct, gc=False, rename="camel"):
    """``spec.pool``."""

    name: str
    generation: Count = 0
    resource_slice_count: Count = 0


class SliceSpec(Struct, gc=False, rename="camel"):
    """``spec`` of a ResourceSlice."""

    driver: str
    pool: Pool
    node_name: str | None = None
    devices: list[WireDevice] | None = None


class WireSlice(Struct, gc=False):
    """A ResourceSlice."""

    metadata: NamedMetadata
    spec: SliceSpec


class Cel(Struct, gc=False):
    """``selectors[].cel``."""

    expression: str


class Selector(Struct, gc=False):
    """``selectors[]``."""

    cel: Cel | None = None


class Config(Struct, gc=False):
    """``config[]`` of a class, a claim or an allocation."""

    requests: list[str] | None = None
    opaque: Raw = EMPTY
    source: str = ""


class ClassSpec(Struct, gc=False):
    """``spec`` of a DeviceClass."""

    selectors: list[Selector] | None = None
    config: list[Config] | None = None
    extended_resource_name: str | None = field(default=None, name="extendedResourceName")


class WireClass(Struct, gc=False):
    """A DeviceClass."""

    metadata: NamedMetadata
    spec: ClassSpec


class CapacityRequests(Struct, gc=False):
    """``capacity`` of a request."""

    requests: dict[str, Quantity] | None = None


class Choice(Struct, gc=False, rename="camel"):
    """``exactly``, or an entry of ``firstAvailable``."""

    device_class_name: str
    name: str = ""
    selectors: list[Selector] | None = None
    allocation_mode: str | None = None
    count: Count | None = None
    admin_access: bool | None = None
    tolerations: Raw = EMPTY
    capacity: CapacityRequests | None = None


class Request(Struct, gc=False, rename="camel"):
    """``spec.devices.requests[]``."""

    name: str
    exactly: Choice | None = None
    first_available: list[Choice] | None = None


class Constraint(Struct, gc=False, rename="camel"):
    """``spec.devices.constraints[]``."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimDevices(Struct, gc=False):
    """``spec.devices``."""

    requests: list[Request] | None = None
    constraints: list[Constraint] | None = None
    config: list[Config] | None = None


class ClaimSpec(Struct, gc=False):
    """``spec`` of a ResourceClaim."""

    devices: ClaimDevices | None = None


class Result(Struct, gc=False, rename="camel"):
    """``status.allocation.devices.results[]``."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    share_id: str | None = field(default=None, name="shareID")
    binding_conditions: list[str] | None = None
    tolerations: Raw = EMPTY


class AllocatedDevices(Struct, gc=False):
    """``status.allocation.devices``."""

    results: list[Result] | None = None
    config: list[Config] | None = None


class WireAllocation(Struct, gc=False, rename="camel"):
    """``status.allocation``."""

    devices: AllocatedDevices | None = None
    node_selector: NodeSelector | None = None


class Consumer(Struct, gc=False):
    """``status.reservedFor[]``."""

    uid: str = ""


class ClaimStatus(Struct, gc=False, rename="camel"):
    """``status`` of a ResourceClaim."""

    allocation: WireAllocation | None = None
    reserved_for: list[Consumer] | None = None


class WireClaim(Struct, gc=False):
    """A ResourceClaim."""

    metadata: NamedMetadata
    spec: ClaimSpec
    status: ClaimStatus | None = None
