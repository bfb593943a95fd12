"""The status of ResourceQuotas: what is in use, counted again when objects end or go.

What is created is counted by the API itself (``admission.quotas``). Source:
``pkg/controller/resourcequota`` of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

from pocketkube.api.admission.quotas import QUOTAS, recount
from pocketkube.controllers.base import SETTLE_S, Controller, Work
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.store.store import Event


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
