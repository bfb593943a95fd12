"""Bad input around devices, in the form of ``tables``."""

from typing import Any

from quorate.core.model.reasons import Reason
from tests.unit.bad.driving import pod
from tests.unit.bad.tables import CLAIM, DELETED, Case
from tools.objects import Object, named

DRIVER = "gpu.example"
REQUEST = "spec.devices.requests[0].exactly"
API = "resource.k8s.io/v1"
USES = {"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}
MADE = {
    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
    "status": {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "c"}]},
}


def device_class(*cel: str) -> Object:
    selectors = [{"cel": {"expression": one}} for one in cel]
    return named("DeviceClass", API, "gpus", spec={"selectors": selectors})


def asks(*cel: str, **more: Any) -> Object:
    selectors = [{"cel": {"expression": one}} for one in cel]
    return {"name": "r", "exactly": {"deviceClassName": "gpus", "selectors": selectors, **more}}


def resource_claim(*requests: Object, meta: Object | None = None, **devices: Any) -> Object:
    known = {"namespace": "team", "uid": "claim-c", **(meta or {})}
    spec = {"devices": {"requests": list(requests), **devices}}
    return named("ResourceClaim", API, "c", known, spec=spec)


def on_node_a(**more: Any) -> Object:
    pool = {"name": "node-a", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "node-a", "pool": pool, "devices": [{"name": "d0"}]}
    return named("ResourceSlice", API, "s", spec={**spec, **more})


def used(*objects: Object) -> list[Object]:
    return [*objects, pod("bad", **USES)]


DEVICES = {
    "no claim": Case(used(), CLAIM, "spec.resourceClaims[0] of pod bad names ResourceClaim team/c"),
    "no class": Case(
        used(resource_claim(asks())),
        CLAIM,
        f"{REQUEST}.deviceClassName of ResourceClaim team/c is gpus, which does not exist",
    ),
    "being deleted": Case(
        used(device_class(), resource_claim(asks(), meta=DELETED)),
        CLAIM,
        "ResourceClaim team/c is being deleted",
    ),
    "of another pod": Case(
        [device_class(), resource_claim(asks()), pod("bad", **MADE)],
        CLAIM,
        "metadata.ownerReferences of ResourceClaim team/c do not name pod bad",
    ),
}
"""Where kube-scheduler's own sentence comes first, but for the first of its prefilter's errors."""

NOT_MADE = Case(
    [pod("bad", resourceClaims=MADE["resourceClaims"])],
    CLAIM,
    "spec.resourceClaims[0].resourceClaimTemplateName of pod bad: no claim was made of it yet",
)

BROKEN_DEVICES = {
    "made of no template": NOT_MADE,
    "mode": Case(
        used(device_class(), resource_claim(asks(allocationMode="Some"))),
        CLAIM,
        "ResourceClaim team/c: request r: unsupported count mode",
    ),
    "request": Case(
        used(device_class(), resource_claim({"name": "r"})),
        CLAIM,
        "ResourceClaim team/c: request r: it is of an unknown kind",
    ),
    "constraint": Case(
        used(device_class(), resource_claim(asks(), constraints=[{}])),
        CLAIM,
        "ResourceClaim team/c: spec.devices.constraints[0] is of an unknown kind",
    ),
    "count": Case(
        used(device_class(), on_node_a(), resource_claim(asks(count=10**15))),
        Reason.NOT_ENOUGH_ROOM,
        "number of requested devices 1000000000000000 exceeds the claim limit of 32",
    ),
    "count below zero": Case(
        used(device_class(), on_node_a(), resource_claim(asks(count=-4))),
        CLAIM,
        "ResourceClaim team/c cannot be read: spec.devices.requests[0].exactly.count: ",
    ),
    "claim: no object": Case(
        used(device_class(), {**resource_claim(), "spec": {"devices": 5}}),
        CLAIM,
        "ResourceClaim team/c cannot be read: spec.devices: ",
    ),
    "class: no object": Case(
        used({**device_class(), "spec": {"selectors": "x"}}, resource_claim(asks())),
        CLAIM,
        f"{REQUEST}.deviceClassName of ResourceClaim team/c: DeviceClass gpus cannot be read",
    ),
    "slice: no object": Case(
        used(device_class(), on_node_a(driver=3), resource_claim(asks())),
        Reason.NOT_ENOUGH_ROOM,
        "ResourceSlice s cannot be read: spec.driver: ",
    ),
    "slice: a quantity": Case(
        used(
            device_class(),
            on_node_a(devices=[{"name": "d0", "capacity": {"m": {"value": "lots"}}}]),
            resource_claim(asks()),
        ),
        Reason.NOT_ENOUGH_ROOM,
        "ResourceSlice s cannot be read: spec: 'lots' is not a quantity",
    ),
    "CEL: does not compile": Case(
        used(device_class(), on_node_a(), resource_claim(asks("device.driver ==="))),
        CLAIM,
        f"({REQUEST}.selectors[0].cel.expression of ResourceClaim team/c)",
    ),
    "CEL: does not compile in the class": Case(
        used(device_class("true", "nonsense("), on_node_a(), resource_claim(asks())),
        CLAIM,
        "(spec.selectors[1].cel.expression of DeviceClass gpus)",
    ),
    "CEL: no bool": Case(
        used(device_class(), on_node_a(), resource_claim(asks("1 + 1"))),
        CLAIM,
        f"({REQUEST}.selectors[0].cel.expression of ResourceClaim team/c)",
    ),
    "CEL: nested too deeply": Case(
        used(device_class(), on_node_a(), resource_claim(asks("(" * 3000 + "true" + ")" * 3000))),
        CLAIM,
        f"({REQUEST}.selectors[0].cel.expression of ResourceClaim team/c)",
    ),
    "CEL: a key that is not there": Case(
        used(
            device_class(),
            on_node_a(),
            resource_claim(asks(f'device.attributes["{DRIVER}"].nope == 1')),
        ),
        Reason.NOT_ENOUGH_ROOM,
        f"({REQUEST}.selectors[0].cel.expression of ResourceClaim team/c)",
    ),
    "CEL: a macro": Case(
        used(device_class(), on_node_a(), resource_claim(asks("[1].all(x, x == 1)"))),
        CLAIM,
        "CEL compile error: the macro all is not supported",
    ),
    "CEL: 20 kB": Case(
        used(
            device_class(), on_node_a(), resource_claim(asks(f'"{"x" * 20000}" == device.driver'))
        ),
        CLAIM,
        "CEL compile error: it has 20019 characters, and at most 1000 are read",
    ),
}
