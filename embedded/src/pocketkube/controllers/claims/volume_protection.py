"""Volumes and claims stay until nothing uses them, and go then.

Source: ``pkg/controller/volume/pvcprotection`` and ``pvprotection`` of Kubernetes 1.36. Binding is
done by ``volume_binding``.
"""

from __future__ import annotations

from typing import Any

from pocketkube.controllers.base import SETTLE_S, Controller, Shared, Work
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.objects import Object, drop_finalizer, name_of
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
