"""Extended resources that device classes back, and the claims that are made for them."""

from msgspec.structs import replace

from quorate.core.cluster.devices.special_claims import claim_name
from quorate.core.model import ResourceClaim
from quorate.core.model.devices import ClaimSpec, ContainerDevices
from tests.unit.core.device_world import gpu_class, gpu_world
from tests.unit.core.world import TEAM, World, binds_of

RESOURCE = "example.com/gpu"
BACKS = gpu_class("true", extended=RESOURCE)


def backed_world(*counts: int) -> World:
    """One node for each count, with so many devices; no node lists the resource."""
    return gpu_world(*counts, of=BACKS)


def asks(count: int) -> dict:
    container = ContainerDevices("c", brief=False, requests=((RESOURCE, count, 1),))
    return {"requests": {RESOURCE: count}, "spec": {"extended": (container,)}}


def gives(plan) -> dict[str, list[str]]:
    return {
        bind.name: [str(one.device) for give in bind.gives for one in give.allocation.devices]
        for bind in binds_of(plan)
    }


def made(w: World, pod: str, *, devices=None) -> ResourceClaim:
    """The claim of an earlier attempt is there."""
    found = ResourceClaim(
        TEAM, claim_name(w.pods[pod]), "c", "7", ClaimSpec(), owner_uid=f"uid-{pod}", special=True
    )
    return replace(found, allocation=devices)
