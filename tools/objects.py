"""Manifests of tests and benches as values, in one line each; other arguments go into the spec."""

from typing import Any

Object = dict[str, Any]
X_K8S = "scheduling.x-k8s.io/v1alpha1"
SIGS = "scheduling.sigs.k8s.io/v1alpha1"
VOLCANO = "scheduling.volcano.sh/v1beta1"
NATIVE = "scheduling.k8s.io/v1alpha2"
GANG_LABEL = "scheduling.x-k8s.io/pod-group"
ONE_CPU = {"cpu": "1"}


def merged(one: Object, other: Object) -> Object:
    """Return both: objects that are in both are merged, of all else the other's counts."""
    both = {**one, **other}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            both[key] = merged(one[key], other[key])
    return both


def named(
    kind: str, version: str, name: str, metadata: Object | None = None, **fields: object
) -> Object:
    """Return an object of any kind; fields that are None are left out."""
    whole = {"name": name, **(metadata or {})}
    said = {key: value for key, value in fields.items() if value is not None}
    return {"apiVersion": version, "kind": kind, "metadata": whole, **said}


def node(
    name: str, *, labels: Object | None = None, allocatable: Object | None = None, **spec: object
) -> Object:
    """Return a node of 8 cpu and 8 GiB for 10 pods; ``allocatable`` is what it has else."""
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10", **(allocatable or {})}}
    return named("Node", "v1", name, {"labels": labels or {}}, spec=spec, status=status)


def pod(
    name: str,
    *,
    scheduler: str | None = "quorate",
    requests: Object | None = ONE_CPU,
    container: Object | None = None,
    labels: Object | None = None,
    annotations: Object | None = None,
    metadata: Object | None = None,
    status: Object | None = None,
    **spec: object,
) -> Object:
    """Return a pod with one container that asks for ``requests``; None leaves a field out."""
    main: Object = {"name": "main", "image": "registry.k8s.io/pause:3.6"}
    if requests is not None:
        limits = {key: value for key, value in requests.items() if "/" in key}
        main["resources"] = {"requests": {**requests}, **({"limits": limits} if limits else {})}
    known: Object = {"containers": [{**main, **(container or {})}]}
    if scheduler is not None:
        known["schedulerName"] = scheduler
    about = {"labels": labels or {}, "annotations": annotations or {}, **(metadata or {})}
    return named("Pod", "v1", name, about, spec={**known, **spec}, status=status)


def pod_group(
    name: str,
    min_member: int | None,
    api: str = X_K8S,
    *,
    metadata: Object | None = None,
    **spec: object,
) -> Object:
    """Return a PodGroup of one of the APIs that call it minMember; None leaves that out."""
    known = {} if min_member is None else {"minMember": min_member}
    return named("PodGroup", api, name, metadata, spec={**known, **spec})


def gang_pods(
    name: str, count: int, *, labels: Object | None = None, **options: object
) -> list[Object]:
    """Return ``count`` pods of the x-k8s gang ``name``, named name-0, name-1, ..."""
    own = {GANG_LABEL: name, "gang": name, **(labels or {})}
    return [pod(f"{name}-{i}", labels=own, **options) for i in range(count)]


def claim(
    name: str, *, metadata: Object | None = None, status: Object | None = None, **spec: object
) -> Object:
    """Return a PersistentVolumeClaim for 1 GiB."""
    known = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kind = "PersistentVolumeClaim"
    return named(kind, "v1", name, metadata, spec={**known, **spec}, status=status)


def workload(kind: str, name: str, one: Object, match: str = "app", **spec: object) -> Object:
    """Return a Deployment, ReplicaSet, DaemonSet or StatefulSet of pods like ``one``.

    It selects them by their label ``match``.
    """
    selector = {"matchLabels": {match: one["metadata"]["labels"][match]}}
    return named(kind, "apps/v1", name, spec={"selector": selector, "template": _like(one), **spec})


def job(name: str, count: int, one: Object, **spec: object) -> Object:
    """Return a Job of so many pods like ``one``, all at once."""
    known = {"parallelism": count, "completions": count, "template": _like(one)}
    return named("Job", "batch/v1", name, spec={**known, **spec})


def _like(one: Object) -> Object:
    about = {key: one["metadata"][key] for key in ("labels", "annotations")}
    return {"metadata": about, "spec": one["spec"]}
