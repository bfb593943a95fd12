"""Manifests of ordinary workloads, whose pods name no scheduler, and how their pods lie."""

from collections import Counter

from tools.harness.world import World

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def template(name: str, *, labels: dict | None = None, cpu: str = "100m", **pod) -> dict:
    """Return a pod template of one pause container."""
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    container |= pod.pop("container", {})
    metadata = {"labels": {"app": name, **(labels or {})}}
    return {"metadata": metadata, "spec": {"containers": [container], **pod}}


def workload(kind: str, name: str, *, pod: dict | None = None, **spec) -> dict:
    """Return a Deployment, ReplicaSet, DaemonSet or StatefulSet."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, **(pod or {})),
            **spec,
        },
    }


def job(name: str, count: int, *, pod: dict | None = None, **spec) -> dict:
    """Return a Job with so many pods at once."""
    made = template(name, restartPolicy="Never", **(pod or {}))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": count, "completions": count, "template": made, **spec},
    }


def matching(name: str) -> dict:
    return {"labelSelector": {"matchLabels": {"app": name}}}


def hard_spread(name: str, **more) -> dict:
    when = {"whenUnsatisfiable": "DoNotSchedule"}
    return {"maxSkew": 1, "topologyKey": ZONE, **when, **matching(name), **more}


def zones(world: World, selector: str) -> list[int]:
    """How many pods each zone has, the fewest first; a zone is the last part but one of a name."""
    counts = Counter(node.split("-")[-2] for node in world.where(selector).values())
    return sorted(counts.values())


def runs(world: World, count: int, selector: str) -> bool:
    """Whether exactly so many pods are left of a workload, and all of them run."""
    pods = [one for one in world.pods(selector) if "deletionTimestamp" not in one["metadata"]]
    return len(pods) == count and all(one["status"]["phase"] == "Running" for one in pods)
