"""Deployments: one ReplicaSet for each version of the template, and the way from one to the next.

Source: ``pkg/controller/deployment`` of Kubernetes 1.36. Orphaned ReplicaSets are not adopted, a
new size of a paused Deployment waits until it is resumed, and progressDeadlineSeconds does not
count.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import Controller, Key, Shared, Work
from pocketkube.controllers.templates import (
    condition_of,
    owner_reference,
    scaled_value,
    template_hash,
    with_condition,
)
from pocketkube.errors import ApiError
from pocketkube.objects import Object, annotations_of, controller_of, key_of, rfc3339
from pocketkube.store.store import Event

_SETS = "replicasets.apps"
_DEPLOYMENTS = "deployments.apps"
_HASH_LABEL = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration", _REVISION})


class Deployments(Controller):
    """Rolls Deployments out."""

    buckets = (_DEPLOYMENTS, _SETS)
    component = "deployment-controller"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._sets: dict[str, set[Key]] = {}  # keys of ReplicaSets, by the Deployment's UID
        self._sets_resource = self.api.registry.named("apps/v1", "replicasets")

    def on_event(self, event: Event) -> None:
        """Follow Deployments, and ReplicaSets by their owner."""
        key = (event.entry.namespace, event.entry.name)
        if event.bucket == _DEPLOYMENTS:
            if event.type == "DELETED":
                self._sets.pop(event.object["metadata"]["uid"], None)
            self.enqueue(key)
            return
        before = event.object_before
        was_of = None if before is None else controller_of(before)
        if was_of is not None:
            self._sets.get(was_of["uid"], set()).discard(key)
        owner = controller_of(event.object)
        if owner is None or owner["kind"] != "Deployment":
            return
        if event.type != "DELETED":
            self._sets.setdefault(owner["uid"], set()).add(key)
        self.enqueue((key[0], owner["name"]))

    def reconcile(self, key: Any) -> Work:
        """Take the next step of one Deployment."""
        found = self.api.find(_DEPLOYMENTS, *key)
        if found is None:
            return None
        keys = sorted(self._sets.get(found["metadata"]["uid"], ()))
        sets = [rs for rs in (self.api.find(_SETS, *k) for k in keys) if rs is not None]
        sets.sort(key=lambda rs: (rs["metadata"]["creationTimestamp"], rs["metadata"]["name"]))
        new = next((rs for rs in sets if _is_of(rs, found["spec"]["template"])), None)
        old = [rs for rs in sets if rs is not new]
        if "deletionTimestamp" not in found["metadata"] and not found["spec"].get("paused"):
            new = self._step(found, new, old)
            self._clean_up(found, old)
        self._write_status(found, new, [*old, *([new] if new else [])])
        return None

    def _step(self, found: Object, new: Object | None, old: list[Object]) -> Object | None:
        """Make or scale ReplicaSets; return that of the template, None when it has to wait."""
        rolls = found["spec"].get("strategy", {}).get("type") != "Recreate"
        if not rolls and any(map(self._has_pods, old)):
            for rs in old:
                self._scale(found, rs, 0)
            return new
        surge, unavailable = _limits(found)
        size = _size(found)
        current = 0 if new is None else _size(new)
        room = size + surge - _total(old) - current if rolls else size - current
        grown = min(size, current + max(0, room))
        revision = max([_revision(rs) for rs in old], default=0) + 1
        if new is None:
            new = self._create(found, revision, grown)
        else:
            self._scale(found, new, grown)
            self._note_revision(new, max(revision, _revision(new)))
        self._note_revision(found, _revision(new))
        if rolls:
            self._shrink(found, new, old, size - unavailable)
        return new

    def _has_pods(self, replica_set: Object) -> bool:
        owned = self.pods.owned(replica_set["metadata"]["uid"])
        return bool(_size(replica_set) or owned.active or owned.terminating)

    def _shrink(self, found: Object, new: Object, old: list[Object], least: int) -> None:
        """Scale old ReplicaSets down: pods that are not available first, then as many as may go."""
        new_unavailable = _size(new) - _total([new], "availableReplicas")
        may_go = _total([*old, new]) - least - new_unavailable
        for rs in old:
            broken = max(0, _size(rs) - _total([rs], "availableReplicas"))
            less = min(broken, max(0, may_go))
            may_go -= less
            self._scale(found, rs, _size(rs) - less)
        may_go = min(may_go, _total([*old, new], "availableReplicas") - least)
        for rs in old:
            less = min(_size(rs), max(0, may_go))
            may_go -= less
            self._scale(found, rs, _size(rs) - less)

    # ReplicaSets

    def _create(self, found: Object, revision: int, size: int) -> Object:
        """Create the ReplicaSet of the template. Raises ApiError: another one has its name."""
        spec = found["spec"]
        template = spec["template"]
        hash_ = template_hash(template)
        metadata = template.get("metadata") or {}
        labels = {**(metadata.get("labels") or {}), _HASH_LABEL: hash_}
        matched = {**(spec["selector"].get("matchLabels") or {}), _HASH_LABEL: hash_}
        copied = {k: v for k, v in annotations_of(found).items() if k not in _NOT_COPIED}
        name = f"{found['metadata']['name']}-{hash_}"
        wanted = {
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": {**copied, _REVISION: str(revision)},
                "ownerReferences": [owner_reference(found)],
            },
            "spec": {
                "replicas": size,
                "minReadySeconds": spec.get("minReadySeconds", 0),
                "selector": {**spec["selector"], "matchLabels": matched},
                "template": {**template, "metadata": {**metadata, "labels": labels}},
            },
        }
        made = self.api.create(self._sets_resource, found["metadata"]["namespace"], wanted)
        if size:
            self._tell_scaled(found, name, 0, size)
        return made

    def _scale(self, found: Object, replica_set: Object, size: int) -> None:
        before = _size(replica_set)
        if size == before:
            return

        def change(rs: Object) -> None:
            rs["spec"]["replicas"] = size

        stored = self.api.amend(_SETS, *key_of(replica_set), change)
        if stored is not None:
            replica_set.update(stored)
        self._tell_scaled(found, replica_set["metadata"]["name"], before, size)

    def _tell_scaled(self, found: Object, name: str, before: int, after: int) -> None:
        way = "up" if after > before else "down"
        message = f"Scaled {way} replica set {name} from {before} to {after}"
        self.record(found, "ScalingReplicaSet", message)

    def _note_revision(self, obj: Object, revision: int) -> None:
        """Number a ReplicaSet, or its Deployment, for ``kubectl rollout history`` and ``undo``."""
        if _revision(obj) == revision:
            return

        def change(obj: Object) -> None:
            obj["metadata"].setdefault("annotations", {})[_REVISION] = str(revision)

        bucket = _DEPLOYMENTS if obj["kind"] == "Deployment" else _SETS
        # As a write to the status, because an annotation else makes a new generation.
        stored = self.api.amend(bucket, *key_of(obj), change, subresource="status")
        if stored is not None:
            obj["metadata"] = stored["metadata"]

    def _clean_up(self, found: Object, old: list[Object]) -> None:
        """Delete the oldest ReplicaSets without pods, beyond the history that is kept."""
        limit = found["spec"].get("revisionHistoryLimit", 10)
        empty = [rs for rs in sorted(old, key=_revision) if not self._has_pods(rs)]
        for rs in empty[: max(0, len(old) - limit)]:
            deleting = Deleting(propagation="Background", uid=rs["metadata"]["uid"])
            with contextlib.suppress(ApiError):
                self.api.delete(self._sets_resource, *key_of(rs), deleting)

    # Status

    def _write_status(self, found: Object, new: Object | None, sets: list[Object]) -> None:
        available, size = _total(sets, "availableReplicas"), _size(found)
        counts = {
            "replicas": _total(sets, "replicas"),
            "updatedReplicas": _total([new] if new else [], "replicas"),
            "readyReplicas": _total(sets, "readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(0, _total(sets) - available),
        }
        status: dict[str, Any] = {field: number for field, number in counts.items() if number}
        status["terminatingReplicas"] = _total(sets, "terminatingReplicas")
        status["observedGeneration"] = found["metadata"].get("generation", 0)
        before = (found.get("status") or {}).get("conditions")
        if available >= size - _limits(found)[1]:
            why = ("MinimumReplicasAvailable", "Deployment has minimum availability.")
            conditions = with_condition(before, self._condition("Available", "True", *why))
        else:
            why = ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
            conditions = with_condition(before, self._condition("Available", "False", *why))
        done = counts["updatedReplicas"] == counts["replicas"] == available == size
        status["conditions"] = self._with_progress(found, conditions, done=done)
        failure = next(filter(None, map(_failure_of, sets)), None)
        status["conditions"] = [c for c in status["conditions"] if c["type"] != "ReplicaFailure"]
        if failure is not None:
            status["conditions"].append({**failure, "lastUpdateTime": rfc3339(self.api.now_s())})
        self.write_status(_DEPLOYMENTS, found, status)

    def _with_progress(
        self, found: Object, conditions: list[Object], *, done: bool
    ) -> list[Object]:
        """Return the conditions with Progressing: complete, under way, or paused."""
        name = found["metadata"]["name"]
        if found["spec"].get("paused"):
            why = ("Unknown", "DeploymentPaused", "Deployment is paused")
        elif done:
            why = ("True", "NewReplicaSetAvailable", f'Deployment "{name}" has progressed.')
        else:
            why = ("True", "ReplicaSetUpdated", f'Deployment "{name}" is progressing.')
        return with_condition(conditions, self._condition("Progressing", *why))

    def _condition(self, type_: str, status: str, reason: str, message: str) -> Object:
        now = rfc3339(self.api.now_s())
        times = {"lastUpdateTime": now, "lastTransitionTime": now}
        return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def _size(obj: Object) -> int:
    """Return the replicas that a Deployment or a ReplicaSet is asked for."""
    return int(obj["spec"].get("replicas", 1))


def _total(sets: list[Object], field: str = "") -> int:
    """Return the sum of the replicas asked for, or of a field of the statuses."""
    if not field:
        return sum(map(_size, sets))
    return sum((rs.get("status") or {}).get(field, 0) for rs in sets)


def _limits(deployment: Object) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable in pods; never both 0, unless there are to be no pods."""
    replicas, strategy = _size(deployment), deployment["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate" or not replicas:
        return 0, 0
    given = strategy.get("rollingUpdate") or {}
    surge = scaled_value(given.get("maxSurge"), replicas, up=True, otherwise="25%")
    unavailable = scaled_value(given.get("maxUnavailable"), replicas, up=False, otherwise="25%")
    return surge, min(unavailable if surge or unavailable else 1, replicas)


def _is_of(replica_set: Object, template: Object) -> bool:
    """Tell whether a ReplicaSet has the template, but for the hash among its labels."""
    own = replica_set["spec"]["template"]
    metadata = dict(own.get("metadata") or {})
    labels = {k: v for k, v in (metadata.pop("labels", None) or {}).items() if k != _HASH_LABEL}
    if labels:
        metadata["labels"] = labels
    return {**own, "metadata": metadata} == template


def _revision(obj: Object) -> int:
    text = annotations_of(obj).get(_REVISION, "0")
    return int(text) if text.isdigit() else 0


def _failure_of(replica_set: Object) -> Object | None:
    return condition_of((replica_set.get("status") or {}).get("conditions"), "ReplicaFailure")
