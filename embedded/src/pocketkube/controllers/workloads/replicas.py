"""ReplicaSets: as many pods as wanted.

Source: ``pkg/controller/replicaset`` of Kubernetes 1.36, and what a real one was seen to write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pocketkube.controllers.owning import PodOwner, deletion_order, is_terminating_namespace
from pocketkube.controllers.templates import encoded_pod, with_condition
from pocketkube.errors import ApiError
from pocketkube.objects import Object, rfc3339
from pocketkube.store.store import decode


class ReplicaSets(PodOwner):
    """Creates and deletes pods until ``spec.replicas`` of them are active."""

    buckets = ("replicasets.apps",)
    bucket = "replicasets.apps"
    kind = "ReplicaSet"
    component = "replicaset-controller"

    def reconcile(self, key: Any) -> Iterator[None]:
        """Bring one ReplicaSet nearer to its replicas, then write its status."""
        found = self.api.find(self.bucket, *key)
        if found is None:
            return
        if "deletionTimestamp" not in found["metadata"]:
            try:
                yield from self._manage(found)
            except ApiError as error:
                self._update_status(found, error)
                if is_terminating_namespace(error):
                    return
                raise
        self._update_status(found, None)

    def _manage(self, found: Object) -> Iterator[None]:
        uid, wanted = found["metadata"]["uid"], found["spec"].get("replicas", 1)
        missing = wanted - self.pods.owned(uid).active
        if missing > 0:
            raw = encoded_pod(found["spec"]["template"], found)
            while self.pods.owned(uid).active < wanted and self.unchanged(found):
                self.create_pod(found, decode(raw))
                yield
        elif missing < 0:
            active = [pod for pod in self.pods.owned(uid).pods.values() if pod.active]
            for pod in deletion_order(active)[:-missing]:
                if not self.unchanged(found):
                    return  # its event has enqueued it again
                self.delete_pod(found, pod)
                yield

    def _update_status(self, found: Object, error: ApiError | None) -> None:
        newest = self.again(found)
        if newest is None:
            return
        owned = self.pods.owned(newest["metadata"]["uid"])
        available = owned.ready
        if newest["spec"].get("minReadySeconds", 0):
            available = sum(self.is_available(newest, pod) for pod in owned.pods.values())
        status: dict[str, Any] = {"replicas": owned.active}
        counts = {
            "fullyLabeledReplicas": owned.active,
            "readyReplicas": owned.ready,
            "availableReplicas": available,
        }
        status |= {field: number for field, number in counts.items() if number}
        status["terminatingReplicas"] = owned.terminating
        status["observedGeneration"] = found["metadata"].get("generation", 0)
        conditions = self._conditions(newest, error)
        if conditions:
            status["conditions"] = conditions
        self.write_status(self.bucket, newest, status)

    def _conditions(self, found: Object, error: ApiError | None) -> list[dict[str, Any]]:
        old = (found.get("status") or {}).get("conditions") or []
        if error is None:
            return [c for c in old if c["type"] != "ReplicaFailure"]
        condition = {
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": rfc3339(self.api.now_s()),
            "reason": "FailedCreate",
            "message": error.message,
        }
        return with_condition(old, condition)
