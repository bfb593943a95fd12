"""StatefulSets: pods with names that stay, one after the other.

Source: ``pkg/controller/statefulset`` of Kubernetes 1.36. The history of templates is
not kept: below a partition, a pod that is made again has the new template.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from pocketkube.controllers.owning import PodOwner, is_terminating_namespace
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.controllers.templates import owner_reference, pod_of, template_hash
from pocketkube.errors import ApiError
from pocketkube.objects import Object

_POD_NAME = "statefulset.kubernetes.io/pod-name"
_POD_INDEX = "apps.kubernetes.io/pod-index"
_REVISION = "controller-revision-hash"


def span(found: Object) -> tuple[int, int]:
    """Return the first ordinal and the number of pods."""
    spec = found["spec"]
    return int((spec.get("ordinals") or {}).get("start", 0)), int(spec.get("replicas", 1))


def partition(found: Object) -> int:
    """Return how many pods, of the lowest ordinals, are not updated."""
    strategy = found["spec"].get("updateStrategy") or {}
    return int((strategy.get("rollingUpdate") or {}).get("partition") or 0)


def ordinal_of(set_name: str, pod_name: str) -> int | None:
    """Return the ordinal of ``web-3`` in ``web``; None when it is no pod of that set."""
    name, _, ordinal = pod_name.rpartition("-")
    return int(ordinal) if name == set_name and ordinal.isdigit() else None


def new_pod(found: Object, ordinal: int, revision: str) -> Object:
    """Return the pod of an ordinal, with its name, labels, hostname and volumes."""
    pod = pod_of(found["spec"]["template"], found)
    name = f"{found['metadata']['name']}-{ordinal}"
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["name"] = name
    labels = {_POD_NAME: name, _POD_INDEX: str(ordinal), _REVISION: revision}
    metadata.setdefault("labels", {}).update(labels)
    spec["hostname"] = name
    if found["spec"].get("serviceName"):
        spec["subdomain"] = found["spec"]["serviceName"]
    templates = found["spec"].get("volumeClaimTemplates") or []
    claimed = {claim["metadata"]["name"]: _claim_name(found, claim, ordinal) for claim in templates}
    if claimed:
        others = [v for v in spec.get("volumes", []) if v["name"] not in claimed]
        spec["volumes"] = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
            for volume, claim in claimed.items()
        ] + others
    return pod


def _claim_name(found: Object, template: Object, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{found['metadata']['name']}-{ordinal}"


def claims(found: Object, ordinal: int) -> list[Object]:
    """Return the PersistentVolumeClaims of an ordinal."""
    selected = (found["spec"].get("selector") or {}).get("matchLabels") or {}
    retention = found["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    result = []
    for template in found["spec"].get("volumeClaimTemplates") or []:
        claim = copy.deepcopy(template)
        claim.pop("status", None)
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        metadata = claim["metadata"]
        metadata["name"] = _claim_name(found, template, ordinal)
        metadata["labels"] = {**(metadata.get("labels") or {}), **selected}
        if retention.get("whenDeleted") == "Delete":
            reference = owner_reference(found)
            del reference["blockOwnerDeletion"]
            metadata["ownerReferences"] = [reference]
        result.append(claim)
    return result


class _Plan(NamedTuple):
    """What one look at a StatefulSet found."""

    found: Object
    update: str  # revision that pods shall have
    pods: dict[int, PodFacts]  # by ordinal
    ordered: bool


class StatefulSets(PodOwner):
    """Keeps the pods of StatefulSets."""

    buckets = ("statefulsets.apps",)
    bucket = "statefulsets.apps"
    kind = "StatefulSet"
    component = "statefulset-controller"

    def reconcile(self, key: Any) -> Iterator[None]:
        """Take the next steps of one StatefulSet, then write its status."""
        found = self.api.find(self.bucket, *key)
        if found is None:
            return
        update = f"{found['metadata']['name']}-{template_hash(found['spec']['template'])}"
        ordered = found["spec"].get("podManagementPolicy") != "Parallel"
        plan = _Plan(found, update, self._ordinals(found), ordered)
        if "deletionTimestamp" not in found["metadata"]:
            try:
                yield from self._manage(plan)
            except ApiError as error:
                self._write(plan)
                if is_terminating_namespace(error):
                    return
                raise
        self._write(plan)

    def _ordinals(self, found: Object) -> dict[int, PodFacts]:
        pods = {}
        for pod in self.pods.owned(found["metadata"]["uid"]).pods.values():
            ordinal = ordinal_of(found["metadata"]["name"], pod.name)
            if ordinal is not None:
                pods[ordinal] = pod
        return pods

    # Steps

    def _manage(self, plan: _Plan) -> Iterator[None]:
        """Create, in order, what is missing; then take away what is too much; then update."""
        found = plan.found
        start, replicas = span(found)
        for ordinal in range(start, start + replicas):
            pod = plan.pods.get(ordinal)
            if pod is not None and pod.finished and not pod.terminating:
                self._delete(plan, pod)
                return  # its deletion brings us back
            if pod is None:
                if not self.unchanged(found):
                    return
                self._create(plan, ordinal)
                yield
            if plan.ordered and not (pod and self.is_available(found, pod)):
                return
        surplus = sorted((o for o in plan.pods if not start <= o < start + replicas), reverse=True)
        for ordinal in surplus:
            self._delete(plan, plan.pods[ordinal])
            yield
            if plan.ordered:
                return
        if not surplus:
            yield from self._update(plan)

    def _update(self, plan: _Plan) -> Iterator[None]:
        """Delete the highest pod of an old revision, when all above it are available."""
        strategy = plan.found["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        start, replicas = span(plan.found)
        first = start + partition(plan.found)
        for ordinal in range(start + replicas - 1, first - 1, -1):
            pod = plan.pods.get(ordinal)
            if pod is None:
                return
            if _revision(pod) != plan.update:
                self._delete(plan, pod)
                yield
                return
            if not self.is_available(plan.found, pod):
                return

    def _create(self, plan: _Plan, ordinal: int) -> None:
        found = plan.found
        pod = new_pod(found, ordinal, plan.update)
        name, namespace = pod["metadata"]["name"], found["metadata"]["namespace"]
        for claim in claims(found, ordinal):
            self._ensure_claim(namespace, claim)
        try:
            self.api.create(self._pods_resource, namespace, pod)
        except ApiError as error:
            if error.reason == "AlreadyExists" and self.pods.get(namespace, name) is not None:
                return  # of another owner: it has to go first
            if not is_terminating_namespace(error):
                text = f"create Pod {name} in StatefulSet {found['metadata']['name']} failed error"
                self.record(found, "FailedCreate", f"{text}: {error.message}", warning=True)
            raise
        text = f"Create Pod {name} in StatefulSet {found['metadata']['name']} successful"
        self.record(found, "SuccessfulCreate", text)

    def _ensure_claim(self, namespace: str, claim: Object) -> None:
        if self.api.find("persistentvolumeclaims", namespace, claim["metadata"]["name"]) is None:
            claims_resource = self.api.registry.named("v1", "persistentvolumeclaims")
            self.api.create(claims_resource, namespace, claim)

    def _delete(self, plan: _Plan, pod: PodFacts) -> None:
        if pod.terminating:
            return
        text = f"Delete Pod {pod.name} in StatefulSet {plan.found['metadata']['name']} successful"
        self.delete_pod(plan.found, pod, said=text)

    # Status

    def _write(self, plan: _Plan) -> None:
        newest = self.again(plan.found)
        if newest is None:
            return
        plan = plan._replace(pods=self._ordinals(newest))
        update = plan.update
        current = (newest.get("status") or {}).get("currentRevision") or update
        pods = list(plan.pods.values())
        staying = [pod for pod in pods if not pod.terminating]
        ready = [pod for pod in pods if pod.phase == "Running" and pod.ready]
        counts = {
            "readyReplicas": len(ready),
            "currentReplicas": sum(_revision(pod) == current for pod in staying),
            "updatedReplicas": sum(_revision(pod) == update for pod in staying),
        }
        wanted = span(newest)[1]
        if counts["updatedReplicas"] == wanted == len(ready) == len(pods):
            current = update
            counts["currentReplicas"] = counts["updatedReplicas"]
        status: dict[str, Any] = {
            "replicas": len(pods),
            "availableReplicas": sum(self.is_available(newest, pod) for pod in ready),
            "observedGeneration": plan.found["metadata"].get("generation", 0),
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": 0,
        }
        status |= {field: number for field, number in counts.items() if number}
        self.write_status(self.bucket, newest, status)


def _revision(pod: PodFacts) -> str:
    return pod.labels.get(_REVISION, "")
