"""Deployments: one ReplicaSet for each version of the template, and the way from one to the next.

Source: ``pkg/controller/deployment`` of Kubernetes 1.36, and what a real one was seen to write.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import Controller, Key, Shared, Work
from pocketkube.controllers.conditions import condition_of, with_condition
from pocketkube.controllers.templates import owner_reference, template_hash
from pocketkube.controllers.workloads import deployment_steps as steps
from pocketkube.errors import ApiError
from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object, annotations_of, controller_of, key_of, labels_of
from pocketkube.store.store import Event

_SETS = "replicasets.apps"
_DEPLOYMENTS = "deployments.apps"


class Deployments(Controller):
    """Rolls Deployments out."""

    buckets = (_DEPLOYMENTS, _SETS)
    component = "deployment-controller"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._sets: dict[str, set[Key]] = {}  # keys of ReplicaSets, by the Deployment's UID
        self._uncontrolled: dict[Key, None] = {}
        self._sets_resource = self.api.registry.named("apps/v1", "replicasets")

    def on_event(self, event: Event) -> None:
        """Follow Deployments, and ReplicaSets by their owner."""
        key = (event.entry.namespace, event.entry.name)
        if event.bucket == _DEPLOYMENTS:
            self.enqueue(key)
            return
        before = event.object_before
        if before is not None:
            self._forget(key, before)
        owner = controller_of(event.object)
        if event.type != "DELETED":
            if owner is None:
                self._uncontrolled[key] = None
            else:
                self._sets.setdefault(owner["uid"], set()).add(key)
        else:
            self._forget(key, event.object)
        if owner is not None and owner["kind"] == "Deployment":
            self.enqueue((key[0], owner["name"]))

    def _forget(self, key: Key, replica_set: Object) -> None:
        self._uncontrolled.pop(key, None)
        owner = controller_of(replica_set)
        if owner is not None and owner["uid"] in self._sets:
            self._sets[owner["uid"]].discard(key)
            if not self._sets[owner["uid"]]:
                del self._sets[owner["uid"]]

    def reconcile(self, key: Any) -> Work:
        """Take the next step of one Deployment."""
        found = self.api.find(_DEPLOYMENTS, *key)
        if found is not None:
            self._adopt(found)
            keys = sorted(self._sets.get(found["metadata"]["uid"], ()))
            sets = [rs for rs in (self.api.find(_SETS, *k) for k in keys) if rs is not None]
            self._step(found, sets)
        return None

    def _step(self, found: Object, sets: list[Object]) -> None:
        new = steps.new_of(found, sets)
        old = [rs for rs in sets if rs is not new]
        if "deletionTimestamp" in found["metadata"]:
            self._write_status(found, new, sets, rollout=False)
            return
        self._note_pause(found)
        if found["spec"].get("paused"):
            self._scale_all(found, steps.paused_step(found, new, old))
            self._write_status(found, new, sets, rollout=False)
        elif steps.is_rolling(found):
            self._roll(found, new, old)
        else:
            self._recreate(found, new, old)

    # The two strategies

    def _roll(self, found: Object, new: Object | None, old: list[Object]) -> None:
        new = self._ensure_new(found, new, old)
        if new is None:
            return
        self._scale_all(found, steps.rolling_step(found, new, old))
        self._write_status(found, new, [*old, new])
        self._clean_up(found, old)

    def _recreate(self, found: Object, new: Object | None, old: list[Object]) -> None:
        shrunk: list[steps.Scaling] = [(rs, 0) for rs in old if steps.size(rs) > 0]
        if shrunk or self._still_runs(old):
            self._scale_all(found, shrunk)
            self._write_status(found, new, [*old, *([new] if new else [])])
            return
        new = self._ensure_new(found, new, old)
        if new is None:
            return
        if steps.size(new) != steps.size(found):
            self._scale_all(found, [(new, steps.size(found))])
        self._write_status(found, new, [*old, new])
        self._clean_up(found, old)

    def _still_runs(self, old: list[Object]) -> bool:
        owned = [self.pods.owned(rs["metadata"]["uid"]) for rs in old]
        return any(pods.active or pods.terminating for pods in owned)

    # ReplicaSets

    def _adopt(self, found: Object) -> None:
        namespace = found["metadata"]["namespace"]
        if "deletionTimestamp" in found["metadata"]:
            return
        for key in [key for key in self._uncontrolled if key[0] == namespace]:
            replica_set = self.api.find(_SETS, *key)
            selector = selector_of(found["spec"].get("selector"))
            if replica_set is None or not selector.matches(labels_of(replica_set)):
                continue

            def own(rs: Object) -> None:
                owners = rs["metadata"].setdefault("ownerReferences", [])
                if not any(o.get("controller") for o in owners):
                    owners.append(owner_reference(found))

            self.api.amend(_SETS, *key, own)

    def _ensure_new(self, found: Object, new: Object | None, old: list[Object]) -> Object | None:
        """Return the ReplicaSet of the template, made if need be; None after a name collision."""
        revision = max([steps.revision_of(rs) for rs in old], default=0) + 1
        if new is None:
            new = self._create_new(found, revision, old)
            if new is None:
                return None
            reason, verb = "NewReplicaSetCreated", "Created new"
        else:
            self._set_revision(found, new, revision)
            revision = steps.revision_of(new)
            reason, verb = "FoundNewReplicaSet", "Found new"
        self._note_revision(found, revision)
        conditions = (found.get("status") or {}).get("conditions")
        if reason == "NewReplicaSetCreated" or condition_of(conditions, "Progressing") is None:
            message = f'{verb} replica set "{new["metadata"]["name"]}"'
            self._set_progressing(found, "True", reason, message)
        return new

    def _create_new(self, found: Object, revision: int, old: list[Object]) -> Object | None:
        collisions = (found.get("status") or {}).get("collisionCount", 0)
        hash_ = template_hash(found["spec"]["template"], collisions)
        wanted = steps.new_replica_set(found, hash_, revision, old)
        namespace = found["metadata"]["namespace"]
        try:
            new = self.api.create(self._sets_resource, namespace, wanted)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            # Somebody else's ReplicaSet has the name: another hash next time.
            status = {**(found.get("status") or {}), "collisionCount": collisions + 1}
            self.write_status(_DEPLOYMENTS, found, status)
            return None
        if steps.size(new) > 0:
            name = new["metadata"]["name"]
            self._tell_scaled(found, name, 0, steps.size(new))
        return new

    def _set_revision(self, found: Object, new: Object, revision: int) -> None:
        current = steps.revision_of(new)

        def change(rs: Object) -> None:
            annotations = rs["metadata"].setdefault("annotations", {})
            annotations.update(steps.copied_annotations(found))
            annotations.update(steps.replica_annotations(found))
            if current < revision:
                past = annotations.get(steps.HISTORY)
                if current:
                    annotations[steps.HISTORY] = f"{past},{current}" if past else str(current)
                annotations[steps.REVISION] = str(revision)
            min_ready_s = found["spec"].get("minReadySeconds", 0)
            if rs["spec"].get("minReadySeconds", 0) != min_ready_s:
                rs["spec"]["minReadySeconds"] = min_ready_s

        self._amend_set(new, change)

    def _scale_all(self, found: Object, scalings: list[steps.Scaling]) -> None:
        annotations = steps.replica_annotations(found)
        for replica_set, wanted in scalings:
            before = steps.size(replica_set)

            def change(rs: Object, wanted: int = wanted) -> None:
                rs["spec"]["replicas"] = wanted
                rs["metadata"].setdefault("annotations", {}).update(annotations)

            self._amend_set(replica_set, change)
            if before != wanted:
                self._tell_scaled(found, replica_set["metadata"]["name"], before, wanted)

    def _amend_set(self, replica_set: Object, change: Any) -> None:
        metadata = replica_set["metadata"]
        stored = self.api.amend(_SETS, metadata["namespace"], metadata["name"], change)
        if stored is not None:
            replica_set.update(stored)

    def _tell_scaled(self, found: Object, name: str, before: int, after: int) -> None:
        way = "up" if after > before else "down"
        message = f"Scaled {way} replica set {name} from {before} to {after}"
        self.record(found, "ScalingReplicaSet", message)

    def _clean_up(self, found: Object, old: list[Object]) -> None:
        """Delete the oldest ReplicaSets without pods, beyond the history that is kept."""
        limit = found["spec"].get("revisionHistoryLimit", 10)
        progressing = condition_of(found["status"].get("conditions"), "Progressing")
        if progressing is not None and progressing["reason"] != "NewReplicaSetAvailable":
            return
        empty = [
            rs
            for rs in sorted(old, key=steps.revision_of)
            if steps.size(rs) == 0
            and not steps.total([rs], "replicas")
            and "deletionTimestamp" not in rs["metadata"]
        ]
        for replica_set in empty[: max(0, len(old) - limit)]:
            metadata = replica_set["metadata"]
            deleting = Deleting(propagation="Background", uid=metadata["uid"])
            with contextlib.suppress(ApiError):
                self.api.delete(
                    self._sets_resource, metadata["namespace"], metadata["name"], deleting
                )

    # The Deployment itself

    def _note_revision(self, found: Object, revision: int) -> None:
        if annotations_of(found).get(steps.REVISION) == str(revision):
            return

        def change(deployment: Object) -> None:
            annotations = deployment["metadata"].setdefault("annotations", {})
            annotations[steps.REVISION] = str(revision)

        # As a write to the status, because an annotation else makes a new generation.
        stored = self.api.amend(_DEPLOYMENTS, *key_of(found), change, subresource="status")
        if stored is not None:
            found["metadata"] = stored["metadata"]

    def _note_pause(self, found: Object) -> None:
        conditions = (found.get("status") or {}).get("conditions")
        current = condition_of(conditions, "Progressing")
        reason = "" if current is None else current["reason"]
        if reason == "ProgressDeadlineExceeded":
            return
        if found["spec"].get("paused"):
            if reason != "DeploymentPaused":
                self._set_progressing(found, "Unknown", "DeploymentPaused", "Deployment is paused")
        elif reason == "DeploymentPaused":
            message = "Deployment is resumed"
            self._set_progressing(found, "Unknown", "DeploymentResumed", message)

    def _set_progressing(self, found: Object, status: str, reason: str, message: str) -> None:
        if not steps.has_deadline(found):
            return
        now_s = self.api.now_s()
        old = found.get("status") or {}
        fresh = steps.condition("Progressing", status, reason, message, now_s)
        conditions = with_condition(old.get("conditions"), fresh)
        self.write_status(_DEPLOYMENTS, found, {**old, "conditions": conditions})

    def _write_status(
        self, found: Object, new: Object | None, sets: list[Object], *, rollout: bool = True
    ) -> None:
        now_s = self.api.now_s()
        status = steps.status_of(found, new, sets, now_s)
        if rollout:
            status["conditions"] = steps.progress(found, new, status, now_s)
            status["conditions"] = steps.with_failures(status["conditions"], new, sets)
            current = condition_of(status["conditions"], "Progressing")
            if current is not None and current["reason"] in (
                "NewReplicaSetCreated",
                "FoundNewReplicaSet",
                "ReplicaSetUpdated",
                "DeploymentResumed",
            ):
                left_s = steps.seconds_to_deadline(found, current, now_s)
                self.enqueue(key_of(found), max(left_s, 0) + 1)
        self.write_status(_DEPLOYMENTS, found, status)
