"""What all controllers of pods share: making, deleting, adopting and releasing pods."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import SETTLE_S, Controller, Key, Shared
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.controllers.templates import owner_reference
from pocketkube.errors import ApiError
from pocketkube.matching.selectors import LabelSelector, selector_of
from pocketkube.objects import Object, drop_owners, key_of, parsed_time_s
from pocketkube.store.store import Event


class PodOwner(Controller):
    """A controller whose objects own pods by a selector."""

    bucket: ClassVar[str]  #: of its objects
    kind: ClassVar[str]
    pods_matter: ClassVar[bool] = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._selectors: dict[str, dict[str, LabelSelector]] = {}  # by namespace and name
        self._to_claim: set[Key] = set()  # may adopt or release pods
        self._pods_resource = self.api.registry.named("v1", "pods")

    # Noting

    def on_event(self, event: Event) -> None:
        """Follow an object of its own kind."""
        if event.bucket != self.bucket:
            return
        key = (event.entry.namespace, event.entry.name)
        if event.type == "DELETED":
            self._selectors.get(key[0], {}).pop(key[1], None)
            self._to_claim.discard(key)
        elif event.type == "ADDED" or key[1] not in self._selectors.get(key[0], {}):
            self._selectors.setdefault(key[0], {})[key[1]] = self.selector(event.object)
            self._to_claim.add(key)
        self.enqueue(key)

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Enqueue the owners of a pod, before and after, when something that counts changed."""
        pod = after or before
        assert pod is not None, "an event is about something"
        if before is not None and before.owner_kind == self.kind:
            same_owner = after is not None and after.owner_uid == before.owner_uid
            if not same_owner:
                self.enqueue(before.owner_key, SETTLE_S)
        if after is None:
            return
        relabelled = before is not None and before.labels != after.labels
        if after.owner_kind == self.kind:
            if relabelled:
                self._to_claim.add(after.owner_key)
            if before is None or relabelled or _counts_otherwise(before, after):
                self.enqueue(after.owner_key, SETTLE_S)
        elif not after.owner_uid and (before is None or relabelled or before.owner_uid):
            for name, selector in self._selectors.get(after.namespace, {}).items():
                if selector.matches(after.labels):
                    self._to_claim.add((after.namespace, name))
                    self.enqueue((after.namespace, name))

    def selector(self, obj: Object) -> LabelSelector:
        """Return which pods an object of this kind is for."""
        return selector_of(obj["spec"].get("selector"))

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

    # Doing

    def claim(self, obj: Object) -> Iterator[None]:
        """Adopt pods that match and have no controller; release those that match no longer."""
        key = key_of(obj)
        if key not in self._to_claim or "deletionTimestamp" in obj["metadata"]:
            return
        self._to_claim.discard(key)
        selector = self._selectors[key[0]][key[1]]
        reference = owner_reference(obj)
        for pod in list(self.pods.owned(reference["uid"]).pods.values()):
            if not selector.matches(pod.labels):
                self._set_owner(pod, reference["uid"], None)
                yield
        for pod in list(self.pods.uncontrolled.get(key[0], {}).values()):
            if pod.active and selector.matches(pod.labels):
                self._set_owner(pod, reference["uid"], reference)
                yield

    def _set_owner(self, pod: PodFacts, uid: str, reference: Object | None) -> None:
        def change(found: Object) -> None:
            if found["metadata"]["uid"] != pod.uid:
                return
            drop_owners(found, {uid})
            if reference is not None:
                found["metadata"].setdefault("ownerReferences", []).append(reference)

        self.api.amend("pods", pod.namespace, pod.name, change)

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

    First those without a node, then pending, not ready, cheap ones, ones with many neighbours of
    their kind on the node, ones ready for a short time, often restarted, young. Source:
    ``pkg/controller/controller_utils.go`` ActivePodsWithRanks of Kubernetes 1.36.
    """
    neighbours: dict[str, int] = {}
    for pod in pods:
        neighbours[pod.node] = neighbours.get(pod.node, 0) + 1
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    ranked = sorted(pods, key=lambda pod: pod.created, reverse=True)
    ranked.sort(key=lambda pod: (pod.ready_since if pod.ready else "", pod.restarts), reverse=True)
    ranked.sort(
        key=lambda pod: (
            bool(pod.node),
            phases.get(pod.phase, 2),
            pod.ready,
            pod.deletion_cost,
            -neighbours[pod.node],
        )
    )
    return ranked
