"""StatefulSets: pods with names that stay, one after the other.

Source: ``pkg/controller/statefulset`` of Kubernetes 1.36, and what a real one was seen to write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pocketkube.controllers.owning import PodOwner, is_terminating_namespace
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.controllers.workloads import revisions, stateful_pods
from pocketkube.errors import ApiError
from pocketkube.objects import Object

_HASH_LABEL = "controller.kubernetes.io/hash"
REVISION_LABEL = "controller-revision-hash"


class _Plan(NamedTuple):
    """What one look at a StatefulSet found."""

    found: Object
    current: Object  # revision that pods had before an update
    update: Object  # revision that pods shall have
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
        yield from self.claim(found)
        history = revisions.history_of(self.api, found)
        if "deletionTimestamp" in found["metadata"]:
            if history:
                self._write(self._plan(found, history[-1], history))
            return
        update = revisions.newest(self.api, found, history, _HASH_LABEL)
        plan = self._plan(found, update, history)
        try:
            yield from self._manage(plan)
        except ApiError as error:
            self._write(plan)
            if is_terminating_namespace(error):
                return
            raise
        self._write(plan)
        used = {pod.labels.get(REVISION_LABEL, "") for pod in plan.pods.values()}
        used |= {plan.current["metadata"]["name"], update["metadata"]["name"]}
        revisions.forget_old(self.api, found, history, used)

    def _plan(self, found: Object, update: Object, history: list[Object]) -> _Plan:
        name = (found.get("status") or {}).get("currentRevision", "")
        current = next((r for r in history if r["metadata"]["name"] == name), update)
        ordered = found["spec"].get("podManagementPolicy") != "Parallel"
        return _Plan(found, current, update, self._ordinals(found), ordered)

    def _ordinals(self, found: Object) -> dict[int, PodFacts]:
        pods = {}
        for pod in self.pods.owned(found["metadata"]["uid"]).pods.values():
            ordinal = stateful_pods.ordinal_of(found["metadata"]["name"], pod.name)
            if ordinal is not None:
                pods[ordinal] = pod
        return pods

    # Steps

    def _manage(self, plan: _Plan) -> Iterator[None]:
        """Create, in order, what is missing; then take away what is too much; then update."""
        found = plan.found
        start, replicas = stateful_pods.span(found)
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
        start, replicas = stateful_pods.span(plan.found)
        first = start + stateful_pods.partition(plan.found)
        for ordinal in range(start + replicas - 1, first - 1, -1):
            pod = plan.pods.get(ordinal)
            if pod is None:
                return
            if _revision(pod) != plan.update["metadata"]["name"]:
                self._delete(plan, pod)
                yield
                return
            if not self.is_available(plan.found, pod):
                return

    def _create(self, plan: _Plan, ordinal: int) -> None:
        found = plan.found
        revision = plan.update
        start, _ = stateful_pods.span(found)
        if ordinal < start + stateful_pods.partition(found):
            revision = plan.current
        template = revisions.template_of(revision)
        pod = stateful_pods.new_pod(found, template, ordinal, revision["metadata"]["name"])
        name, namespace = pod["metadata"]["name"], found["metadata"]["namespace"]
        for claim in stateful_pods.claims(found, ordinal):
            self._ensure_claim(found, name, claim)
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

    def _ensure_claim(self, found: Object, pod_name: str, claim: Object) -> None:
        namespace, name = found["metadata"]["namespace"], claim["metadata"]["name"]
        if self.api.store.get("persistentvolumeclaims", namespace, name) is not None:
            return
        resource = self.api.registry.named("v1", "persistentvolumeclaims")
        self.api.create(resource, namespace, claim)
        owner = found["metadata"]["name"]
        text = f"Create Claim {name} Pod {pod_name} in StatefulSet {owner} success"
        self.record(found, "SuccessfulCreate", text)

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
        current, update = plan.current["metadata"]["name"], plan.update["metadata"]["name"]
        pods = list(plan.pods.values())
        staying = [pod for pod in pods if not pod.terminating]
        ready = [pod for pod in pods if pod.phase == "Running" and pod.ready]
        counts = {
            "readyReplicas": len(ready),
            "currentReplicas": sum(_revision(pod) == current for pod in staying),
            "updatedReplicas": sum(_revision(pod) == update for pod in staying),
        }
        wanted = stateful_pods.span(newest)[1]
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
    return pod.labels.get(REVISION_LABEL, "")
