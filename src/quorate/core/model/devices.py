"""Devices that claims ask for: slices, classes and claims of resource.k8s.io, as values.

Written by ``shell.watch.devices``; read by ``cluster.devices`` and ``room.devices``. Quantities
stay the text that was written, since selectors compare them exactly (``quantity.exact``).
Sequences that are maps there are sorted by name. What is not supported is no part of these values:
a claim that asks for it has a ``defect``, a device that needs it is ``closed``.
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


class Capacity(NamedTuple):
    """A capacity of a device: its name and a quantity."""

    name: str
    value: str


class DeviceTraits(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of a device but its name and place: devices of equal traits are alike to claims.

    ``closed`` is the field for which it is given to nobody; "" if there is none.
    """

    driver: str
    attributes: tuple[Attribute, ...] = ()
    capacity: tuple[Capacity, ...] = ()
    taints: tuple[Taint, ...] = ()
    closed: str = ""


class Device(NamedTuple):
    """A device of a slice."""

    name: str
    traits: DeviceTraits


class ResourceSlice(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """Devices of one pool.

    ``node`` is the one that reaches them; with "" they are given to nobody. A pool is complete when
    ``slices`` slices of its newest ``generation`` are known.
    """

    name: str
    driver: str
    pool: str
    generation: int
    slices: int
    node: str = ""
    devices: tuple[Device, ...] = ()


class DeviceConfig(NamedTuple):
    """Configuration for a driver, as JSON text; for all requests when ``requests`` is empty."""

    requests: tuple[str, ...]
    text: str


class DeviceClass(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A class of devices: CEL expressions that they match, and configuration for their driver.

    ``extended`` is the extended resource that it backs: such pods wait (``words.fixes``).
    """

    name: str
    selectors: tuple[str, ...] = ()
    config: tuple[DeviceConfig, ...] = ()
    extended: str = ""


class DeviceChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one request, or one alternative of it, asks for.

    ``count`` None means all devices that match.
    """

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    tolerations: tuple[Toleration, ...] = ()
    tolerations_text: str = ""


class DeviceRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request of a claim: one choice, or a list of which the first possible one is taken."""

    name: str
    choices: tuple[DeviceChoice, ...]
    is_list: bool = False


class ClaimSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a claim asks for. ``defect`` says what in it is not known, or not supported, here."""

    requests: tuple[DeviceRequest, ...] = ()
    config: tuple[DeviceConfig, ...] = ()
    defect: str = ""


class GivenDevice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device that a claim got for a request ("request", or "request/alternative").

    ``is_exclusive`` is False where another scheduler gave a share of it, or access for an admin.
    """

    request: str
    device: DeviceId
    is_exclusive: bool = True
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

    ``unusable`` names the field of its allocation that is not supported here.
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
    unusable: str = ""


class PodClaim(NamedTuple):
    """An entry of ``pod.spec.resourceClaims``.

    ``claim`` is the claim's name: None while it is not made yet from its template, empty when none
    is needed. ``own`` says that it comes from a template, so that it is the pod's alone.
    """

    name: str
    claim: str | None
    own: bool
