"""Node agents: nodes become ready, fail, recover, and refuse pods as kubelets do."""

import pytest

from embedded.tests.unit.agents.agents_world import World
from pocketkube.agents import Settings

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


def test_a_pod_that_ended_takes_no_room(world):
    world.node()
    world.pod("first", requests={"cpu": "4"}, annotations={"quorate.dev/complete-after": "5s"})
    world.pass_s(6)
    world.pod("second", requests={"cpu": "4"})
    world.settle()
    assert world.phase("second") == "Running"


def test_two_pods_cannot_have_one_port_of_the_host(world):
    world.node()
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}
    world.pod("a", containers=[container])
    world.pod("b", containers=[container])
    world.settle()
    assert (world.phase("a"), world.phase("b")) == ("Running", "Failed")
    assert world.status("b")["reason"] == "NodePorts"


def test_a_node_refuses_pods_on_request(world):
    world.node(annotations={"quorate.dev/refuse-pods": "OutOfcpu"})
    world.pod(requests={"cpu": "1"})
    world.settle()
    status = world.status()
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
    assert status["message"] == "Pod was rejected: node n was told to refuse pods"
    world.annotate("nodes", "n", refuse_pods=None)
    world.pod("next")
    world.settle()
    assert world.phase("next") == "Running"
