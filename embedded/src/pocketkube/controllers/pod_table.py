"""Slim facts of every pod, counted by owner and found by node: no controller decodes pods in bulk.

In: events of the bucket ``pods``. Out: ``PodFacts`` before and after each, to the listeners.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import intern
from typing import Any, NamedTuple

from pocketkube.objects import Object
from pocketkube.store.store import Event

_FINISHED = ("Succeeded", "Failed")
_INDEX = "batch.kubernetes.io/job-completion-index"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class PodFacts(NamedTuple):
    """What controllers need to know of one version of a pod."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    owner_kind: str  # of the controller; empty when it has none
    owner_name: str
    owner_uid: str
    node: str
    phase: str
    ready: bool
    ready_since: str  # RFC 3339, so that it sorts
    terminating: bool
    created: str  # RFC 3339
    restarts: int
    deletion_cost: int
    completion_index: int  # of a Job's pod; -1 for others
    gang: str  # name of its PodGroup, by spec.schedulingGroup

    @property
    def finished(self) -> bool:
        """Tell whether its containers have ended for good."""
        return self.phase in _FINISHED

    @property
    def active(self) -> bool:
        """Tell whether a controller counts it: neither finished nor terminating."""
        return not self.terminating and self.phase not in _FINISHED

    @property
    def owner_key(self) -> tuple[str, str]:
        """Return namespace and name of its controller."""
        return self.namespace, self.owner_name


def facts_of(pod: Object, labels: Mapping[str, str]) -> PodFacts:
    """Read the facts of a pod. ``labels`` are kept, so they should be shared with the store."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    owner = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), None)
    ready = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), None)
    annotations = metadata.get("annotations") or {}
    containers = status.get("containerStatuses") or ()
    return PodFacts(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        labels=labels,
        owner_kind=intern(owner["kind"]) if owner else "",
        owner_name=intern(owner["name"]) if owner else "",
        owner_uid=intern(owner["uid"]) if owner else "",
        node=intern(spec.get("nodeName") or ""),
        phase=intern(status.get("phase") or "Pending"),
        ready=ready is not None and ready["status"] == "True",
        ready_since=(ready.get("lastTransitionTime") or "") if ready else "",
        terminating="deletionTimestamp" in metadata,
        created=metadata["creationTimestamp"],
        restarts=sum(c.get("restartCount", 0) for c in containers),
        deletion_cost=_number(annotations.get(_DELETION_COST), 0),
        completion_index=_number(annotations.get(_INDEX), -1),
        gang=(spec.get("schedulingGroup") or {}).get("podGroupName") or "",
    )


def _number(text: str | None, otherwise: int) -> int:
    if text is None:
        return otherwise
    try:
        return int(text)
    except ValueError:
        return otherwise


class Owned:
    """The pods of one controller, and how many are in which state."""

    __slots__ = ("active", "failed", "pods", "ready", "succeeded", "terminating")

    def __init__(self) -> None:
        self.pods: dict[str, PodFacts] = {}
        self.active = 0
        self.ready = 0  # of the active
        self.succeeded = 0
        self.failed = 0
        self.terminating = 0  # those not finished

    def count(self, pod: PodFacts, change: int) -> None:
        """Count a pod (1) or no longer (-1)."""
        if pod.phase == "Succeeded":
            self.succeeded += change
        elif pod.phase == "Failed":
            self.failed += change
        elif pod.terminating:
            self.terminating += change
        else:
            self.active += change
            if pod.ready:
                self.ready += change


NONE = Owned()
"""The pods of somebody who has none; never changed."""

Listener = Callable[[PodFacts | None, PodFacts | None], None]


class PodTable:
    """Facts of all pods."""

    def __init__(self) -> None:
        self.by_node: dict[str, dict[str, PodFacts]] = {}  #: pods of a node, by UID
        self.of_gang: dict[tuple[str, str], dict[str, PodFacts]] = {}  #: by PodGroup, then UID
        self.listeners: list[Listener] = []
        self._pods: dict[tuple[str, str], PodFacts] = {}
        self._owned: dict[str, Owned] = {}

    def get(self, namespace: str, name: str) -> PodFacts | None:
        """Return the facts of a pod; None when there is none."""
        return self._pods.get((namespace, name))

    def owned(self, uid: str) -> Owned:
        """Return what a controller owns, by its UID."""
        return self._owned.get(uid, NONE)

    def in_namespace(self, namespace: str) -> list[PodFacts]:
        """Return the pods of one namespace: a look at all pods, so for rare occasions."""
        return [pod for pod in self._pods.values() if pod.namespace == namespace]

    def on_event(self, event: Event) -> None:
        """Follow one event of the bucket ``pods``, and tell the listeners."""
        entry = event.entry
        key = (entry.namespace, entry.name)
        before = self._pods.get(key)
        after = None if event.type == "DELETED" else facts_of(event.object, entry.labels)
        if before is not None:
            self._forget(key, before)
        if after is not None:
            self._learn(key, after)
        for listener in self.listeners:
            listener(before, after)

    def _learn(self, key: tuple[str, str], pod: PodFacts) -> None:
        self._pods[key] = pod
        if pod.owner_uid:
            owned = self._owned.get(pod.owner_uid)
            if owned is None:
                owned = self._owned[pod.owner_uid] = Owned()
            owned.pods[pod.name] = pod
            owned.count(pod, 1)
        if pod.node:
            self.by_node.setdefault(pod.node, {})[pod.uid] = pod
        if pod.gang:
            self.of_gang.setdefault((pod.namespace, pod.gang), {})[pod.uid] = pod

    def _forget(self, key: tuple[str, str], pod: PodFacts) -> None:
        del self._pods[key]
        if pod.owner_uid:
            owned = self._owned[pod.owner_uid]
            owned.count(pod, -1)
            del owned.pods[pod.name]
            if not owned.pods:
                del self._owned[pod.owner_uid]
        if pod.node:
            _drop(self.by_node, pod.node, pod.uid)
        if pod.gang:
            _drop(self.of_gang, (pod.namespace, pod.gang), pod.uid)


def _drop(table: dict[Any, dict[str, PodFacts]], first: Any, second: str) -> None:
    inside = table[first]
    inside.pop(second, None)
    if not inside:
        del table[first]
