"""What pods bring with them: claims of ephemeral volumes, and claims of devices from templates.

In: pods. Out: PersistentVolumeClaims and ResourceClaims that the pods own, and, for devices, claims
that are free again when no pod uses them. Devices are chosen by the scheduler. Source:
``pkg/controller/volume/ephemeral`` and ``pkg/controller/resourceclaim`` of Kubernetes 1.36.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pocketkube.controllers.base import Controller, Shared, Work
from pocketkube.errors import ApiError
from pocketkube.objects import (
    Object,
    annotations_of,
    controller_of,
    drop_finalizer,
    name_of,
    namespace_of,
)
from pocketkube.store.store import Event

_VOLUME_CLAIMS = "persistentvolumeclaims"
_CLAIMS = "resourceclaims.resource.k8s.io"
_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
_POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_FINALIZER = "resource.kubernetes.io/delete-protection"
_FINISHED = ("Succeeded", "Failed")


def _owned_by(pod: Object) -> list[Object]:
    who = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": pod["metadata"]["uid"]}
    return [who | {"controller": True, "blockOwnerDeletion": True}]


def _is_owned_by(obj: Object, pod: Object) -> bool:
    owner = controller_of(obj)
    return owner is not None and owner.get("uid") == pod["metadata"]["uid"]


class EphemeralVolumes(Controller):
    """Makes the claims of a pod's ephemeral volumes, each named after pod and volume."""

    buckets = ("pods",)
    component = "ephemeral_volume"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._claims = self.api.registry.named("v1", _VOLUME_CLAIMS)

    def on_event(self, event: Event) -> None:
        """Note new pods that have ephemeral volumes."""
        if event.type == "ADDED" and _ephemeral(event.object):
            self.enqueue((event.entry.namespace, event.entry.name))

    def reconcile(self, key: Any) -> Work:
        """Make the claims of one pod that are not there."""
        pod = self.api.find("pods", *key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return None
        for volume in _ephemeral(pod):
            self._make(pod, volume)
        return None

    def _make(self, pod: Object, volume: Object) -> None:
        name = f"{name_of(pod)}-{volume['name']}"
        there = self.api.find(_VOLUME_CLAIMS, namespace_of(pod), name)
        if there is not None:
            if not _is_owned_by(there, pod):
                why = f'PVC "{namespace_of(pod)}/{name}" was not created for pod "{name_of(pod)}"'
                self.record(pod, "FailedBinding", why, warning=True)
            return
        template = volume["ephemeral"]["volumeClaimTemplate"]
        metadata = dict(template.get("metadata") or {})
        metadata |= {"name": name, "ownerReferences": _owned_by(pod)}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        self.api.create(self._claims, namespace_of(pod), claim | {"spec": template["spec"]})


def _ephemeral(pod: Object) -> list[Object]:
    volumes = pod["spec"].get("volumes") or ()
    return [one for one in volumes if (one.get("ephemeral") or {}).get("volumeClaimTemplate")]


class DeviceClaims(Controller):
    """Makes ResourceClaims from templates, and frees those that no pod uses any more."""

    buckets = ("pods", _CLAIMS, _TEMPLATES)
    component = "resource_claim"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._claims = self.api.registry.named("resource.k8s.io/v1", "resourceclaims")
        self._waiting: dict[tuple[str, str], set[str]] = {}
        """Names of pods that wait for a template, by the template's namespace and name."""

    def on_event(self, event: Event) -> None:
        """Note pods with claims, claims that are reserved, and templates that come."""
        namespace, name = event.entry.namespace, event.entry.name
        if event.bucket == _TEMPLATES:
            for pod in self._waiting.pop((namespace, name), ()):
                self.enqueue(("pods", namespace, pod))
        elif event.bucket == _CLAIMS:
            self.enqueue((_CLAIMS, namespace, name))
        elif event.type == "DELETED" or _is_finished(event.object):
            for entry in self.api.store.entries(_CLAIMS, namespace):
                self.enqueue((_CLAIMS, namespace, entry.name))
        elif event.object["spec"].get("resourceClaims"):
            self.enqueue(("pods", namespace, name))

    def reconcile(self, key: Any) -> Work:
        """Make what one pod lacks, or free one claim."""
        bucket, namespace, name = key
        found = self.api.find(bucket, namespace, name)
        if found is None:
            return None
        if bucket == _CLAIMS:
            self._settle(found)
        elif "deletionTimestamp" not in found["metadata"] and not _is_finished(found):
            self._make_all(found)
        return None

    # Pods

    def _make_all(self, pod: Object) -> None:
        told = {one["name"]: one for one in _statuses(pod)}
        for one in pod["spec"].get("resourceClaims") or ():
            if one.get("resourceClaimTemplateName") and one["name"] not in told:
                name = self._made(pod, one)
                if name:
                    told[one["name"]] = {"name": one["name"], "resourceClaimName": name}
        if list(told.values()) != _statuses(pod):
            self._tell(pod, list(told.values()))
        if pod["spec"].get("nodeName"):
            named = [one.get("resourceClaimName") for one in pod["spec"]["resourceClaims"]]
            named += [one.get("resourceClaimName") for one in told.values()]
            for name in named:
                self._reserve(pod, name)

    def _made(self, pod: Object, wanted: Object) -> str | None:
        """Return the name of the claim for one entry of a pod; make it where it is not there."""
        namespace = namespace_of(pod)
        for claim in self.api.find_all(_CLAIMS, namespace):
            entry = annotations_of(claim).get(_POD_CLAIM_NAME)
            if entry == wanted["name"] and _is_owned_by(claim, pod):
                return name_of(claim)
        key = (namespace, wanted["resourceClaimTemplateName"])
        template = self.api.find(_TEMPLATES, *key)
        if template is None:
            self._waiting.setdefault(key, set()).add(name_of(pod))
            why = f'PodResourceClaim {wanted["name"]}: resource claim template "{key[1]}" not found'
            self.record(pod, "FailedResourceClaimCreation", why, warning=True)
            return None
        given = template["spec"].get("metadata") or {}
        metadata: dict[str, Any] = {
            "generateName": f"{name_of(pod)}-{wanted['name']}-",
            "annotations": {**(given.get("annotations") or {}), _POD_CLAIM_NAME: wanted["name"]},
            "ownerReferences": _owned_by(pod),
        }
        if given.get("labels"):
            metadata["labels"] = given["labels"]
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
        made = self.api.create(self._claims, namespace, claim | {"spec": template["spec"]["spec"]})
        return name_of(made)

    def _tell(self, pod: Object, statuses: list[Object]) -> None:
        def change(found: Object) -> None:
            if found["metadata"]["uid"] == pod["metadata"]["uid"]:
                found.setdefault("status", {})["resourceClaimStatuses"] = statuses

        self.api.amend("pods", namespace_of(pod), name_of(pod), change, subresource="status")

    def _reserve(self, pod: Object, name: str | None) -> None:
        """Reserve an allocated claim for a pod that somebody put on a node without doing so."""
        uid = pod["metadata"]["uid"]

        def change(found: Object) -> None:
            status = found.get("status") or {}
            users = status.get("reservedFor") or []
            if status.get("allocation") and all(one["uid"] != uid for one in users):
                user = {"resource": "pods", "name": name_of(pod), "uid": uid}
                status["reservedFor"] = [*users, user]

        if name:
            self.api.amend(_CLAIMS, namespace_of(pod), name, change, subresource="status")

    # Claims

    def _settle(self, claim: Object) -> None:
        namespace, name = namespace_of(claim), name_of(claim)
        owner = controller_of(claim)
        users = (claim.get("status") or {}).get("reservedFor") or []
        used = [one for one in users if self._uses(namespace, one)]
        if not used and (users or "deletionTimestamp" in claim["metadata"]):
            self.api.amend(_CLAIMS, namespace, name, _free)
        elif used != users:
            self.api.amend(_CLAIMS, namespace, name, lambda obj: _keep(obj, used))
        if owner is None or owner.get("kind") != "Pod" or used:
            return
        pod = self.api.find("pods", namespace, owner["name"])
        ended = pod is None or pod["metadata"]["uid"] != owner["uid"] or _is_finished(pod)
        if ended and "deletionTimestamp" not in claim["metadata"]:
            with contextlib.suppress(ApiError):
                self.api.delete(self._claims, namespace, name)

    def _uses(self, namespace: str, user: Object) -> bool:
        if user.get("resource") != "pods":
            return True
        pod = self.api.find("pods", namespace, user["name"])
        if pod is None or pod["metadata"]["uid"] != user["uid"] or _is_finished(pod):
            return False
        return bool(pod["spec"].get("nodeName")) or "deletionTimestamp" not in pod["metadata"]


def _is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in _FINISHED


def _statuses(pod: Object) -> list[Object]:
    return list((pod.get("status") or {}).get("resourceClaimStatuses") or ())


def _keep(found: Object, users: list[Object]) -> None:
    found["status"]["reservedFor"] = users


def _free(found: Object) -> None:
    """Take users, allocation and finalizer off a claim that nobody uses."""
    for field in ("reservedFor", "allocation", "devices"):
        (found.get("status") or {}).pop(field, None)
    drop_finalizer(found, _FINALIZER)
