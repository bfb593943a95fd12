"""Taints that say what is the matter with a node, and the eviction of pods that do not tolerate it.

Source: ``pkg/controller/nodelifecycle`` and ``pkg/controller/tainteviction`` of Kubernetes 1.36,
and what a real one was seen to write. Unlike there, nothing is rate limited: a node that is not
ready gets its NoExecute taint at once, and pressures of memory, disk and PIDs give no taints.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import Controller, Shared, Work
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.controllers.templates import condition_of
from pocketkube.errors import ApiError
from pocketkube.matching.selectors import tolerates
from pocketkube.objects import Object, key_of, rfc3339, say_disrupted
from pocketkube.store.store import Event

_PREFIX = "node.kubernetes.io/"
_UNSCHEDULABLE = (_PREFIX + "unschedulable", "NoSchedule")
_EFFECTS = ("NoSchedule", "NoExecute")
_MANAGED = {
    _UNSCHEDULABLE,
    *((_PREFIX + key, effect) for key in ("not-ready", "unreachable") for effect in _EFFECTS),
}


class NodeLifecycle(Controller):
    """Keeps the taints that follow from a node's conditions and from its being cordoned."""

    buckets = ("nodes",)
    component = "node-controller"

    def on_event(self, event: Event) -> None:
        """Note nodes whose taints are not what they should be."""
        if event.type != "DELETED" and _wanted(event.object) != _managed(event.object):
            self.enqueue(event.entry.name)

    def reconcile(self, key: Any) -> Work:
        """Put right the taints of one node."""
        node = self.api.find("nodes", "", key)
        if node is None:
            return None
        wanted, there = _wanted(node), _managed(node)
        if wanted == there:
            return None
        now = rfc3339(self.api.now_s())

        def change(found: Object) -> None:
            spec = found.setdefault("spec", {})
            kept = [t for t in spec.get("taints") or [] if _id(t) not in there - wanted]
            fresh = [
                {"key": key, "effect": effect, "timeAdded": now}
                for key, effect in sorted(wanted - there, key=lambda one: one[::-1], reverse=True)
            ]
            spec["taints"] = [*kept, *fresh]
            if not spec["taints"]:
                del spec["taints"]

        self.api.amend("nodes", "", key, change)
        return None


def _id(taint: Mapping[str, Any]) -> tuple[str, str]:
    return taint["key"], taint.get("effect", "")


def _managed(node: Object) -> set[tuple[str, str]]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return {_id(taint) for taint in taints} & _MANAGED


def _wanted(node: Object) -> set[tuple[str, str]]:
    """Return key and effect of the taints that a node should have by its own account."""
    wanted = set()
    conditions = (node.get("status") or {}).get("conditions")
    ready = condition_of(conditions, "Ready")
    if ready is not None and ready["status"] != "True":
        key = "not-ready" if ready["status"] == "False" else "unreachable"
        wanted |= {(_PREFIX + key, effect) for effect in _EFFECTS}
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.add(_UNSCHEDULABLE)
    return wanted


class TaintEviction(Controller):
    """Deletes pods that do not tolerate the NoExecute taints of their node, or not for longer."""

    buckets = ("nodes",)
    component = "taint-eviction-controller"
    pods_matter = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._taints: dict[str, list[Mapping[str, Any]]] = {}  # NoExecute taints, by node
        self._since_s: dict[str, dict[str, float]] = {}  # when a pod met them, by node and UID
        self._pods_resource = self.api.registry.named("v1", "pods")

    def on_event(self, event: Event) -> None:
        """Note which nodes have NoExecute taints."""
        name = event.entry.name
        before = self._taints.pop(name, None)
        if event.type == "DELETED" or b'"NoExecute"' not in event.entry.raw:
            self._since_s.pop(name, None)
            return
        taints = (event.object.get("spec") or {}).get("taints") or ()
        executing = [taint for taint in taints if taint.get("effect") == "NoExecute"]
        if not executing:
            self._since_s.pop(name, None)
            return
        self._taints[name] = executing
        if executing != before:
            self.enqueue(name)

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Note pods that come to a node with such taints."""
        if after is not None and after.node in self._taints:
            came = before is None or before.node != after.node
            if came:
                self.enqueue(after.node)

    def reconcile(self, key: Any) -> Iterator[None]:
        """Look at all pods of one node; those that may stay for a while are looked at again."""
        taints = self._taints.get(key)
        if not taints:
            return
        now_s = self.api.now_s()
        pods = self.pods.by_node.get(key, {})
        known = self._since_s.get(key, {})
        since_s = self._since_s[key] = {uid: known.get(uid, now_s) for uid in pods}
        for facts in list(pods.values()):
            if facts.terminating or facts.finished:
                continue
            pod = self.api.find("pods", facts.namespace, facts.name)
            yield
            if pod is None or pod["metadata"]["uid"] != facts.uid:
                continue
            stays_s = _stays_for_s(pod["spec"].get("tolerations") or [], taints)
            if stays_s is None:
                continue
            left_s = since_s[facts.uid] + stays_s - now_s
            if left_s > 0:
                self.enqueue(key, left_s)
            else:
                self._evict(pod)

    def _evict(self, pod: Object) -> None:
        metadata = pod["metadata"]
        self._explain(pod)
        text = f"Marking for deletion Pod {metadata['namespace']}/{metadata['name']}"
        self.record(pod, "TaintManagerEviction", text)
        with contextlib.suppress(ApiError):
            deleting = Deleting(uid=metadata["uid"])
            self.api.delete(self._pods_resource, metadata["namespace"], metadata["name"], deleting)

    def _explain(self, pod: Object) -> None:
        why, message = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        now_s = self.api.now_s()

        def change(found: Object) -> None:
            generation = found["metadata"].get("generation", 1)
            say_disrupted(found, why, message, now_s, observedGeneration=generation)

        self.api.amend("pods", *key_of(pod), change, subresource="status")


def _stays_for_s(
    tolerations: list[Mapping[str, Any]], taints: list[Mapping[str, Any]]
) -> float | None:
    """Return for how long a pod may stay from when it meets the taints; None: for ever."""
    limits: list[float] = []
    for taint in taints:
        matching = [t for t in tolerations if tolerates(t, taint)]
        if not matching:
            return 0.0
        limits += [
            t["tolerationSeconds"] for t in matching if t.get("tolerationSeconds") is not None
        ]
    return max(0.0, min(limits)) if limits else None
