"""PodDisruptionBudgets: how many of their pods may go now.

Source: ``pkg/controller/disruption`` of Kubernetes 1.36. Unlike there, the pods that are there are
those that are expected, whatever their owners ask for.
"""

from __future__ import annotations

from typing import Any

from pocketkube.controllers.base import Controller, Key, Shared, Work
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.controllers.templates import condition_of, scaled_value
from pocketkube.matching.selectors import LabelSelector, selector_of
from pocketkube.objects import Object, rfc3339
from pocketkube.store.store import Event

_BUCKET = "poddisruptionbudgets.policy"
_SETTLE_S = 0.05


class DisruptionBudgets(Controller):
    """Keeps the statuses of PodDisruptionBudgets."""

    buckets = (_BUCKET,)
    pods_matter = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._selectors: dict[str, dict[str, LabelSelector]] = {}
        self._pods: dict[Key, dict[str, PodFacts]] = {}  # selected pods, by the budget's key

    def on_event(self, event: Event) -> None:
        """Follow budgets; a new selector is held against the pods of the namespace."""
        key = (event.entry.namespace, event.entry.name)
        if event.type == "DELETED":
            self._selectors.get(key[0], {}).pop(key[1], None)
            self._pods.pop(key, None)
            return
        selector = selector_of(event.object["spec"].get("selector"))
        known = self._selectors.setdefault(key[0], {}).get(key[1])
        if known is None or known.requirements != selector.requirements:
            self._selectors[key[0]][key[1]] = selector
            pods = self.pods.in_namespace(key[0])
            self._pods[key] = {pod.name: pod for pod in pods if selector.matches(pod.labels)}
        self.enqueue(key)

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Follow the pods that budgets select."""
        pod = after or before
        assert pod is not None, "an event is about something"
        for name, selector in self._selectors.get(pod.namespace, {}).items():
            key = (pod.namespace, name)
            selected = after is not None and selector.matches(after.labels)
            known = self._pods[key].get(pod.name)
            if selected and after is not None:
                self._pods[key][pod.name] = after
                if known is None or _standing(known) != _standing(after):
                    self.enqueue(key, _SETTLE_S)
            elif known is not None:
                del self._pods[key][pod.name]
                self.enqueue(key, _SETTLE_S)

    def reconcile(self, key: Any) -> Work:
        """Count the pods of one budget and write its status."""
        found = self.api.find(_BUCKET, *key)
        if found is None:
            return None
        # Finished pods are still pods for expectedPods; upstream leaves them to users to delete.
        pods = list(self._pods[key].values())
        expected = len(pods)
        wanted = _wanted(found["spec"], expected)
        healthy = sum(pod.ready and pod.active for pod in pods)
        allowed = max(0, healthy - wanted) if expected > 0 else 0
        status: dict[str, Any] = {
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "observedGeneration": found["metadata"].get("generation", 0),
            "conditions": [_condition(found, allowed > 0, self.api.now_s())],
        }
        self.write_status(_BUCKET, found, status)
        return None


def _wanted(spec: Object, expected: int) -> int:
    """Return how many of the pods have to be healthy."""
    if spec.get("maxUnavailable") is not None:
        gone = scaled_value(spec["maxUnavailable"], expected, up=True, otherwise=0)
        return max(0, expected - gone)
    return scaled_value(spec.get("minAvailable"), expected, up=True, otherwise=1)


def _standing(pod: PodFacts) -> tuple[bool, bool, str]:
    return pod.ready, pod.terminating, pod.phase


def _condition(found: Object, allowed: bool, now_s: float) -> dict[str, Any]:
    conditions = (found.get("status") or {}).get("conditions")
    old = condition_of(conditions, "DisruptionAllowed")
    status = "True" if allowed else "False"
    same = old is not None and old["status"] == status
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "observedGeneration": found["metadata"].get("generation", 0),
        "lastTransitionTime": old["lastTransitionTime"] if old and same else rfc3339(now_s),
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }
