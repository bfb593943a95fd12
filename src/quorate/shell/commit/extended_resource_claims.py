"""ResourceClaims for extended resources that devices serve: create, name in the pod, delete.

Called by ``device_claims``, which allocates and reserves them like any claim. The name of such a
claim follows from its pod, so that a create whose answer was lost is found again. Source: bindClaim
and deleteClaim of kube-scheduler 1.36's DynamicResources.
"""

from __future__ import annotations

import msgspec

from quorate.core.model.plan import Bind, Give, SpecialClaim, TakeBack
from quorate.shell.kube.errors import Conflict, NotFound
from quorate.shell.kube.objects import Metadata
from quorate.shell.kube.paths import resource_path
from quorate.shell.kube.writer import Writer

FINALIZER = "resource.kubernetes.io/delete-protection"
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


class ClaimError(Exception):
    """A claim that cannot be written; the text says why."""


class _Claim(msgspec.Struct):
    metadata: Metadata
    spec: msgspec.Raw = msgspec.Raw(b"null")


_CLAIM = msgspec.json.Decoder(_Claim)
_SPEC = msgspec.json.Decoder(dict[str, dict[str, list[dict[str, object]]]])


def claim_path(namespace: str, name: str, sub: str = "") -> str:
    """Return the path of a claim, or of a part of it."""
    return resource_path("resource.k8s.io", "v1", "resourceclaims", namespace, name, sub or None)


async def create_claim(writer: Writer, give: Give, special: SpecialClaim, bind: Bind) -> str:
    """Create the claim, if it is not there yet, and return its uid. Raises ``ClaimError``."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": bind.name,
        "uid": bind.uid,
        "controller": True,
    }
    requests = [
        {
            "name": name,
            "exactly": {
                "deviceClassName": device_class,
                "allocationMode": "ExactCount",
                "count": count,
            },
        }
        for name, device_class, count in special.requests
    ]
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": give.claim,
            "namespace": give.namespace,
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": requests}},
    }
    path = resource_path("resource.k8s.io", "v1", "resourceclaims", give.namespace)
    try:
        return _CLAIM.decode(await writer.post(path, body)).metadata.uid
    except Conflict:
        found = _CLAIM.decode(await writer.get(claim_path(give.namespace, give.claim)))
    owners = [one.uid for one in found.metadata.owner_references or ()]
    if owners != [bind.uid] or found.metadata.deletion_timestamp is not None:
        raise ClaimError("there is another claim of that name")
    if _names(found) != [name for name, _, _ in special.requests]:
        raise ClaimError("it was made for another node")
    return found.metadata.uid


def _names(claim: _Claim) -> list[object]:
    devices = _SPEC.decode(claim.spec).get("devices", {})
    return [one.get("name") for one in devices.get("requests", ())]


async def name_in_pod(writer: Writer, give: Give, special: SpecialClaim, bind: Bind) -> None:
    """Write into the pod's status which claim serves which container. Raises ``ClaimError``."""
    status = {
        "extendedResourceClaimStatus": {
            "resourceClaimName": give.claim,
            "requestMappings": [
                {
                    "containerName": one.container,
                    "resourceName": one.resource,
                    "requestName": one.request,
                }
                for one in special.mappings
            ],
        }
    }
    path = resource_path("", "v1", "pods", bind.namespace, bind.name, "status")
    try:
        body = {"metadata": {"uid": bind.uid}, "status": status}
        await writer.patch(path, body, "merge")
    except NotFound as error:
        raise ClaimError(f"pod {bind.name} does not exist any more") from error


async def delete_claim(writer: Writer, claim: TakeBack) -> bytes:
    """Delete a claim that its pod does not use, and free its devices. Raises ``ApiError``."""
    path = claim_path(claim.namespace, claim.claim)
    metadata = {
        "uid": claim.uid,
        "resourceVersion": claim.version,
        "$deleteFromPrimitiveList/finalizers": [FINALIZER],
    }
    await writer.patch(path, {"metadata": metadata}, "strategic")
    options = {"preconditions": {"uid": claim.uid}}
    return await writer.delete(path, options)
