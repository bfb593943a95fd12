"""A pod of high priority gets its room from pods of low priority, as kube-scheduler would do it."""

import pytest
import yaml

from tools.harness.scheduler import RBAC
from tools.harness.world import World
from tools.objects import pod
from tools.testing import manifests, wait_for

PRIORITIES = {"low": -10, "high": 1000}
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture
def small(cluster, beside):
    """A world with one node of 4 cpu; quorate owns ``default-scheduler``."""
    beside({"profiles": [{"schedulerName": "default-scheduler"}]})
    made = World(cluster, None, f"{beside.scheduler_name}-small", scheduler="default-scheduler")
    made.nodes(1, allocatable={"cpu": "4", "memory": "8Gi", "pods": "20"})
    for name, value in PRIORITIES.items():
        cluster.api("POST", CLASSES, {"metadata": {"name": name}, "value": value})
    yield made
    made.remove()
    for name in PRIORITIES:
        cluster.api("DELETE", f"{CLASSES}/{name}")


def of(priority: str, name: str, cpu: str = "1", **spec) -> dict:
    spec.setdefault("terminationGracePeriodSeconds", 0)
    requests = {"cpu": cpu}
    made = pod(name, scheduler="default-scheduler", requests=requests, **spec)
    return made | {"spec": made["spec"] | {"priorityClassName": priority}}


def names(world: World) -> set[str]:
    return {one["metadata"]["name"] for one in world.pods()}


@pytest.mark.core
def test_it_takes_the_fewest_and_says_so(small):
    for index in range(3):
        small.create_pod(of("low", f"low-{index}"))
        small.wait_bound(index + 1)
    small.create_pod(of("high", "high", cpu="3"))
    wait_for(lambda: "high" in small.where(), "it is bound")
    assert len(names(small)) == 2, "two of three pods had to go"
    uid = small.pod("high")["metadata"]["uid"]
    note = small.wait_event("Preempted", f"Preempted by pod {uid} on node ")
    assert small.where()["high"] in note


@pytest.mark.core
@pytest.mark.real  # the embedded cluster's node agents end a victim at once, finalizer or not
def test_it_waits_for_its_victims_with_its_room_promised(small):
    stays = of("low", "stays", cpu="4")
    stays["metadata"]["finalizers"] = ["example.com/wait"]
    small.create_pod(stays)
    small.wait_bound(1)
    small.create_pod(of("high", "high", cpu="3"))
    node = next(iter(small.where().values()))
    wait_for(
        lambda: small.pod("high")["status"].get("nominatedNodeName") == node, "it is nominated"
    )
    wait_for(lambda: "deletionTimestamp" in small.pod("stays")["metadata"], "its victim goes")
    conditions = {c["type"]: c for c in small.pod("stays")["status"]["conditions"]}
    assert conditions["DisruptionTarget"]["reason"] == "PreemptionByScheduler"
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    assert conditions["DisruptionTarget"]["message"] == message
    small.stays_bound(1)
    small.remove_finalizers("stays")
    wait_for(lambda: "high" in small.where(), "it is bound")
    assert "nominatedNodeName" not in small.pod("high")["status"]


def test_a_pod_that_nothing_can_help_says_what_kube_scheduler_would(small):
    small.create_pod(of("low", "first"))
    small.wait_bound(1)  # the scheduler knows the node
    small.create_pod(of("low", "big", cpu="9"))
    said = small.wait_condition("preemption:", "")
    assert said.endswith(
        "1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_without_the_right_nobody_is_touched_and_the_reason_says_how_to_grant_it(small, beside):
    plain = without_the_right_to_delete(small.cluster, beside.scheduler_name)
    small.create_pod(of("low", "low", cpu="4"))
    small.wait_bound(1)
    small.create_pod(of("high", "high", cpu="3"))
    said = small.wait_condition("quorate manifests --preemption", "")
    assert said.startswith("0/1 nodes are available: 1 Insufficient cpu. ")
    assert [reason for reason, _ in small.conditions()] == ["Unschedulable"]
    low = small.pod("low")
    assert "deletionTimestamp" not in low["metadata"]
    assert "DisruptionTarget" not in {one["type"] for one in low["status"]["conditions"]}
    assert "nominatedNodeName" not in small.pod("high")["status"]
    small.cluster.apply(granting(plain))
    wait_for(lambda: "high" in small.where(), "it is bound once the right is granted")
    small.cluster.delete(f"{RBAC}/clusterroles/{plain['metadata']['name']}")


def without_the_right_to_delete(cluster, namespace: str) -> dict:
    """Bind a scheduler's account to what the manifests grant by default; return that role."""
    parts = list(yaml.safe_load_all(manifests("--namespace", namespace, "--only", "rbac")))
    [role] = [one for one in parts if one["kind"] == "ClusterRole"]
    [binding] = [one for one in parts if one["kind"] == "ClusterRoleBinding"]
    role["metadata"]["name"] = binding["metadata"]["name"] = f"quorate-{namespace}"
    binding["roleRef"]["name"] = f"quorate-{namespace}"
    cluster.apply(role)
    cluster.delete(f"{RBAC}/clusterrolebindings/quorate-{namespace}")
    cluster.apply(binding)
    return role


def granting(role: dict) -> dict:
    """Return the role with what ``--preemption`` adds."""
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}
    return {**role, "rules": [*role["rules"], rule]}
