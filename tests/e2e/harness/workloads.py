"""Manifests of ordinary workloads, whose pods name no scheduler, and how their pods lie."""

from collections import Counter

import yaml

from tests.paths import CASES
from tools import objects
from tools.harness.world import World

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def case(file: str, name: str = "") -> list[dict]:
    """Return the objects of a case, or the two of this name, without namespace."""
    found = yaml.safe_load_all((CASES / file).read_text())
    every = [one for one in found if one["kind"] != "Namespace"]
    wanted = [one for one in every if name in ("", one["metadata"]["name"])]
    for one in wanted:
        one["metadata"].pop("namespace", None)
    return wanted


def workload(kind: str, name: str, *, pod: dict | None = None, **spec) -> dict:
    """Return a Deployment, ReplicaSet, DaemonSet or StatefulSet."""
    return objects.workload(kind, name, _pod(name, **(pod or {})), **spec)


def job(name: str, count: int, *, pod: dict | None = None, **spec) -> dict:
    """Return a Job with so many pods at once."""
    return objects.job(name, count, _pod(name, restartPolicy="Never", **(pod or {})), **spec)


def _pod(name: str, *, labels: dict | None = None, cpu: str = "100m", **more) -> dict:
    labels = {"app": name, **(labels or {})}
    return objects.pod(name, scheduler=None, requests={"cpu": cpu}, labels=labels, **more)


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
