"""PodDisruptionBudgets: how many of their pods may go now.

Source: ``pkg/controller/disruption`` of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

from pocketkube.controllers.base import Controller, Key, Shared, Work
from pocketkube.controllers.conditions import condition_of
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.controllers.templates import scaled_value
from pocketkube.matching.selectors import LabelSelector, selector_of
from pocketkube.objects import Object, controller_of, parsed_time_s, rfc3339
from pocketkube.store.store import Event

_BUCKET = "poddisruptionbudgets.policy"
_SETTLE_S = 0.05
_DISRUPTED_FOR_S = 120.0  # how long an eviction may take to become a deletion


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
        now_s = self.api.now_s()
        # Finished pods are still pods for expectedPods; upstream leaves them to users to delete.
        pods = list(self._pods[key].values())
        expected, wanted = self._expected(found, pods)
        disrupted = self._still_disrupted(key, found, now_s)
        healthy = sum(
            _is_healthy(pod) and not pod.terminating and pod.name not in disrupted for pod in pods
        )
        allowed = max(0, healthy - wanted) if expected > 0 else 0
        status: dict[str, Any] = {
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "observedGeneration": found["metadata"].get("generation", 0),
            "conditions": [_condition(found, allowed > 0, now_s)],
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        self.write_status(_BUCKET, found, status)
        return None

    def _still_disrupted(self, key: Key, found: Object, now_s: float) -> dict[str, str]:
        result = {}
        for name, time in ((found.get("status") or {}).get("disruptedPods") or {}).items():
            pod = self._pods[key].get(name)
            left_s = parsed_time_s(time) + _DISRUPTED_FOR_S - now_s
            if pod is not None and not pod.terminating and left_s > 0:
                result[name] = time
                self.enqueue(key, left_s)
        return result

    def _expected(self, found: Object, pods: list[PodFacts]) -> tuple[int, int]:
        """Return how many pods there should be, and how many of them have to be healthy."""
        spec = found["spec"]
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(pods)
            gone = scaled_value(spec["maxUnavailable"], expected, up=True, otherwise=0)
            return expected, max(0, expected - gone)
        minimum = spec.get("minAvailable", 1)
        if isinstance(minimum, int):
            return len(pods), minimum
        expected = self._scale(pods)
        return expected, scaled_value(minimum, expected, up=True, otherwise=0)

    def _scale(self, pods: list[PodFacts]) -> int:
        """Return the sum of the replicas that the pods' controllers are asked for."""
        owners = {pod.owner_uid: pod for pod in pods if pod.owner_uid}
        scaled = [self._scaled(pod) for pod in owners.values()]
        found = {owner["metadata"]["uid"]: owner for owner in scaled if owner is not None}
        return sum(int(owner["spec"].get("replicas", 1)) for owner in found.values())

    def _scaled(self, pod: PodFacts) -> Object | None:
        """Return what has the pod's number: its controller, or the Deployment above that."""
        bucket = _SCALED.get(pod.owner_kind)
        owner = self.api.find(bucket, pod.namespace, pod.owner_name) if bucket else None
        if owner is None or owner["metadata"]["uid"] != pod.owner_uid:
            return None
        above = controller_of(owner)
        if pod.owner_kind == "ReplicaSet" and above is not None and above["kind"] == "Deployment":
            return self.api.find("deployments.apps", pod.namespace, above["name"]) or owner
        return owner


_SCALED = {
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
}


def _standing(pod: PodFacts) -> tuple[bool, bool, str]:
    return pod.ready, pod.terminating, pod.phase


def _is_healthy(pod: PodFacts) -> bool:
    return pod.ready and not pod.finished


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
