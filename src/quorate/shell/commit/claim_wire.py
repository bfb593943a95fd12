"""ResourceClaims as the API writes them, as far as ``device_claims`` reads and writes them.

In: JSON of claims, and allocations of the core. Out: typed values, and bodies of writes.
"""

from __future__ import annotations

import msgspec

from quorate.core.model.devices import Allocation, GivenDevice
from quorate.shell.kube.objects import Metadata
from quorate.shell.kube.paths import resource_path

FINALIZER = "resource.kubernetes.io/delete-protection"


class _Result(msgspec.Struct):
    driver: str = ""
    pool: str = ""
    device: str = ""


class _Devices(msgspec.Struct):
    results: list[_Result] | None = None


class _Allocation(msgspec.Struct):
    devices: _Devices = msgspec.field(default_factory=_Devices)


class _ClaimStatus(msgspec.Struct):
    allocation: _Allocation | None = None


class _Metadata(Metadata):
    finalizers: list[str] | None = None


class Claim(msgspec.Struct):
    """A claim, as far as we read it."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


CLAIM = msgspec.json.Decoder(Claim)


def claim_path(namespace: str, name: str, sub: str = "") -> str:
    """Return the path of a claim, or of a part of it."""
    return resource_path("resource.k8s.io", "v1", "resourceclaims", namespace, name, sub or None)


def without_finalizer(claim: Claim) -> dict[str, object]:
    """Return a change that makes all that carries the claim's version too old."""
    metadata = {
        "uid": claim.metadata.uid,
        "resourceVersion": claim.metadata.resource_version,
        "$deleteFromPrimitiveList/finalizers": [FINALIZER],
    }
    return {"metadata": metadata}


def allocation_body(given: Allocation) -> dict[str, object]:
    """Return an allocation as the API writes it."""
    devices: dict[str, object] = {"results": [_result(one) for one in given.devices]}
    if given.config:
        devices["config"] = [
            {"source": one.source}
            | ({"requests": list(one.requests)} if one.requests else {})
            | ({"opaque": msgspec.Raw(one.text.encode())} if one.text else {})
            for one in given.config
        ]
    body: dict[str, object] = {"devices": devices}
    if given.nodes is not None:
        body["nodeSelector"] = {
            "nodeSelectorTerms": [
                {
                    key: [
                        {"key": r.key, "operator": r.operator}
                        | ({"values": list(r.values)} if r.values else {})
                        for r in found
                    ]
                    for key, found in (
                        ("matchExpressions", term.expressions),
                        ("matchFields", term.fields),
                    )
                    if found
                }
                for term in given.nodes
            ]
        }
    return body


def _result(one: GivenDevice) -> dict[str, object]:
    driver, pool, device = one.device
    found: dict[str, object] = {
        "request": one.request,
        "driver": driver,
        "pool": pool,
        "device": device,
    }
    if one.tolerations_text:
        found["tolerations"] = msgspec.Raw(one.tolerations_text.encode())
    return found


def is_same(found: _Allocation, given: Allocation) -> bool:
    """Whether a claim has these devices, in this order."""
    devices = [(one.driver, one.pool, one.device) for one in found.devices.results or ()]
    return devices == [tuple(one.device) for one in given.devices]
