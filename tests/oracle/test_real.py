"""The oracle against kube-scheduler itself, running beside a real API server."""

import time
from collections.abc import Iterator

import pytest

from tests.conftest import skip_or_fail
from tests.oracle.objects import DEFAULT, ZONE, pod, required_affinity, selecting, spread
from tools.controlplane import Cluster
from tools.controlplane.versions import missing_binaries
from tools.objects import Object, named
from tools.oracle import Oracle

TIMEOUT_S = 30
PODS = "/api/v1/namespaces/default/pods"
SCHEDULING = "scheduling.k8s.io/v1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    missing = missing_binaries()
    if missing:
        skip_or_fail(f"not built: {', '.join(missing)}; make controlplane builds them")
    with Cluster.start() as started:
        small = {"cpu": "2", "pods": "5"}
        started.create_nodes(2, prefix="a-", allocatable=small, labels={ZONE: "a"})
        started.create_nodes(1, prefix="b-", allocatable=small, labels={ZONE: "b"})
        taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
        started.create_nodes(1, prefix="c-", labels={ZONE: "c"}, taints=[taint])
        for name, policy in (("high", "PreemptLowerPriority"), ("patient", "Never")):
            priority = named("PriorityClass", SCHEDULING, name, value=1000, preemptionPolicy=policy)
            started.api("POST", f"/apis/{SCHEDULING}/priorityclasses", priority)
        for name, host in (("web-0", "a-0"), ("web-1", "a-1"), ("web-2", "b-0")):
            started.api("POST", PODS, pod(name, on=host, cpu="1500m", app="web"))
        started.start_kube_scheduler()
        yield started


def outcome(cluster: Cluster, name: str) -> Object:
    """Wait until kube-scheduler has placed the pod or said why not; give the pod."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s:
        found = cluster.api("GET", f"{PODS}/{name}")
        if found["spec"].get("nodeName") or found["status"].get("conditions"):
            return found
        time.sleep(0.05)
    raise AssertionError(f"kube-scheduler has not seen {name}")


def volume(name: str) -> list[Object]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


UNSCHEDULABLE = {
    "too-large": pod("too-large", cpu="1"),
    "no-claim": pod("no-claim", volumes=volume("absent")),
    "selector": pod("selector", nodeSelector={ZONE: "nowhere"}),
    "named": pod("named", affinity={"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c-0"]}]}
        ]}}}),
    "apart": pod("apart", affinity=required_affinity("podAntiAffinity", "web", ZONE)),
    "even": pod(
        "even", app="web", topologySpreadConstraints=[spread("web", hard=True, minDomains=4)]
    ),
    "never": pod("never", cpu="1", priorityClassName="patient"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSCHEDULABLE)
def test_the_condition_says_what_the_oracle_says(cluster: Cluster, oracle: Oracle, name: str):
    before = {
        "nodes": cluster.api("GET", "/api/v1/nodes")["items"],
        "pods": cluster.api("GET", PODS)["items"],
    }
    created = cluster.api("POST", PODS, UNSCHEDULABLE[name])
    try:
        (condition,) = outcome(cluster, name)["status"]["conditions"]
    finally:
        cluster.api("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
    answer = oracle.ask({**before, "pod": created})
    assert condition["status"] == "False"
    assert (condition["reason"], condition["message"]) == (answer["reason"], answer["message"])


def test_it_preempts_where_the_oracle_says(cluster: Cluster, oracle: Oracle):
    spec = {"maxUnavailable": 0, "selector": selecting("web")}
    budget = named("PodDisruptionBudget", "policy/v1", "web", metadata=DEFAULT, spec=spec)
    cluster.api("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    plain = pod("plain", on="c-0", cpu="31")
    plain["metadata"]["finalizers"] = ["quorate.dev/test"]  # it stays, and so does the condition
    cluster.api("POST", PODS, plain)
    tolerant = [{"key": "dedicated", "operator": "Exists"}]
    urgent = pod("urgent", cpu="2", priorityClassName="high", tolerations=tolerant)
    case = {
        "nodes": cluster.api("GET", "/api/v1/nodes")["items"],
        "pods": cluster.api("GET", PODS)["items"],
        "objects": [budget],
    }
    created = cluster.api("POST", PODS, urgent)
    (condition,) = outcome(cluster, "urgent")["status"]["conditions"]
    nominated = cluster.api("GET", f"{PODS}/urgent")["status"]["nominatedNodeName"]
    answer = oracle.ask({**case, "pod": created})
    assert answer["preemption"]["victims"] == ["default/plain"]
    assert (nominated, condition["message"]) == (answer["preemption"]["node"], answer["message"])
