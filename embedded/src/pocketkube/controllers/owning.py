"""What all controllers of pods share: making, counting and deleting those that they own.

No pod is adopted, and none is let go when its labels change.
"""

from __future__ import annotations

import contextlib
from typing import ClassVar

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import SETTLE_S, Controller, Shared
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.errors import ApiError
from pocketkube.objects import Object, key_of, parsed_time_s
from pocketkube.store.store import Event


class PodOwner(Controller):
    """A controller whose objects own pods by a selector."""

    bucket: ClassVar[str]  #: of its objects
    kind: ClassVar[str]
    pods_matter: ClassVar[bool] = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._pods_resource = self.api.registry.named("v1", "pods")

    def on_event(self, event: Event) -> None:
        """Follow an object of its own kind."""
        if event.bucket == self.bucket:
            self.enqueue((event.entry.namespace, event.entry.name))

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Enqueue the owners of a pod, before and after, when something that counts changed."""
        changed = before is None or after is None or _counts_otherwise(before, after)
        for pod in (before, after):
            if changed and pod is not None and pod.owner_kind == self.kind:
                self.enqueue(pod.owner_key, SETTLE_S)

    def unchanged(self, obj: Object) -> bool:
        """Tell whether the stored object is still the version that was read."""
        entry = self.api.store.get(self.bucket, *key_of(obj))
        return entry is not None and str(entry.revision) == obj["metadata"]["resourceVersion"]

    def is_available(self, owner: Object, pod: PodFacts) -> bool:
        """Tell whether a pod is ready for long enough; until then, look again when it will be."""
        if not pod.ready or not pod.active:
            return False
        min_ready_s = owner["spec"].get("minReadySeconds", 0)
        if not min_ready_s or not pod.ready_since:
            return True
        left_s = parsed_time_s(pod.ready_since) + float(min_ready_s) - self.api.now_s()
        if left_s > 0:
            self.enqueue(key_of(owner), left_s)
        return left_s <= 0

    def again(self, obj: Object) -> Object | None:
        """Return the newest version of an object; None when it is gone, or another has its name."""
        newest = self.api.find(self.bucket, *key_of(obj))
        return newest if newest and newest["metadata"]["uid"] == obj["metadata"]["uid"] else None

    def create_pod(self, owner: Object, pod: Object) -> Object:
        """Create a pod, and say so in an Event. Raises ApiError."""
        try:
            pod = self.api.create(self._pods_resource, key_of(owner)[0], pod)
        except ApiError as error:
            if not is_terminating_namespace(error):
                self.record(owner, "FailedCreate", f"Error creating: {error.message}", warning=True)
            raise
        self.record(owner, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
        return pod

    def delete_pod(self, owner: Object, pod: PodFacts, *, said: str = "") -> bool:
        """Delete a pod if it is still the same, and say so; tell whether it was there."""
        now = self.pods.get(pod.namespace, pod.name)
        if now is None or now.uid != pod.uid or now.terminating:
            return False
        with contextlib.suppress(ApiError):
            deleting = Deleting(propagation="Background", uid=pod.uid)
            self.api.delete(self._pods_resource, pod.namespace, pod.name, deleting)
            self.record(owner, "SuccessfulDelete", said or f"Deleted pod: {pod.name}")
            return True
        return False


def is_terminating_namespace(error: ApiError) -> bool:
    """Tell whether a create failed because its namespace is on its way out: nothing to tell."""
    return error.code == 403 and "is being terminated" in error.message


def _counts_otherwise(before: PodFacts, after: PodFacts) -> bool:
    return (
        before.phase != after.phase
        or before.ready != after.ready
        or before.terminating != after.terminating
        or before.owner_uid != after.owner_uid
        or before.restarts != after.restarts
    )


def deletion_order(pods: list[PodFacts]) -> list[PodFacts]:
    """Return pods in the order in which a smaller number of replicas takes them away.

    First those without a node, then pending, not ready, cheap, and young ones. Source:
    ``pkg/controller/controller_utils.go`` ActivePodsWithRanks of Kubernetes 1.36.
    """
    youngest_first = sorted(pods, key=lambda pod: pod.created, reverse=True)
    return sorted(
        youngest_first,
        key=lambda pod: (bool(pod.node), pod.phase != "Pending", pod.ready, pod.deletion_cost),
    )
