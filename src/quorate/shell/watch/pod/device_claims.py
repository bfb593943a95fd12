"""Which device claims a pod uses: the entries of its spec, with the names in its status.

Source: resourceclaim.Name of k8s.io/dynamic-resource-allocation 0.36. Called by ``pods``.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from quorate.core.model import PodClaim
from quorate.shell.watch.pod.wire import Spec, SpecError, Status, decode_part, is_set


class _PodClaim(Struct, gc=False, rename="camel"):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _ClaimStatus(Struct, gc=False, rename="camel"):
    name: str
    resource_claim_name: str | None = None


_CLAIMS = msgspec.json.Decoder(list[_PodClaim] | None)
_STATUSES = msgspec.json.Decoder(list[_ClaimStatus] | None)


def pod_claims(spec: Spec, status: Status | None) -> tuple[PodClaim, ...]:
    """Return the pod's claims, in the order of its spec. Raises ``SpecError``."""
    made: dict[str, str] = {}
    if status is not None and is_set(status.resource_claim_statuses):
        path = "status.resourceClaimStatuses"
        for one in decode_part(_STATUSES, status.resource_claim_statuses, path) or ():
            made[one.name] = one.resource_claim_name or ""
    found = []
    for entry in decode_part(_CLAIMS, spec.resource_claims, "spec.resourceClaims") or ():
        if entry.resource_claim_name is not None:
            found.append(PodClaim(entry.name, entry.resource_claim_name, own=False))
        elif entry.resource_claim_template_name is not None:
            found.append(PodClaim(entry.name, made.get(entry.name), own=True))
        else:
            raise SpecError(f"spec.resourceClaims: {entry.name[:60]!r} names no claim")
    return tuple(found)
