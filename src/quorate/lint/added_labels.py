"""Labels that controllers give to the pods which they make, beside those of the template.

Pods are often told to be near, or apart from, pods with such a label. Values that differ from pod
to pod, such as an index, are not known here. Source: the operators' releases in ``workloads``.
"""

from __future__ import annotations

from quorate.lint.objects import KubeObject, mapping, text, value_at
from quorate.lint.tree import Path

_JOBSET, _RAY, _KUBEFLOW = "jobset.sigs.k8s.io", "ray.io", "training.kubeflow.org"
_LWS, _VOLCANO = "leaderworkerset.sigs.k8s.io", "volcano.sh"
_DOMAINS = (
    *(_JOBSET, _RAY, _KUBEFLOW, _LWS, _VOLCANO, "trainer.kubeflow.org"),
    *("batch.kubernetes.io", "apps.kubernetes.io", "statefulset.kubernetes.io"),
)
_KEYS = ("job-name", "controller-uid", "pod-template-hash")
"""Keys without a domain that Jobs and Deployments give to their pods."""


JOBSET_NAME = f"{_JOBSET}/jobset-name"


def are_controllers(key: str) -> bool:
    """Whether a label is one that controllers give, with a value that may not be known."""
    return key in _KEYS or key.partition("/")[0] in _DOMAINS


def added_labels(found: KubeObject, path: Path) -> dict[str, str]:
    """Return the labels that pods of the template at ``path`` get from the object's controller."""
    name, kind = found.name, found.kind
    match found.group:
        case "batch" if kind == "Job":
            return {"job-name": name, "batch.kubernetes.io/job-name": name}
        case "jobset.x-k8s.io":
            job = text(mapping(value_at(found.value, path[:3])).get("name"))
            return {JOBSET_NAME: name, f"{_JOBSET}/replicatedjob-name": job}
        case "kubeflow.org":
            part = str(path[2]).lower() if len(path) > 2 else ""
            role = "replica-type" if found.api_version == "kubeflow.org/v1" else "job-role"
            return {f"{_KUBEFLOW}/job-name": name, f"{_KUBEFLOW}/{role}": part}
        case "ray.io":
            return _of_ray(found, path)
        case "leaderworkerset.x-k8s.io":
            return {f"{_LWS}/name": name}
        case "batch.volcano.sh":
            task = text(mapping(value_at(found.value, path[:3])).get("name"))
            return {f"{_VOLCANO}/job-name": name, f"{_VOLCANO}/task-spec": task}
        case _:
            return {}


def _of_ray(found: KubeObject, path: Path) -> dict[str, str]:
    is_head = "headGroupSpec" in path
    group = text(mapping(value_at(found.value, path[:-1])).get("groupName"))
    labels = {
        f"{_RAY}/is-ray-node": "yes",
        f"{_RAY}/node-type": "head" if is_head else "worker",
        f"{_RAY}/group": "headgroup" if is_head else group,
    }
    return {**labels, f"{_RAY}/cluster": found.name} if found.kind == "RayCluster" else labels
