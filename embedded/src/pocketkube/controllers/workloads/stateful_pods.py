"""Pods and claims of a StatefulSet, by their ordinals. Pure functions."""

from __future__ import annotations

import copy

from pocketkube.controllers.templates import owner_reference, pod_of
from pocketkube.objects import Object

_POD_NAME = "statefulset.kubernetes.io/pod-name"
_POD_INDEX = "apps.kubernetes.io/pod-index"
_REVISION = "controller-revision-hash"


def span(found: Object) -> tuple[int, int]:
    """Return the first ordinal and the number of pods."""
    spec = found["spec"]
    return int((spec.get("ordinals") or {}).get("start", 0)), int(spec.get("replicas", 1))


def partition(found: Object) -> int:
    """Return how many pods, of the lowest ordinals, are not updated."""
    strategy = found["spec"].get("updateStrategy") or {}
    return int((strategy.get("rollingUpdate") or {}).get("partition") or 0)


def ordinal_of(set_name: str, pod_name: str) -> int | None:
    """Return the ordinal of ``web-3`` in ``web``; None when it is no pod of that set."""
    name, _, ordinal = pod_name.rpartition("-")
    return int(ordinal) if name == set_name and ordinal.isdigit() else None


def new_pod(found: Object, template: Object, ordinal: int, revision: str) -> Object:
    """Return the pod of an ordinal, with its name, labels, hostname and volumes."""
    pod = pod_of(template, found)
    name = f"{found['metadata']['name']}-{ordinal}"
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["name"] = name
    labels = {_POD_NAME: name, _POD_INDEX: str(ordinal), _REVISION: revision}
    metadata.setdefault("labels", {}).update(labels)
    spec["hostname"] = name
    if found["spec"].get("serviceName"):
        spec["subdomain"] = found["spec"]["serviceName"]
    templates = found["spec"].get("volumeClaimTemplates") or []
    claimed = {claim["metadata"]["name"]: _claim_name(found, claim, ordinal) for claim in templates}
    if claimed:
        others = [v for v in spec.get("volumes", []) if v["name"] not in claimed]
        spec["volumes"] = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
            for volume, claim in claimed.items()
        ] + others
    return pod


def _claim_name(found: Object, template: Object, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{found['metadata']['name']}-{ordinal}"


def claims(found: Object, ordinal: int) -> list[Object]:
    """Return the PersistentVolumeClaims of an ordinal."""
    selected = (found["spec"].get("selector") or {}).get("matchLabels") or {}
    retention = found["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    result = []
    for template in found["spec"].get("volumeClaimTemplates") or []:
        claim = copy.deepcopy(template)
        claim.pop("status", None)
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        metadata = claim["metadata"]
        metadata["name"] = _claim_name(found, template, ordinal)
        metadata["labels"] = {**(metadata.get("labels") or {}), **selected}
        if retention.get("whenDeleted") == "Delete":
            reference = owner_reference(found)
            del reference["blockOwnerDeletion"]
            metadata["ownerReferences"] = [reference]
        result.append(claim)
    return result
