"""RayClusters, and RayJobs and RayServices, which make one each.

Source: KubeRay 1.4, ray-operator/controllers/ray/batchscheduler and utils.CalculateDesiredReplicas.
"""

from __future__ import annotations

from quorate.lint.objects import Json, mapping, value_at
from quorate.lint.pod_sources import PodSource
from quorate.lint.pod_values import read_pairs
from quorate.lint.workloads.promise import (
    COSCHEDULING_API,
    VOLCANO,
    VOLCANO_API,
    Promise,
    Workload,
    counted,
    total,
    whole,
)

GANG_LABEL = "ray.io/gang-scheduling-enabled"
_QUEUE_LABEL = "volcano.sh/queue-name"
_CLUSTERS = ("rayClusterSpec", "rayClusterConfig")


def ray_cluster(ray: Workload) -> Promise | None:
    """One gang of the head and the workers: those wanted, or with autoscaling the fewest."""
    labels = read_pairs(mapping(ray.object.value.get("metadata")).get("labels"))
    is_volcano = VOLCANO in ray.named or _QUEUE_LABEL in labels
    if not ray.sources or not (is_volcano or GANG_LABEL in labels):
        return None
    spec = ray.object.spec()
    cluster = next((mapping(spec[name]) for name in _CLUSTERS if name in spec), spec)
    is_scaled = is_volcano and cluster.get("enableInTreeAutoscaling") is True
    sources = tuple(_worker(source, is_scaled=is_scaled) for source in ray.sources)
    flag = VOLCANO if is_volcano else "scheduler-plugins"
    return Promise(
        ray.object,
        VOLCANO_API if is_volcano else COSCHEDULING_API,
        f"ray-{ray.object.name}-pg" if is_volcano else ray.object.name,
        sources,
        total(sources),
        ("spec",),
        f"KubeRay, if it runs with --batch-scheduler={flag}",
        "always",
        VOLCANO if is_volcano else "scheduler-plugins-scheduler",
    )


def _worker(source: PodSource, *, is_scaled: bool) -> PodSource:
    """Return a group of workers with the number of pods that its gang has; a head is one."""
    if "workerGroupSpecs" not in source.path:
        return source
    where = source.path[:-1]
    group = mapping(value_at(source.object.value, where))
    groups = _fewest(group) if is_scaled else _wanted(group)
    hosts = whole(group.get("numOfHosts", 1))
    count = None if groups is None or hosts is None else groups * hosts
    return counted(source, count, (*where, "minReplicas" if is_scaled else "replicas"))


def _fewest(group: Json) -> int | None:
    return 0 if group.get("suspend") is True else whole(group.get("minReplicas", 0))


def _wanted(group: Json) -> int | None:
    """Return ``replicas`` within ``minReplicas`` and ``maxReplicas``, as KubeRay takes it."""
    if group.get("suspend") is True:
        return 0
    least, most = _fewest(group), whole(group.get("maxReplicas"))
    wanted = whole(group.get("replicas") or 0)
    if least is None or wanted is None:
        return None
    return max(least, wanted) if most is None else min(max(least, wanted), most)
