"""Devices of the cluster that claims of tenants may ask for: eight on each of some nodes."""

from tools.controlplane import Access
from tools.objects import named

DRIVER = "gpu.example.com"
CLASS = "gpus"
_API = "resource.k8s.io/v1"


def make_devices(cluster: Access, nodes: list[str]) -> None:
    """Publish the devices and their class, as a driver and an administrator would."""
    chosen = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    _create(cluster, "deviceclasses", "DeviceClass", CLASS, chosen)
    for node in nodes:
        devices = [
            {"name": f"gpu-{i}", "attributes": {"uuid": {"string": f"{node}-{i}"}}}
            for i in range(8)
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        _create(cluster, "resourceslices", "ResourceSlice", node, spec)


def _create(cluster: Access, plural: str, kind: str, name: str, spec: dict) -> None:
    cluster.api("POST", f"/apis/{_API}/{plural}", named(kind, _API, name, spec=spec))


def claim(name: str, *expressions: str, **exactly: object) -> dict:
    """Return a claim of one device with these CEL selectors."""
    selectors = [{"cel": {"expression": one}} for one in expressions]
    asked = {"deviceClassName": CLASS, "selectors": selectors, **exactly}
    spec = {"devices": {"requests": [{"name": "r", "exactly": asked}]}}
    return named("ResourceClaim", _API, name, spec=spec)


def using(*claims: str) -> dict:
    """Return what a pod's spec needs to have these claims."""
    return {
        "resourceClaims": [
            {"name": f"c{i}", "resourceClaimName": name} for i, name in enumerate(claims)
        ]
    }
