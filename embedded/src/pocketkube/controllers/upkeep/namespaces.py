"""Namespaces: each gets an account, its quotas are counted, and what is in it goes before it does.

Source: ``pkg/controller/{namespace,serviceaccount,resourcequota}`` of Kubernetes 1.36.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pocketkube.api.admission.quotas import QUOTAS, recount
from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import SETTLE_S, Controller, Shared, Work
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.errors import ApiError
from pocketkube.objects import Object
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
        if not self._left(key, self._buckets()):
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
                newest = self.api.find(bucket, namespace, entry.name)
                if newest is None or "deletionTimestamp" in newest["metadata"]:
                    continue
                try:
                    deleting = Deleting(propagation="Background")
                    self.api.delete(resource, namespace, entry.name, deleting)
                except ApiError:
                    continue  # gone meanwhile, or forbidden: it counts as left
                yield

    def _left(self, namespace: str, buckets: list[str]) -> bool:
        return any(any(self.api.store.entries(bucket, namespace)) for bucket in buckets)


def _release(namespace: Object) -> None:
    spec = namespace["spec"]
    spec["finalizers"] = [f for f in spec.get("finalizers") or [] if f != _FINALIZER]
    if not spec["finalizers"]:
        del spec["finalizers"]


class QuotaUsage(Controller):
    """Counts what the objects of a namespace use."""

    everything = True
    pods_matter = True

    def on_event(self, event: Event) -> None:
        """Note quotas that are new or changed, and objects that go."""
        namespace = event.entry.namespace
        if event.bucket == QUOTAS and event.type != "DELETED":
            self.enqueue((namespace, event.entry.name), SETTLE_S)
        elif event.type == "DELETED" and namespace and event.bucket not in ("events", QUOTAS):
            self._all_of(namespace)

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Note pods that end: they use nothing any more."""
        if after is not None and after.finished and (before is None or not before.finished):
            self._all_of(after.namespace)

    def _all_of(self, namespace: str) -> None:
        for entry in self.api.store.entries(QUOTAS, namespace):
            self.enqueue((namespace, entry.name), SETTLE_S)

    def reconcile(self, key: Any) -> Work:
        """Write the status of one quota."""
        quota = self.api.find(QUOTAS, *key)
        if quota is not None:
            self.write_status(QUOTAS, quota, recount(self.api.store, quota))
        return None


class ServiceAccounts(Controller):
    """Keeps a ServiceAccount ``default`` in every namespace."""

    buckets = ("namespaces", "serviceaccounts")

    def on_event(self, event: Event) -> None:
        """Follow namespaces, and the deletion of default accounts."""
        if event.bucket == "namespaces":
            if event.type != "DELETED":
                self.enqueue(event.entry.name)
        elif event.type == "DELETED" and event.entry.name == "default":
            self.enqueue(event.entry.namespace)

    def reconcile(self, key: Any) -> Work:
        """Create the account if the namespace stays and has none."""
        namespace = self.api.find("namespaces", "", key)
        if namespace is None or "deletionTimestamp" in namespace["metadata"]:
            return None
        if self.api.store.get("serviceaccounts", key, "default") is None:
            account = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default"},
            }
            resource = self.api.registry.named("v1", "serviceaccounts")
            with contextlib.suppress(ApiError):
                self.api.create(resource, key, account)
        return None
