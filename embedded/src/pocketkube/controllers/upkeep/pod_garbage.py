"""What nobody needs any more: old Events, PodGroups without pods, pods of nodes that are gone.

Source: ``pkg/controller/podgc`` of Kubernetes 1.36.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import SETTLE_S, Controller, Shared, Work
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.errors import ApiError
from pocketkube.objects import Object, drop_finalizer, parsed_time_s, say_disrupted
from pocketkube.store.store import Event

EVENT_TTL_S = 3600.0


class EventExpiry(Controller):
    """Deletes Events that nobody has written for an hour."""

    buckets = ("events",)

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._events = self.api.registry.named("v1", "events")

    def on_event(self, event: Event) -> None:
        """Note when an Event that is new will be due."""
        if event.type == "ADDED":
            self.enqueue((event.entry.namespace, event.entry.name), EVENT_TTL_S)

    def reconcile(self, key: Any) -> Work:
        """Delete one Event, or look again when its hour is over."""
        found = self.api.find("events", *key)
        if found is None:
            return None
        left_s = EVENT_TTL_S - (self.api.now_s() - _written_s(found))
        if left_s > 0:
            self.enqueue(key, left_s)
            return None
        with contextlib.suppress(ApiError):
            self.api.delete(self._events, *key)
        return None


def _written_s(event: Object) -> float:
    """Return when an Event was last written, in seconds since 1970."""
    times = (
        event["metadata"].get("creationTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        (event.get("series") or {}).get("lastObservedTime"),
    )
    return max(parsed_time_s(one) for one in times if one)


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


_QUARANTINE_S = 2.0
"""A node may come back at once under its name; the real collector waits for 40 s, and up to 20 s
before that."""


class PodGarbage(Controller):
    """Deletes pods of nodes that are gone."""

    buckets = ("nodes",)
    pods_matter = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._pods_resource = self.api.registry.named("v1", "pods")

    def start(self) -> None:
        """Note nodes that went while nobody looked."""
        for node in self.pods.by_node:
            if self.api.store.get("nodes", "", node) is None:
                self.enqueue(node, _QUARANTINE_S)

    def on_event(self, event: Event) -> None:
        """Note nodes that go."""
        if event.type == "DELETED":
            self.enqueue(event.entry.name, _QUARANTINE_S)

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Note pods that are bound to nowhere."""
        if after is None:
            return
        newly_bound = after.node and (before is None or not before.node)
        if newly_bound and self.api.store.get("nodes", "", after.node) is None:
            self.enqueue(after.node, _QUARANTINE_S)

    def reconcile(self, key: Any) -> Iterator[None]:
        """Delete the pods of one node that is gone."""
        if self.api.store.get("nodes", "", key) is not None:
            return
        for pod in list(self.pods.by_node.get(key, {}).values()):
            self._fail(pod)
            self._delete(pod)
            yield

    def _fail(self, pod: PodFacts) -> None:
        """Say in the status why the pod goes, for controllers that count failures."""
        if pod.finished:
            return
        why, message = "DeletionByPodGC", "PodGC: node no longer exists"
        now_s = self.api.now_s()

        def change(found: Object) -> None:
            generation = found["metadata"].get("generation", 1)
            say_disrupted(found, why, message, now_s, observedGeneration=generation)
            found["status"]["phase"] = "Failed"

        self.api.amend("pods", pod.namespace, pod.name, change, subresource="status")

    def _delete(self, pod: PodFacts) -> None:
        with contextlib.suppress(ApiError):
            deleting = Deleting(grace_period_s=0, uid=pod.uid)
            self.api.delete(self._pods_resource, pod.namespace, pod.name, deleting)
