"""Node agents: nodes become ready, fail, recover, and refuse pods as kubelets do."""

import asyncio

import pytest

from embedded.tests.unit.agents.agents_world import EPOCH, World
from pocketkube.agents import Settings
from tools.testing import HANGS_S

HEALTHY = {
    "MemoryPressure": "False",
    "DiskPressure": "False",
    "PIDPressure": "False",
    "Ready": "True",
}


@pytest.fixture
def world() -> World:
    return World()


def conditions(world: World, name: str = "n") -> dict:
    return {one["type"]: one["status"] for one in world.status(name, "nodes")["conditions"]}


def test_a_node_without_conditions_becomes_ready(world):
    world.node(labels={"kubernetes.io/arch": "arm64"})
    world.settle()
    assert conditions(world) == HEALTHY
    status = world.status("n", "nodes")
    assert status["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "10"}
    assert {one["type"] for one in status["addresses"]} == {"InternalIP", "Hostname"}
    assert status["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    assert status["nodeInfo"]["architecture"] == "arm64"


def test_a_condition_that_somebody_set_stays(world):
    unready = {"type": "Ready", "status": "False", "reason": "Mine", "lastTransitionTime": EPOCH}
    world.node()
    world.settle()
    world.amend("nodes", "n", lambda node: node["status"].update(conditions=[unready]), "status")
    world.pass_s(3600)
    assert world.status("n", "nodes")["conditions"] == [unready]


def test_nodes_that_are_not_ours_are_left_alone(world):
    node = world.node(annotations={"quorate.dev/agent": "none"})
    world.pod()
    world.settle()
    assert world.get("n", "nodes") == node
    assert world.phase() == "Pending"
    world.annotate("nodes", "n", agent=None)
    world.settle()
    assert world.phase() == "Running"


def test_a_silent_node_does_nothing_until_it_recovers(world):
    world.node()
    world.pod("ends", annotations={"quorate.dev/complete-after": "10s"})
    world.pod("goes")
    world.settle()
    world.annotate("nodes", "n", fail="true")
    world.settle()
    assert set(conditions(world).values()) == {"Unknown"}
    world.pod("starts")
    world.delete("pods", "goes")
    world.pass_s(60)
    assert [world.phase(one) for one in ("ends", "goes", "starts")] == [
        "Running",
        "Running",
        "Pending",
    ]
    world.annotate("nodes", "n", fail=None)
    world.settle()
    assert conditions(world) == HEALTHY
    assert [world.phase(one) for one in ("ends", "goes", "starts")] == [
        "Succeeded",
        "gone",
        "Running",
    ]


def test_agents_that_start_anew_bring_a_silent_node_back(world):
    world.node(annotations={"quorate.dev/fail": "true"})
    world.settle()
    world.agents.close()
    world.annotate("nodes", "n", fail=None)
    world.agents = world.new_agents(Settings())
    world.settle()
    assert conditions(world) == HEALTHY


@pytest.mark.parametrize(
    ("requests", "reason", "message"),
    [
        (
            {"cpu": "3"},
            "OutOfcpu",
            "cpu, requested: 3000, used: 2000, capacity: 4000",
        ),
        (
            {"memory": "7Gi"},
            "OutOfmemory",
            "memory, requested: 7516192768, used: 2147483648, capacity: 8589934592",
        ),
        (
            {"nvidia.com/gpu": "5"},
            "OutOfnvidia.com/gpu",
            "nvidia.com/gpu, requested: 5, used: 4, capacity: 8",
        ),
        (
            {"ephemeral-storage": "2Gi"},
            "OutOfephemeral-storage",
            "ephemeral-storage, requested: 2147483648, used: 0, capacity: 1073741824",
        ),
    ],
)
def test_a_node_refuses_what_does_not_fit(world, requests, reason, message):
    world.node(**{"nvidia.com/gpu": "8", "ephemeral-storage": "1Gi"})
    world.pod("first", requests={"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "4"})
    world.pod(requests=requests)
    world.settle()
    status = world.status()
    assert (status["phase"], status["reason"]) == ("Failed", reason)
    whole = f"Node didn't have enough resource: {message}"
    assert status["message"] == f"Pod was rejected: {whole}"
    assert world.events() == [(reason, whole)]
    assert "containerStatuses" not in status
    assert world.phase("first") == "Running"


def test_a_node_takes_no_more_pods_than_it_may(world):
    world.node(pods="2")
    for name in ("a", "b", "c"):
        world.pod(name)
    world.settle()
    assert [world.phase(one) for one in ("a", "b", "c")] == ["Running", "Running", "Failed"]
    assert world.status("c")["reason"] == "OutOfpods"


def test_a_resource_that_the_node_does_not_know_is_not_its_business(world):
    world.node()
    world.pod(requests={"example.com/license": "1"})
    world.settle()
    assert world.phase() == "Running"


def test_a_pod_that_ended_takes_no_room(world):
    world.node()
    world.pod("first", requests={"cpu": "4"}, annotations={"quorate.dev/complete-after": "5s"})
    world.pass_s(6)
    world.pod("second", requests={"cpu": "4"})
    world.settle()
    assert world.phase("second") == "Running"


def affinity(**term) -> dict:
    terms = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("spec", "runs"),
    [
        ({"nodeSelector": {"rack": "r1"}}, True),
        ({"nodeSelector": {"rack": "r2"}}, False),
        ({"affinity": affinity(matchExpressions=[{"key": "rack", "operator": "Exists"}])}, True),
        (
            {"affinity": affinity(matchExpressions=[{"key": "rack", "operator": "DoesNotExist"}])},
            False,
        ),
        (
            {
                "affinity": affinity(
                    matchExpressions=[{"key": "slot", "operator": "Gt", "values": ["2"]}]
                )
            },
            True,
        ),
        (
            {
                "affinity": affinity(
                    matchFields=[{"key": "metadata.name", "operator": "In", "values": ["other"]}]
                )
            },
            False,
        ),
    ],
)
def test_a_node_refuses_pods_that_want_another_node(world, spec, runs):
    world.node(labels={"rack": "r1", "slot": "3"})
    world.pod(**spec)
    world.settle()
    if runs:
        assert world.phase() == "Running"
        return
    status = world.status()
    assert (status["phase"], status["reason"]) == ("Failed", "NodeAffinity")
    assert status["message"] == (
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node "
        "affinity/selector"
    )


def test_only_a_taint_that_evicts_keeps_a_bound_pod_away(world):
    world.node("soft", taints=[{"key": "k", "effect": "NoSchedule"}])
    world.node("hard", taints=[{"key": "k", "effect": "NoExecute"}])
    tolerations = [{"key": "k", "operator": "Exists"}]
    world.pod("a", node="soft")
    world.pod("b", node="hard")
    world.pod("c", node="hard", tolerations=tolerations)
    world.settle()
    assert [world.phase(one) for one in ("a", "b", "c")] == ["Running", "Failed", "Running"]
    assert world.status("b")["reason"] == "TaintToleration"


def test_two_pods_cannot_have_one_port_of_the_host(world):
    world.node()
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}
    world.pod("a", containers=[container])
    world.pod("b", containers=[container])
    world.settle()
    assert (world.phase("a"), world.phase("b")) == ("Running", "Failed")
    assert world.status("b")["reason"] == "NodePorts"


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 1000, used: 0, capacity: 4000",
        ),
        (
            "UnexpectedAdmissionError",
            "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            "Requested: 1, Available: 0, which is unexpected",
        ),
        ("Whim", "node n was told to refuse pods"),
    ],
)
def test_a_node_refuses_pods_on_request(world, reason, message):
    world.node(annotations={"quorate.dev/refuse-pods": reason})
    world.pod(requests={"cpu": "1"})
    world.settle()
    status = world.status()
    assert (status["phase"], status["reason"]) == ("Failed", reason)
    assert status["message"] == f"Pod was rejected: {message}"
    world.annotate("nodes", "n", refuse_pods=None)
    world.pod("next")
    world.settle()
    assert world.phase("next") == "Running"


def test_leases_are_renewed_only_on_request():
    silent, beating = World(), World(Settings(heartbeat_s=10))
    for world in (silent, beating):
        world.node()
        world.pass_s(25)
    assert not silent.api.find_all("leases.coordination.k8s.io")
    (lease,) = beating.api.find_all("leases.coordination.k8s.io")
    assert lease["spec"]["holderIdentity"] == "n"
    assert lease["spec"]["renewTime"] == "2026-01-01T00:00:20.000000Z"
    for told in ("true", None, "true"):
        beating.annotate("nodes", "n", fail=told)
        beating.settle()
    beating.pass_s(60)
    (lease,) = beating.api.find_all("leases.coordination.k8s.io")
    assert lease["spec"]["renewTime"] == "2026-01-01T00:00:25.000000Z", "a silent node is silent"


def test_a_node_that_is_made_again_has_its_pods_room_counted_anew(world):
    world.node()
    world.pod("first", requests={"cpu": "3"})
    world.settle()
    world.delete("nodes", "n")
    world.settle()
    world.node()
    world.pod("second", requests={"cpu": "2"})
    world.settle()
    assert world.phase("first") == "Running"
    assert world.status("second")["reason"] == "OutOfcpu"


async def test_run_wakes_on_news():
    world = World()
    task = asyncio.create_task(world.agents.run())
    try:
        await asyncio.sleep(0)
        world.node()
        world.pod()
        async with asyncio.timeout(HANGS_S):
            while world.phase() != "Running":
                await asyncio.sleep(0.001)
    finally:
        task.cancel()
