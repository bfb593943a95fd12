"""What is measured: the cases, and the objects that each dialect makes of them.

Out: JSON bodies of nodes' resources, PodGroups and pods. Called by ``gang_bench``; nothing here
talks to a cluster.
"""

from dataclasses import dataclass
from typing import Any, Literal

NAMESPACE = "bench"
PODS_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
GANG_LABEL = "bench.quorate.dev/gang"
NODE = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
GPUS_PER_NODE = 8
POD_REQUESTS = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}

Dialect = Literal["none", "x-k8s", "native"]
Clock = Literal["last-created", "first-created"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``gangs`` gangs of ``members`` pods, members of all gangs created in turn, on ``nodes``.

    Time runs from ``clock`` until ``wanted`` gangs are whole. With ``hold_s`` the case goes on for
    that long, to see what becomes of the gangs that cannot start. Pods are created at once, or at
    the pace of ``created_per_s``.
    """

    name: str
    title: str
    nodes: int
    gangs: int
    members: int
    clock: Clock
    hold_s: float = 0.0
    timeout_s: float = 120.0
    created_per_s: float = 0.0

    @property
    def wanted(self) -> int:
        """How many gangs there is room for, at most all."""
        return min(self.gangs, self.nodes * GPUS_PER_NODE // self.members)


CASES = (
    Case(
        name="gang-1000",
        title="gang of 1,000 on 1,000 nodes: last pod created to last bind",
        nodes=1000,
        gangs=1,
        members=1000,
        clock="last-created",
    ),
    Case(
        name="gangs-100x10",
        title="100 gangs of 10, interleaved, on 1,000 nodes: first creation to last bind",
        nodes=1000,
        gangs=100,
        members=10,
        clock="first-created",
    ),
    Case(
        name="gang-1000-nodes-5000",
        title="gang of 1,000 on 5,000 nodes: last pod created to last bind",
        nodes=5000,
        gangs=1,
        members=1000,
        clock="last-created",
    ),
    Case(
        name="contention",
        title="20 gangs of 40, interleaved, room for 10: first creation to 10 whole gangs",
        nodes=50,
        gangs=20,
        members=40,
        clock="first-created",
        hold_s=60.0,
    ),
)

# Not measured: it shows that a scheduler has started, and fills its caches and connections.
WARM_UP = Case(
    name="warm-up", title="", nodes=1, gangs=1, members=2, clock="last-created", timeout_s=60.0
)


def gang_names(case: Case, run: str) -> list[str]:
    """Name the gangs of one run; no two runs share a name, so that no cache can mix them."""
    return [f"{run}-{gang}" for gang in range(case.gangs)]


def pods(case: Case, run: str, dialect: Dialect, scheduler_name: str) -> list[dict[str, Any]]:
    """Describe the pods, in the order of their creation: one of each gang, the next of each."""
    names = gang_names(case, run)
    return [
        _pod(f"{gang}-{member}", gang, dialect, scheduler_name)
        for member in range(case.members)
        for gang in names
    ]


def pod_group_path(dialect: Dialect) -> str:
    """Give the path of the collection of PodGroups, "" where a dialect has none."""
    if dialect == "none":
        return ""
    group = "scheduling.x-k8s.io/v1alpha1" if dialect == "x-k8s" else "scheduling.k8s.io/v1alpha2"
    return f"/apis/{group}/namespaces/{NAMESPACE}/podgroups"


def pod_group(gang: str, members: int, dialect: Dialect) -> dict[str, Any]:
    """Describe the object of one gang."""
    metadata = {"name": gang, "namespace": NAMESPACE}
    if dialect == "x-k8s":
        return {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": {"minMember": members},
        }
    assert dialect == "native", f"the dialect {dialect} has no PodGroup"
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"schedulingPolicy": {"gang": {"minCount": members}}},
    }


def _pod(name: str, gang: str, dialect: Dialect, scheduler_name: str) -> dict[str, Any]:
    labels = {GANG_LABEL: gang}
    spec: dict[str, Any] = {
        "schedulerName": scheduler_name,
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "worker",
                "image": "worker:1",
                "resources": {"requests": POD_REQUESTS, "limits": POD_REQUESTS},
            }
        ],
    }
    if dialect == "x-k8s":
        labels["scheduling.x-k8s.io/pod-group"] = gang
    elif dialect == "native":
        spec["schedulingGroup"] = {"podGroupName": gang}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": spec,
    }
