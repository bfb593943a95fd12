"""Which object and field a person has to create or fix before a pod can be placed.

In: a waiting pod and the cluster. Out: words that follow kube-scheduler's message. Called by
``diagnosis`` when somebody asks.
"""

from __future__ import annotations

from collections.abc import Collection

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.storage.volume_needs import problems_of
from quorate.core.model import Pod, PodClaim, PodSpec, ResourceClaim
from quorate.core.model.storage import ClaimKey
from quorate.core.rules.devices.dynamic_resources import CANNOT_ALLOCATE
from quorate.core.rules.faults import impossible_terms
from quorate.core.rules.table import FILTERS


def hint(pod: Pod, cluster: Cluster) -> str:
    """Return what to fix in the pod's claims of volumes and devices; "" if nothing."""
    if pod.claims:
        if problems := problems_of(pod, cluster.storage):
            return _unreadable(pod, cluster) or problems[0].detail
        if words := _impossible_volume(pod, cluster):
            return words
    for index, entry in enumerate(pod.device_claims):
        if entry.claim != "" and (words := _of_entry(pod, index, entry, cluster)):
            return words
    device_needs = cluster.device_needs.of(pod)
    if device_needs is not None and device_needs.problem:
        return device_needs.problem  # more claims than are read
    return _backed(pod, cluster)


def doubtful(pod: Pod, cluster: Cluster, messages: Collection[str]) -> str:
    """Return a field that may exclude all nodes now, though nodes may come to match; "" if none.

    ``messages`` are those of the filters about nodes.
    """
    doubts = (rule.doubt(pod, cluster, messages) for rule in reversed(FILTERS) if rule.doubt)
    found = next((one for one in doubts if one), "")
    if not found and pod.device_claims:
        found = _left_out("ResourceSlice", cluster) or _not_given(cluster, messages)
    return found or _left_out("Node", cluster)


def impossible_field(spec: PodSpec) -> str:
    """Return the first field that excludes every node, and why; "" if there is none."""
    faults = (rule.fault(spec) for rule in FILTERS if rule.fault is not None)
    return next((one for one in faults if one), "")


def _left_out(kind: str, cluster: Cluster) -> str:
    """Return the first unreadable object of a kind, which blocks placement; "" if none."""
    names = sorted(name for of, _, name in cluster.unreadable if of == kind)
    if not names:
        return ""
    return f"{kind} {names[0]} cannot be read: {cluster.unreadable[kind, '', names[0]]}"


def _not_given(cluster: Cluster, messages: Collection[str]) -> str:
    """Return the first slice with devices that are given to nobody; "" if none is in the way."""
    left_out = cluster.devices.left_out
    if not left_out or not any(one.startswith(CANNOT_ALLOCATE.message) for one in messages):
        return ""
    name = min(left_out)
    return f"devices of ResourceSlice {name} are left out: {left_out[name]}"


def _backed(pod: Pod, cluster: Cluster) -> str:
    """Return an extended resource that no node lists and a device class backs; "" if none."""
    for name, amount in pod.spec.requests:
        found = cluster.devices.backing(name) if amount and "/" in name else None
        if found is not None and name not in cluster.resources.columns:
            field = "spec.extendedResourceName" if found.extended == name else "metadata.name"
            words = f"{name} is asked for in resources of pod {pod.name} and backed by {field}"
            return f"{words} of DeviceClass {found.name}: devices are given to ResourceClaims alone"
    return ""


def _impossible_volume(pod: Pod, cluster: Cluster) -> str:
    """Return a volume of the pod whose node affinity excludes every node; "" if none."""
    for use in pod.claims:
        claim = cluster.storage.claims.get(ClaimKey(pod.namespace, use.name))
        volume = cluster.storage.volumes.get(claim.volume) if claim else None
        if volume is None or volume.affinity is None:
            continue
        path = f"spec.nodeAffinity.required of volume {volume.name}"
        if fault := impossible_terms(volume.affinity, (), f"{path}: nodeSelectorTerms"):
            return fault
    return ""


def _unreadable(pod: Pod, cluster: Cluster) -> str:
    """Return a claim, class or volume of the pod that exists and cannot be read; "" if none."""
    for use in pod.claims:
        key = ClaimKey(pod.namespace, use.name)
        objects = [("Claim", f"claim {key}", *key)]
        if (claim := cluster.storage.claims.get(key)) is not None:
            field = f"spec.storageClassName of claim {key}: StorageClass {claim.storage_class}"
            objects.append(("StorageClass", field, "", claim.storage_class))
            field = f"spec.volumeName of claim {key}: volume {claim.volume}"
            objects.append(("Volume", field, "", claim.volume))
        for kind, words, namespace, name in objects:
            if defect := cluster.unreadable.get((kind, namespace, name)):
                return f"{words} cannot be read: {defect}"
    return ""


def _of_entry(pod: Pod, index: int, entry: PodClaim, cluster: Cluster) -> str:
    """Return what to fix in one of the pod's device claims; checks in the rule's order."""
    path = f"spec.resourceClaims[{index}]"
    if entry.claim is None:
        return f"{path}.resourceClaimTemplateName of pod {pod.name}: no claim was made of it yet"
    name = f"ResourceClaim {pod.namespace}/{entry.claim}"
    unreadable = cluster.unreadable.get(("ResourceClaim", pod.namespace, entry.claim))
    if unreadable:
        return f"{name} cannot be read: {unreadable}"
    claim = cluster.devices.claims.get((pod.namespace, entry.claim))
    if claim is None:
        return f"{path} of pod {pod.name} names {name}, which does not exist"
    if claim.terminating:
        return f"{name} is being deleted"
    if entry.own and claim.owner_uid != pod.uid:
        return f"metadata.ownerReferences of {name} do not name pod {pod.name}"
    if claim.allocation is not None:
        return f"{name}: {claim.unusable}" if claim.unusable else ""
    if claim.spec.defect:
        return f"{name}: {claim.spec.defect}"
    return _missing_class(name, claim, cluster)


def _missing_class(name: str, claim: ResourceClaim, cluster: Cluster) -> str:
    for index, request in enumerate(claim.spec.requests):
        for place, choice in enumerate(request.choices):
            if choice.device_class in cluster.devices.classes:
                continue
            which = f"firstAvailable[{place}]" if request.is_list else "exactly"
            field = f"spec.devices.requests[{index}].{which}.deviceClassName of {name}"
            unreadable = cluster.unreadable.get(("DeviceClass", "", choice.device_class))
            if unreadable:
                return f"{field}: DeviceClass {choice.device_class} cannot be read: {unreadable}"
            return f"{field} is {choice.device_class}, which does not exist"
    return ""
