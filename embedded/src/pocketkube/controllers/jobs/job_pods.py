"""Which pods a Job makes and takes away. Pure functions over facts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pocketkube.controllers.owning import deletion_order
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.objects import Object

INDEX = "batch.kubernetes.io/job-completion-index"
_ENVIRONMENT = "JOB_COMPLETION_INDEX"


def index_pod(pod: Object, job: Object, index: int) -> Object:
    """Tell a new pod its completion index: by label, variable and hostname. In place."""
    name = job["metadata"]["name"]
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["generateName"] = f"{name}-{index}-"
    metadata.setdefault("labels", {})[INDEX] = str(index)
    metadata.setdefault("annotations", {})[INDEX] = str(index)
    spec.setdefault("hostname", f"{name}-{index}")
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        environment = container.setdefault("env", [])
        if all(variable["name"] != _ENVIRONMENT for variable in environment):
            environment.append(_index_variable())
    return pod


def _index_variable() -> dict[str, Any]:
    path = f"metadata.labels['{INDEX}']"
    reference = {"apiVersion": "v1", "fieldPath": path}
    return {"name": _ENVIRONMENT, "valueFrom": {"fieldRef": reference}}


def missing_indexes(
    job: Object,
    done: set[int],
    pods: Iterable[PodFacts],
    at_most: int,
    keep_terminating: bool,
) -> list[int]:
    """Return the lowest indexes that are neither done nor have a pod that counts."""
    taken = {
        pod.completion_index
        for pod in pods
        if pod.active or (keep_terminating and pod.terminating and not pod.finished)
    }
    found: list[int] = []
    for index in range(job["spec"].get("completions") or 0):
        if len(found) == at_most:
            break
        if index not in done and index not in taken:
            found.append(index)
    return found


def surplus_pods(job: Object, active: list[PodFacts], number: int) -> list[PodFacts]:
    """Return which active pods go when parallelism shrinks: the highest indexes first."""
    if job["spec"].get("completionMode") == "Indexed":
        active = sorted(active, key=lambda pod: -pod.completion_index)
    else:
        active = deletion_order(active)
    return active[:number]
