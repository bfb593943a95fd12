"""DaemonSets: one pod on each node that is eligible.

Source: ``pkg/controller/daemon`` of Kubernetes 1.36, and what a real one was seen to write. A new
template is for new pods alone, as with ``updateStrategy: OnDelete``.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterator, Mapping
from typing import Any, NamedTuple

from pocketkube.controllers.base import Shared
from pocketkube.controllers.owning import PodOwner, is_terminating_namespace
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.controllers.templates import encoded_pod, template_hash
from pocketkube.errors import ApiError
from pocketkube.matching.selectors import fits, untolerated
from pocketkube.objects import Object
from pocketkube.store.store import Event, decode

_HASH_LABEL = "controller-revision-hash"
_NODES_SETTLE_S = 0.1
_NODES_PER_TURN = 200
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


class _Node(NamedTuple):
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]


class _Places(NamedTuple):
    """Where pods are, should be, and may stay."""

    desired: list[str]
    kept: set[str]  # nodes on which a pod may stay
    pods: dict[str, list[PodFacts]]  # by node


class DaemonSets(PodOwner):
    """Keeps one pod of each DaemonSet on each eligible node."""

    buckets = ("daemonsets.apps", "nodes")
    bucket = "daemonsets.apps"
    kind = "DaemonSet"
    component = "daemonset-controller"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._nodes: dict[str, _Node] = {}
        self._targets: dict[str, str] = {}  # node that a pod was made for, by its UID

    def on_event(self, event: Event) -> None:
        """Follow DaemonSets, and nodes as far as they decide who is eligible."""
        if event.bucket != "nodes":
            super().on_event(event)
            return
        name = event.entry.name
        before = self._nodes.pop(name, None)
        after = None
        if event.type != "DELETED":
            taints = event.object.get("spec", {}).get("taints") or ()
            after = self._nodes[name] = _Node(event.entry.labels, tuple(taints))
        if before != after:
            for entry in self.api.store.entries(self.bucket):
                self.enqueue((entry.namespace, entry.name), _NODES_SETTLE_S)

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Follow pods; forget for which node one was made when it is gone."""
        if after is None and before is not None:
            self._targets.pop(before.uid, None)
        super().on_pod(before, after)

    def reconcile(self, key: Any) -> Iterator[None]:
        """Create and delete pods of one DaemonSet, write its status."""
        found = self.api.find(self.bucket, *key)
        if found is None:
            return
        places = yield from self._places(found)
        hash_ = template_hash(found["spec"]["template"])
        if "deletionTimestamp" not in found["metadata"]:
            try:
                yield from self._manage(found, places, hash_)
            except ApiError as error:
                if is_terminating_namespace(error):
                    return
                raise
        places = yield from self._places(found)
        self._write(found, places, hash_)

    def _places(self, found: Object) -> Generator[None, None, _Places]:
        """Look at all nodes, in turns: there may be many."""
        template = found["spec"]["template"]
        spec = template["spec"]
        tolerations = [*spec.get("tolerations", []), *_tolerations(spec)]
        desired, kept = [], set()
        for number, (name, node) in enumerate(list(self._nodes.items())):
            if number % _NODES_PER_TURN == _NODES_PER_TURN - 1:
                yield
            if not fits(spec, name, node.labels):
                continue
            if not untolerated(node.taints, tolerations, ("NoExecute",)):
                kept.add(name)
                if not untolerated(node.taints, tolerations, ("NoSchedule",)):
                    desired.append(name)
        pods: dict[str, list[PodFacts]] = {}
        for pod in self.pods.owned(found["metadata"]["uid"]).pods.values():
            pods.setdefault(self._target(pod), []).append(pod)
        return _Places(desired, kept, pods)

    def _target(self, pod: PodFacts) -> str:
        if pod.node:
            return pod.node
        target = self._targets.get(pod.uid)
        if target is None:
            found = self.api.find("pods", pod.namespace, pod.name)
            target = self._targets[pod.uid] = _pinned_node(found) if found else ""
        return target

    def _manage(self, found: Object, places: _Places, hash_: str) -> Iterator[None]:
        for node, pods in list(places.pods.items()):
            finished = [pod for pod in pods if pod.phase == "Failed" and not pod.terminating]
            staying = [pod for pod in pods if pod.active]
            surplus = staying if node not in places.kept else _all_but_oldest(staying)
            for pod in [*finished, *surplus]:
                self.delete_pod(found, pod)
                yield
        raw = encoded_pod(found["spec"]["template"], found)
        for node in places.desired:
            if places.pods.get(node):
                continue  # also while one terminates: there is at most one
            if not self.unchanged(found):
                return
            made = self.create_pod(found, _pinned(decode(raw), node, hash_))
            self._targets[made["metadata"]["uid"]] = node
            yield

    def _write(self, found: Object, places: _Places, hash_: str) -> None:
        newest = self.again(found)
        if newest is None:
            return
        desired = set(places.desired)
        on_desired = [pods for node, pods in places.pods.items() if node in desired]
        ready = [[pod for pod in pods if pod.ready and pod.active] for pods in on_desired]
        available = sum(any(self.is_available(found, p) for p in pods) for pods in ready)
        # The pod that counts on a node is the oldest, as upstream sorts them.
        updated = sum(_oldest(p).labels.get(_HASH_LABEL) == hash_ for p in on_desired)
        status: dict[str, Any] = {
            "currentNumberScheduled": len(on_desired),
            "numberMisscheduled": sum(
                any(not pod.finished for pod in pods)
                for node, pods in places.pods.items()
                if node not in desired
            ),
            "desiredNumberScheduled": len(desired),
            "numberReady": sum(map(bool, ready)),
            "observedGeneration": found["metadata"].get("generation", 0),
        }
        counts = {
            "updatedNumberScheduled": updated,
            "numberAvailable": available,
            "numberUnavailable": len(desired) - available,
        }
        status |= {field: number for field, number in counts.items() if number}
        self.write_status(self.bucket, newest, status)


def _tolerations(spec: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what every pod of a DaemonSet tolerates."""
    tolerated = [*_TOLERATED]
    if spec.get("hostNetwork"):
        tolerated.append(("network-unavailable", "NoSchedule"))
    return [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
        for key, effect in tolerated
    ]


def _pinned(pod: Object, node: str, hash_: str) -> Object:
    """Pin a new pod to its node by affinity, as the scheduler is to bind it. In place."""
    spec = pod["spec"]
    spec["tolerations"] = [*spec.get("tolerations", []), *_tolerations(spec)]
    pod["metadata"].setdefault("labels", {})[_HASH_LABEL] = hash_
    affinity = copy.deepcopy(spec.get("affinity") or {})
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    term = {"matchFields": [field]}
    node_affinity = affinity.setdefault("nodeAffinity", {})
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [{**old, "matchFields": [field]} for old in required.get("nodeSelectorTerms", [])]
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": terms or [term]
    }
    spec["affinity"] = affinity
    return pod


def _pinned_node(pod: Object) -> str:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


def _oldest(pods: list[PodFacts]) -> PodFacts:
    return min(pods, key=lambda pod: (pod.created, pod.name))


def _all_but_oldest(pods: list[PodFacts]) -> list[PodFacts]:
    return [pod for pod in pods if pod is not _oldest(pods)]
