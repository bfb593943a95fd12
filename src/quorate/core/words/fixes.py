"""Which object somebody has to make or mend before a pod can be placed, and which field of it.

In: a pod that waits, and the cluster. Out: words, that follow kube-scheduler's own. Called by
``diagnosis``, when somebody looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.storage.volume_needs import problems_of
from quorate.core.model import Pod, PodClaim, ResourceClaim
from quorate.core.model.storage import ClaimKey
from quorate.core.words.impossible import POD_TERMS, impossible_terms, shown

_TOLERATION_OPERATORS = ("Equal", "Exists")
_SELECTOR = re.compile(r"(request|class) (.+?): selector #([0-9]+): ")
_BROKEN = re.compile(_SELECTOR.pattern + r"CEL (compile error|result of type|expressions need)")


def to_mend(pod: Pod, cluster: Cluster) -> str:
    """Return what to mend of the pod's claims, of volumes and of devices; "" if nothing."""
    if pod.claims:
        if problems := problems_of(pod, cluster.storage):
            return _unreadable(pod, cluster) or problems[0].detail
        if words := _impossible_volume(pod, cluster):
            return words
    for index, entry in enumerate(pod.device_claims):
        if entry.claim != "" and (words := _of_entry(pod, index, entry, cluster)):
            return words
    ask = cluster.asks.of(pod) if pod.device_claims or pod.shape.extended else None
    return ask.problem if ask is not None else ""  # more than is looked at


def doubtful(pod: Pod, cluster: Cluster, messages: Iterable[str]) -> str:
    """Return a field that may be why the pod fits nowhere, though it can become true; "" if none.

    ``messages`` are what the filters say of nodes.
    """
    tried = (
        _broken_selector(pod, cluster, messages),
        _absent_namespaces(pod, cluster),
        _odd_toleration(pod),
        _left_out("ResourceSlice", cluster) if pod.device_claims else "",
        _left_out("Node", cluster),
    )
    return next((one for one in tried if one), "")


def is_broken(messages: Iterable[str]) -> bool:
    """Whether a CEL selector is broken for all devices that there could be."""
    return any(_BROKEN.match(one) for one in messages)


def _absent_namespaces(pod: Pod, cluster: Cluster) -> str:
    """Return required affinity to pods of namespaces of which none exists."""
    known = cluster.neighbours.namespaces
    for index, term in enumerate(pod.shape.affinity):
        selector, path = term.selector, f"{POD_TERMS}[{index}]"
        if any(name in known or name == pod.namespace for name in selector.namespaces):
            continue
        by_labels = selector.namespace_selector
        if by_labels is not None and any(by_labels.matches(one) for one in known.values()):
            continue
        if by_labels is not None:
            return f"{path}.namespaceSelector matches no namespace"
        return f"{path}.namespaces: {', '.join(selector.namespaces[:3])} does not exist"
    return ""


def _odd_toleration(pod: Pod) -> str:
    for index, one in enumerate(pod.shape.tolerations):
        if one.operator and one.operator not in _TOLERATION_OPERATORS:
            field = f"spec.tolerations[{index}].operator"
            return f"{field} {shown(one.operator)} is none of {', '.join(_TOLERATION_OPERATORS)}"
    return ""


def _left_out(kind: str, cluster: Cluster) -> str:
    """Return the first object of a kind that cannot be read, so that nothing is placed there."""
    names = sorted(name for of, _, name in cluster.unreadable if of == kind)
    if not names:
        return ""
    return f"{kind} {names[0]} cannot be read: {cluster.unreadable[kind, '', names[0]]}"


def _broken_selector(pod: Pod, cluster: Cluster, messages: Iterable[str]) -> str:
    """Return the field of a CEL selector that is broken for some device."""
    said = [found for one in messages if (found := _SELECTOR.match(one))]
    if not said:
        return ""
    owner, name, number = said[0].groups()
    field = f"selectors[{number}].cel.expression"
    if owner == "class":
        return f"spec.{field} of DeviceClass {name}"
    for entry in pod.device_claims:
        claim = cluster.devices.claims.get((pod.namespace, entry.claim or ""))
        for index, request in enumerate(claim.spec.requests if claim else ()):
            for place, choice in enumerate(request.choices):
                label = f"{request.name}/{choice.name}" if request.is_list else request.name
                if name in (label, choice.name):
                    which = f"firstAvailable[{place}]" if request.is_list else "exactly"
                    path = f"spec.devices.requests[{index}].{which}.{field}"
                    return f"{path} of ResourceClaim {pod.namespace}/{entry.claim}"
    return ""


def _impossible_volume(pod: Pod, cluster: Cluster) -> str:
    """Return a volume of the pod's whose own node affinity keeps it from every node."""
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
    """Return a claim, a class or a volume of the pod's that is there and cannot be read."""
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
    """Judge one of the pod's claims of devices, in the order in which the rule does."""
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
        return ""
    if claim.spec.defect:
        return f"spec.devices of {name}: {claim.spec.defect}"
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
