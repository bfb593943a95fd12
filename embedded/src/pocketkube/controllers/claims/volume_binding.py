"""Claims get volumes: what kube-controller-manager binds, and volumes made on demand.

A claim is bound to a volume that is kept for it, or to the smallest one that suits it. Where there
is none, its storage class decides: claims of ``PROVISIONER`` get a new volume, those of another
provisioner are told its name and wait for it. A class with ``WaitForFirstConsumer`` has to be told
a node first, by the scheduler. What is in use is protected. Source:
``pkg/controller/volume/persistentvolume`` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.controllers.base import SETTLE_S, Controller, Shared, Work
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object, annotations_of, drop_finalizer, key_of, labels_of, name_of
from pocketkube.schema.quantities import nano_units
from pocketkube.store.store import Event

_CLAIMS = "persistentvolumeclaims"
_VOLUMES = "persistentvolumes"
_FINALIZERS = {_CLAIMS: "kubernetes.io/pvc-protection", _VOLUMES: "kubernetes.io/pv-protection"}


class VolumeProtection(Controller):
    """Takes the finalizer off claims and volumes that are being deleted and not in use."""

    buckets = (_CLAIMS, _VOLUMES)
    pods_matter = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._going: dict[str, set[str]] = {}  # claims that are being deleted, by namespace

    def on_event(self, event: Event) -> None:
        """Note what is being deleted."""
        namespace, name = event.entry.namespace, event.entry.name
        if event.type == "DELETED":
            self._going.get(namespace, set()).discard(name)
        elif "deletionTimestamp" in event.object["metadata"]:
            if event.bucket == _CLAIMS:
                self._going.setdefault(namespace, set()).add(name)
            self.enqueue((event.bucket, namespace, name))

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Look again at a namespace's claims when a pod is gone."""
        if before is not None and after is None:
            for name in self._going.get(before.namespace, ()):
                self.enqueue((_CLAIMS, before.namespace, name), SETTLE_S)

    def reconcile(self, key: Any) -> Work:
        """Let one claim or volume go if nothing uses it."""
        bucket, namespace, name = key
        found = self.api.find(bucket, namespace, name)
        if found is None or "deletionTimestamp" not in found["metadata"]:
            return None
        if bucket == _VOLUMES:
            used = (found.get("status") or {}).get("phase") == "Bound"
        else:
            used = any(_uses(pod, name) for pod in self.api.find_all("pods", namespace))
        if not used:
            finalizer = _FINALIZERS[bucket]
            self.api.amend(bucket, namespace, name, lambda obj: drop_finalizer(obj, finalizer))
        return None


def _uses(pod: Object, claim: str) -> bool:
    """Tell whether a pod that is on a node has the claim among its volumes."""
    if not pod["spec"].get("nodeName"):
        return False
    for volume in pod["spec"].get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim:
            return True
        if "ephemeral" in volume and f"{name_of(pod)}-{volume['name']}" == claim:
            return True
    return False


PROVISIONER = "pocketkube.dev/dynamic"
"""The provisioner of this cluster: it makes a volume of the claimed size, without any data."""
CLASSES = "storageclasses.storage.k8s.io"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND = "pv.kubernetes.io/bind-completed"
_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class VolumeBinding(Controller):
    """Binds claims and volumes, and says in their status what became of them."""

    buckets = (_CLAIMS, _VOLUMES, CLASSES)
    component = "persistentvolume-controller"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._volumes = self.api.registry.named("v1", _VOLUMES)
        self._unbound: dict[str, set[tuple[str, str]]] = {}
        """Claims without a volume, by storage class."""

    def on_event(self, event: Event) -> None:
        """Note the claim or volume, and whom the change may help."""
        obj, entry = event.object, event.entry
        if event.bucket == CLASSES:
            self._look_again(entry.name)
            return
        gone = event.type == "DELETED"
        spec = obj["spec"]
        if event.bucket == _CLAIMS:
            waiting = self._unbound.setdefault(spec.get("storageClassName") or "", set())
            key = (entry.namespace, entry.name)
            if gone or spec.get("volumeName"):
                waiting.discard(key)
            else:
                waiting.add(key)
            if spec.get("volumeName"):
                self.enqueue((_VOLUMES, "", spec["volumeName"]))
        elif spec.get("claimRef"):
            ref = spec["claimRef"]
            self.enqueue((_CLAIMS, ref.get("namespace", ""), ref.get("name", "")))
        elif not gone:
            self._look_again(spec.get("storageClassName") or "")
        self.enqueue((event.bucket, entry.namespace, entry.name))

    def _look_again(self, storage_class: str) -> None:
        for namespace, name in self._unbound.get(storage_class, ()):
            self.enqueue((_CLAIMS, namespace, name))

    def reconcile(self, key: Any) -> Work:
        """Bring one claim or volume nearer to being bound."""
        bucket, namespace, name = key
        found = self.api.find(bucket, namespace, name)
        if found is None:
            return None
        if bucket == _VOLUMES:
            self._settle_volume(found)
        elif _BOUND in annotations_of(found):
            self._settle_bound(found)
        elif "deletionTimestamp" not in found["metadata"]:
            self._settle_unbound(found)
        return None

    # Claims

    def _settle_unbound(self, claim: Object) -> None:
        named = claim["spec"].get("volumeName")
        if named:
            volume = self.api.find(_VOLUMES, "", named)
            if volume is not None and _is_free_for(volume, claim):
                self._bind(volume, claim)
            return
        kept = [one for one in self.api.find_all(_VOLUMES) if _is_kept_for(one, claim)]
        if kept:
            self._bind(kept[0], claim)
            return
        storage_class = self.api.find(CLASSES, "", claim["spec"].get("storageClassName") or "")
        if (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer":
            if SELECTED_NODE not in annotations_of(claim):
                why = "waiting for first consumer to be created before binding"
                self.record(claim, "WaitForFirstConsumer", why)
                return
        else:
            suiting = [one for one in self.api.find_all(_VOLUMES) if _suits(one, claim)]
            if suiting:
                self._bind(min(suiting, key=lambda one: (_capacity(one), name_of(one))), claim)
                return
        self._provision(claim, storage_class)

    def _provision(self, claim: Object, storage_class: Object | None) -> None:
        if storage_class is None:
            why = "no persistent volumes available for this claim and no storage class is set"
            if claim["spec"].get("storageClassName"):
                why = f'storageclass.storage.k8s.io "{claim["spec"]["storageClassName"]}" not found'
            self.record(claim, "FailedBinding", why)
            return
        provisioner = storage_class["provisioner"]
        if provisioner == PROVISIONER:
            volume = _volume_for(claim, storage_class)
            if self.api.find(_VOLUMES, "", name_of(volume)) is None:
                self.api.create(self._volumes, "", volume)
                why = f"Successfully provisioned volume {name_of(volume)}"
                self.record(claim, "ProvisioningSucceeded", why)
        elif provisioner != _NO_PROVISIONER:
            why = f"Waiting for a volume to be created by the external provisioner '{provisioner}'"
            self.record(claim, "ExternalProvisioning", why)

    def _bind(self, volume: Object, claim: Object) -> None:
        """Write both sides: the volume first, so that nobody else gets it."""
        ref = _reference_to(claim)
        name = name_of(volume)

        def take(found: Object) -> None:
            if not found["spec"].get("claimRef"):
                _annotate(found, {_BY_CONTROLLER: "yes"})
            found["spec"]["claimRef"] = (found["spec"].get("claimRef") or {}) | ref

        def tell(found: Object) -> None:
            done = {_BOUND: "yes"}
            if not found["spec"].get("volumeName"):
                done[_BY_CONTROLLER] = "yes"
            found["spec"]["volumeName"] = name
            _annotate(found, done)
            found["status"] = _bound_status(found, volume)

        self.api.amend(_VOLUMES, "", name, take)
        self.api.amend(_CLAIMS, *key_of(claim), tell)
        self._set_phase(volume, "Bound")

    def _settle_bound(self, claim: Object) -> None:
        volume = self.api.find(_VOLUMES, "", claim["spec"].get("volumeName") or "")
        if volume is not None and _is_kept_for(volume, claim):
            self.write_status(_CLAIMS, claim, _bound_status(claim, volume))
            return
        if claim["status"].get("phase") != "Lost":
            why = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            self.record(claim, "ClaimLost", why, warning=True)
        self.write_status(_CLAIMS, claim, {**claim["status"], "phase": "Lost"})

    # Volumes

    def _settle_volume(self, volume: Object) -> None:
        ref = volume["spec"].get("claimRef")
        if not ref:
            self._set_phase(volume, "Available")
            return
        claim = self.api.find(_CLAIMS, ref.get("namespace", ""), ref.get("name", ""))
        if claim is not None and ref.get("uid") in (None, "", claim["metadata"]["uid"]):
            bound = claim["spec"].get("volumeName") == name_of(volume)
            self._set_phase(volume, "Bound" if bound else "Available")
        elif not ref.get("uid"):
            self._set_phase(volume, "Available")
        else:
            self._set_phase(volume, "Released")
            ours = annotations_of(volume).get(_PROVISIONED_BY) == PROVISIONER
            deletes = volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
            if ours and deletes and "deletionTimestamp" not in volume["metadata"]:
                self.api.delete(self._volumes, "", name_of(volume))

    def _set_phase(self, volume: Object, phase: str) -> None:
        self.write_status(_VOLUMES, volume, {**(volume.get("status") or {}), "phase": phase})


def _annotate(found: Object, annotations: Mapping[str, str]) -> None:
    found["metadata"]["annotations"] = {**annotations_of(found), **annotations}


def _reference_to(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "uid": metadata["uid"],
        "namespace": metadata["namespace"],
        "name": metadata["name"],
    }


def _is_kept_for(volume: Object, claim: Object) -> bool:
    """Tell whether a volume names this claim as its own."""
    ref = volume["spec"].get("claimRef") or {}
    if (ref.get("namespace"), ref.get("name")) != key_of(claim):
        return False
    return ref.get("uid") in (None, "", claim["metadata"]["uid"])


def _is_free_for(volume: Object, claim: Object) -> bool:
    return not volume["spec"].get("claimRef") or _is_kept_for(volume, claim)


def _capacity(volume: Object) -> int:
    return nano_units((volume["spec"].get("capacity") or {}).get("storage", "0"))


def _suits(volume: Object, claim: Object) -> bool:
    """Tell whether a free volume has what the claim asks for."""
    has, wants = volume["spec"], claim["spec"]
    if has.get("claimRef") or "deletionTimestamp" in volume["metadata"]:
        return False
    if (has.get("storageClassName") or "") != (wants.get("storageClassName") or ""):
        return False
    if has.get("volumeMode") != wants.get("volumeMode"):
        return False
    if not set(wants.get("accessModes") or ()) <= set(has.get("accessModes") or ()):
        return False
    if not selector_of(wants.get("selector") or {}).matches(labels_of(volume)):
        return False
    return _capacity(volume) >= nano_units(wants["resources"]["requests"]["storage"])


def _bound_status(claim: Object, volume: Object) -> Object:
    return {
        **(claim.get("status") or {}),
        "phase": "Bound",
        "accessModes": volume["spec"].get("accessModes") or [],
        "capacity": volume["spec"].get("capacity") or {},
    }


def _volume_for(claim: Object, storage_class: Object) -> Object:
    """Return a new volume for the claim; only the selected node can use it, if there is one."""
    metadata, spec = claim["metadata"], claim["spec"]
    volume: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {_PROVISIONED_BY: PROVISIONER},
        },
        "spec": {
            "accessModes": spec.get("accessModes") or [],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": _reference_to(claim),
            "hostPath": {"path": f"/var/lib/pocketkube/{metadata['uid']}"},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": name_of(storage_class),
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }
    node = annotations_of(claim).get(SELECTED_NODE)
    if node:
        key = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        terms = [{"matchExpressions": [key]}]
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return volume
