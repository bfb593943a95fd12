"""Namespaces on their way out: everything in them is deleted, then they go.

Source: ``pkg/controller/namespace`` of Kubernetes 1.36, and what a real one was seen to write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import Controller, Shared
from pocketkube.controllers.conditions import Condition, condition_of
from pocketkube.errors import ApiError
from pocketkube.objects import Object, rfc3339
from pocketkube.store.store import Event

_FINALIZER = "kubernetes"
_SETTLE_S = 0.1  # each look at a namespace is a look at all that is in it


class Namespaces(Controller):
    """Empties namespaces that are being deleted."""

    everything = True  # to see when the last object of a namespace goes

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._terminating: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Note namespaces that are being deleted, and deletions in them."""
        entry = event.entry
        if event.bucket == "namespaces":
            if event.type == "DELETED":
                self._terminating.discard(entry.name)
            elif "deletionTimestamp" in event.object["metadata"]:
                self._terminating.add(entry.name)
                self.enqueue(entry.name)
        elif entry.namespace in self._terminating:
            self.enqueue(entry.namespace, _SETTLE_S)

    def reconcile(self, key: Any) -> Iterator[None]:
        """Delete what is in a namespace; release it when nothing is left."""
        found = self.api.find("namespaces", "", key)
        if found is None or "deletionTimestamp" not in found["metadata"]:
            return
        if _FINALIZER not in (found["spec"].get("finalizers") or ()):
            return
        yield from self._delete_all(key, ["pods"])
        if not self._left(key, ["pods"]):  # whatever pods may need goes after them
            yield from self._delete_all(key, self._buckets())
        left = self._left(key, self._buckets())
        self._tell(found, left)
        if not left:
            self.api.amend("namespaces", "", key, _release, subresource="finalize")

    def _buckets(self) -> list[str]:
        """Return the buckets of all namespaced resources, Events last: others write them."""
        found = dict.fromkeys(r.bucket for r in self.api.registry.all() if r.namespaced)
        return sorted(found, key=lambda bucket: bucket.startswith("events"))

    def _delete_all(self, namespace: str, buckets: list[str]) -> Iterator[None]:
        for bucket in buckets:
            resource = self.api.registry.preferred(bucket)
            if resource is None:
                continue
            for entry in list(self.api.store.entries(bucket, namespace)):
                if self._is_marked(bucket, namespace, entry.name):
                    continue
                try:
                    deleting = Deleting(propagation="Background")
                    self.api.delete(resource, namespace, entry.name, deleting)
                except ApiError:
                    continue  # gone meanwhile, or forbidden: it counts as left
                yield

    def _is_marked(self, bucket: str, namespace: str, name: str) -> bool:
        entry = self.api.store.get(bucket, namespace, name)
        if entry is None:
            return True
        return b'"deletionTimestamp"' in entry.raw and (
            "deletionTimestamp" in entry.object["metadata"]
        )

    def _left(self, namespace: str, buckets: list[str]) -> dict[str, int]:
        entries = {bucket: list(self.api.store.entries(bucket, namespace)) for bucket in buckets}
        return {bucket: len(found) for bucket, found in entries.items() if found}

    def _finalizers(self, namespace: str, buckets: Iterable[str]) -> Counter[str]:
        found: Counter[str] = Counter()
        for bucket in buckets:
            for entry in self.api.store.entries(bucket, namespace):
                if b'"finalizers"' in entry.raw:
                    found.update(entry.object["metadata"].get("finalizers") or ())
        return found

    def _tell(self, found: Object, left: dict[str, int]) -> None:
        """Write the conditions, if something is left that people may wonder about."""
        if not left:
            return
        finalizers = self._finalizers(found["metadata"]["name"], left)
        old = (found.get("status") or {}).get("conditions")
        now = rfc3339(self.api.now_s())
        conditions = []
        for condition in _conditions(left, finalizers):
            before = condition_of(old, condition["type"])
            same = before is not None and before["status"] == condition["status"]
            time = before["lastTransitionTime"] if before is not None and same else now
            conditions.append({**condition, "lastTransitionTime": time})
        status = {**(found.get("status") or {}), "conditions": conditions}
        if found.get("status") == status:
            return

        def change(namespace: Object) -> None:
            namespace["status"] = status

        self.api.amend("namespaces", "", found["metadata"]["name"], change, subresource="status")


def _release(namespace: Object) -> None:
    spec = namespace["spec"]
    spec["finalizers"] = [f for f in spec.get("finalizers") or [] if f != _FINALIZER]
    if not spec["finalizers"]:
        del spec["finalizers"]


def _conditions(left: dict[str, int], finalizers: Counter[str]) -> list[Condition]:
    remaining = ", ".join(
        f"{bucket if '.' in bucket else bucket + '.'} has {number} resource instances"
        for bucket, number in sorted(left.items())
    )
    waiting = ", ".join(
        f"{finalizer} in {number} resource instances"
        for finalizer, number in sorted(finalizers.items())
    )
    return [
        _condition(
            "ContentRemaining",
            "SomeResourcesRemain",
            "All content successfully removed",
            f"Some resources are remaining: {remaining}" if left else "",
        ),
        _condition(
            "FinalizersRemaining",
            "SomeFinalizersRemain",
            "All content-preserving finalizers finished",
            f"Some content in the namespace has finalizers remaining: {waiting}" if waiting else "",
        ),
    ]


def _condition(type_: str, reason: str, good: str, bad: str) -> Condition:
    quiet = {"ContentRemaining": "ContentRemoved", "FinalizersRemaining": "ContentHasNoFinalizers"}
    return {
        "type": f"Namespace{type_}",
        "status": "True" if bad else "False",
        "reason": reason if bad else quiet.get(type_, reason),
        "message": bad or good,
    }
