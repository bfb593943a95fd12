"""Pods that nobody looks after: on nodes that are gone, or finished and too many.

Source: ``pkg/controller/podgc`` of Kubernetes 1.36.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import Controller, Shared
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.errors import ApiError
from pocketkube.objects import Object, say_disrupted
from pocketkube.store.store import Event

FINISHED_MAX = 12_500
"""Finished pods that are kept: the default of --terminated-pod-gc-threshold."""
_QUARANTINE_S = 2.0
"""A node may come back at once under its name; the real collector waits for 40 s, and up to 20 s
before that."""
_NODE_PREFIX = "node "
_FINISHED = "finished"


class PodGarbage(Controller):
    """Deletes pods of nodes that are gone, and the oldest of too many finished ones."""

    buckets = ("nodes",)
    pods_matter = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._pods_resource = self.api.registry.named("v1", "pods")

    def start(self) -> None:
        """Note nodes that went while nobody looked."""
        for node in self.pods.by_node:
            if self.api.store.get("nodes", "", node) is None:
                self.enqueue(_NODE_PREFIX + node, _QUARANTINE_S)

    def on_event(self, event: Event) -> None:
        """Note nodes that go."""
        if event.type == "DELETED":
            self.enqueue(_NODE_PREFIX + event.entry.name, _QUARANTINE_S)

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Note pods that are bound to nowhere, terminate unbound, or finish."""
        if after is None:
            return
        newly_bound = after.node and (before is None or not before.node)
        if newly_bound and self.api.store.get("nodes", "", after.node) is None:
            self.enqueue(_NODE_PREFIX + after.node, _QUARANTINE_S)
        if after.finished and len(self.pods.finished) > FINISHED_MAX:
            self.enqueue(_FINISHED, _QUARANTINE_S)

    def reconcile(self, key: Any) -> Iterator[None]:
        """Delete the pods of one node that is gone, or finished ones."""
        if key == _FINISHED:
            surplus = len(self.pods.finished) - FINISHED_MAX
            for pod in list(self.pods.finished.values())[: max(0, surplus)]:
                self._delete(pod)
                yield
            return
        node = key.removeprefix(_NODE_PREFIX)
        if self.api.store.get("nodes", "", node) is not None:
            return
        for pod in list(self.pods.by_node.get(node, {}).values()):
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
