"""The native gang API's one generic controller: a PodGroup stays until no pod of it runs.

Source: ``pkg/controller/scheduling/podgroup`` of Kubernetes 1.36 (gate GenericWorkload). Workloads
and PodGroups of Jobs are made behind another gate, WorkloadWithJob, which tools/controlplane leaves
off, so that none are made here either.
"""

from __future__ import annotations

from typing import Any

from pocketkube.controllers.base import SETTLE_S, Controller, Work
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.objects import drop_finalizer
from pocketkube.store.store import Event

_BUCKET = "podgroups.scheduling.k8s.io"
_FINALIZER = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtection(Controller):
    """Takes the finalizer off PodGroups that are being deleted and that no running pod names."""

    buckets = (_BUCKET,)
    pods_matter = True

    def on_event(self, event: Event) -> None:
        """Note PodGroups that are being deleted."""
        if event.type != "DELETED" and "deletionTimestamp" in event.object["metadata"]:
            self.enqueue((event.entry.namespace, event.entry.name))

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Note pods of gangs that end or go."""
        if before is not None and before.gang and (after is None or after.finished):
            self.enqueue((before.namespace, before.gang), SETTLE_S)

    def reconcile(self, key: Any) -> Work:
        """Let one PodGroup go if nothing holds it."""
        entry = self.api.store.get(_BUCKET, *key)
        if entry is None or "deletionTimestamp" not in entry.object["metadata"]:
            return None
        if any(not pod.finished for pod in self.pods.of_gang.get(key, {}).values()):
            return None
        place = (_BUCKET, entry.namespace, entry.name)
        self.api.amend(*place, lambda found: drop_finalizer(found, _FINALIZER))
        return None
