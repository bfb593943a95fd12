"""Devices that claims ask for: slices, classes and claims of resource.k8s.io, as values.

Written by ``shell.watch.devices``; read by ``cluster.devices.devices`` and ``plan.devices``.
Quantities stay the text that was written (``quantity.exact`` reads them): they are compared
exactly, and some go back to the API server. Sequences that are maps there are sorted by name.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from quorate.core.model.selectors import SelectorTerm, Taint, Toleration


class DeviceId(NamedTuple):
    """A device: its driver, pool and name."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


class Attribute(NamedTuple):
    """A typed attribute of a device; ``kind`` is bool, int, string or version."""

    name: str
    kind: str
    value: bool | int | str


class Capacity(msgspec.Struct, frozen=True, omit_defaults=True):
    """A capacity of a device, with its policy for requests that take part of it.

    ``smallest``, ``largest`` and ``step`` are its valid range, ``values`` its valid values.
    """

    name: str
    value: str
    default: str | None = None
    values: tuple[str, ...] = ()
    smallest: str | None = None
    largest: str | None = None
    step: str | None = None


class CounterUse(NamedTuple):
    """What a device takes of one set of counters: names and quantities."""

    counter_set: str
    counters: tuple[tuple[str, str], ...]


class Nodes(msgspec.Struct, frozen=True, omit_defaults=True):
    """From which nodes a device can be reached: one, all, or those that a selector matches."""

    name: str = ""
    everywhere: bool = False
    terms: tuple[SelectorTerm, ...] | None = None

    def include(self, name: str, labels: dict[str, str]) -> bool:
        """Whether a node with this name and these labels is one of them."""
        if self.name:
            return self.name == name
        if self.everywhere or self.terms is None:
            return self.everywhere
        return any(term.matches(name, labels) for term in self.terms)


class DeviceTraits(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of a device but its name and place: devices of equal traits are alike to claims.

    ``binding_conditions`` None means that the field is absent.
    """

    driver: str
    attributes: tuple[Attribute, ...] = ()
    capacity: tuple[Capacity, ...] = ()
    taints: tuple[Taint, ...] = ()
    counters: tuple[CounterUse, ...] = ()
    shareable: bool = False
    binding_conditions: tuple[str, ...] | None = None
    binding_failures: tuple[str, ...] = ()
    binds_to_node: bool = False


class Device(NamedTuple):
    """A device of a slice; ``nodes`` is set where each device of the slice has its own."""

    name: str
    traits: DeviceTraits
    nodes: Nodes | None = None


class ResourceSlice(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """Devices of one pool, or counters that they share.

    ``nodes`` None means that each device says itself, or that nobody does. A pool is complete when
    ``slices`` slices of its newest ``generation`` are known.
    """

    name: str
    driver: str
    pool: str
    generation: int
    slices: int
    nodes: Nodes | None = None
    devices: tuple[Device, ...] = ()
    counters: tuple[CounterUse, ...] = ()


class DeviceConfig(NamedTuple):
    """Configuration for a driver, as JSON text; for all requests when ``requests`` is empty."""

    requests: tuple[str, ...]
    text: str


class DeviceClass(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A class of devices: CEL expressions that they match, and configuration for their driver.

    ``extended`` is the extended resource that it backs, "" none but that of its own name.
    """

    name: str
    selectors: tuple[str, ...] = ()
    config: tuple[DeviceConfig, ...] = ()
    extended: str = ""
    created_s: float = 0.0


class ContainerDevices(NamedTuple):
    """The extended resources of a container: name, amount, and place among all its requests.

    ``brief`` marks an init container that ends before the others begin.
    """

    name: str
    brief: bool
    requests: tuple[tuple[str, int, int], ...]


class DeviceChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one request, or one alternative of it, asks for.

    ``count`` None means all devices that match. ``admin`` None means that the field is absent.
    """

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    admin: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    tolerations_text: str = ""
    capacity: tuple[tuple[str, str], ...] = ()


class DeviceRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request of a claim: one choice, or a list of which the first possible one is taken."""

    name: str
    choices: tuple[DeviceChoice, ...]
    is_list: bool = False


class DeviceConstraint(NamedTuple):
    """Devices have one value of the attribute ``match``, or each another one of ``distinct``.

    One of the two is set. It is for the devices of these requests; for all when there are none.
    """

    requests: tuple[str, ...]
    match: str = ""
    distinct: str = ""


class ClaimSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a claim asks for. ``defect`` says what in it is not known here."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfig, ...] = ()
    defect: str = ""


class RequestMapping(NamedTuple):
    """A container gets its resource by this request."""

    container: str
    resource: str
    request: str


class GivenDevice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device that a claim got for a request ("request", or "request/alternative").

    ``consumed`` is what it takes of a device that several claims share, under ``share_id``.
    """

    request: str
    device: DeviceId
    admin: bool | None = None
    share_id: str = ""
    consumed: tuple[tuple[str, str], ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failures: tuple[str, ...] = ()
    tolerations_text: str = ""


class GivenConfig(NamedTuple):
    """Configuration that goes with an allocation; ``source`` is FromClass or FromClaim."""

    source: str
    requests: tuple[str, ...]
    text: str


class Allocation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The devices of a claim, and on which nodes they are (None: on all)."""

    devices: tuple[GivenDevice, ...]
    nodes: tuple[SelectorTerm, ...] | None = None
    config: tuple[GivenConfig, ...] = ()


class ResourceClaim(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A claim. ``owner_uid`` is its controller's; ``reserved_for`` the uids that may use it.

    ``binding_failed`` says which condition of a device failed after it was allocated;
    ``binding_pending`` that one is not true yet, and by ``binding_due_s`` it has to be (epoch
    seconds). ``special`` marks one that a scheduler made for
    its owner's extended resources.
    """

    namespace: str
    name: str
    uid: str
    version: str
    spec: ClaimSpec
    owner_uid: str = ""
    terminating: bool = False
    allocation: Allocation | None = None
    reserved_for: tuple[str, ...] = ()
    binding_failed: str = ""
    binding_pending: bool = False
    binding_due_s: float | None = None
    special: bool = False


class PodClaim(NamedTuple):
    """An entry of ``pod.spec.resourceClaims``.

    ``claim`` is the claim's name: None while it is not made yet from its template, empty when none
    is needed. ``own`` says that it comes from a template, so that it is the pod's alone.
    """

    name: str
    claim: str | None
    own: bool
