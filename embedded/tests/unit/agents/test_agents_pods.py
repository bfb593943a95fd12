"""Node agents: pods start, end, are restarted and go."""

import pytest

from embedded.tests.unit.agents.agents_world import EPOCH, World
from pocketkube.agents import Settings
from pocketkube.agents.settings import parse_run_time

NEVER = {"restartPolicy": "Never"}


@pytest.fixture
def world() -> World:
    found = World()
    found.node()
    found.settle()
    return found


def test_a_bound_pod_runs_as_a_kubelet_says_it(world):
    world.pod(initContainers=[{"name": "first", "image": "init"}])
    before = world.writes
    assert world.settle() is None
    status = world.status()
    assert status["phase"] == "Running"
    assert world.writes == before + 1, "one write takes a pod from bound to Running"
    assert {one["type"]: one["status"] for one in status["conditions"]} == dict.fromkeys(
        ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"),
        "True",
    )
    assert status["startTime"] == EPOCH
    assert status["hostIP"] == world.status("n", "nodes")["addresses"][0]["address"]
    assert status["hostIPs"] == [{"ip": status["hostIP"]}]
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    (main,) = status["containerStatuses"]
    assert main.pop("containerID").startswith("pocketkube://")
    assert main == {
        "name": "main",
        "state": {"running": {"startedAt": EPOCH}},
        "lastState": {},
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": "busybox",
        "imageID": "busybox",
    }
    (first,) = status["initContainerStatuses"]
    assert first["state"]["terminated"]["reason"] == "Completed"


def test_pods_of_a_node_have_addresses_of_their_own_and_give_them_back(world):
    for index in range(3):
        world.pod(f"p{index}")
    world.pod("host", hostNetwork=True)
    world.settle()
    addresses = {world.status(f"p{index}")["podIP"] for index in range(3)}
    assert len(addresses) == 3
    assert world.status("host")["podIP"] == world.status("host")["hostIP"]
    world.node("other")
    world.pod("elsewhere", node="other")
    world.settle()
    assert world.status("elsewhere")["podIP"] not in addresses
    assert world.status("elsewhere")["hostIP"] != world.status("p0")["hostIP"]


@pytest.mark.parametrize(
    ("settings", "annotations"),
    [(Settings(start_s=5), {}), (Settings(), {"quorate.dev/start-after": "5s"})],
)
def test_a_start_may_take_time(settings, annotations):
    world = World(settings)
    world.node()
    world.pod(annotations=annotations)
    assert world.settle() == 5
    world.pass_s(4.9)
    assert world.phase() == "Pending"
    world.pass_s(0.2)
    assert world.phase() == "Running"
    assert world.status()["startTime"] == "2026-01-01T00:00:05Z"


@pytest.mark.parametrize("key", ["quorate.dev/complete-after", "kwok.x-k8s.io/complete-after"])
def test_an_annotation_says_when_a_pod_succeeds_whatever_its_restart_policy(world, key):
    world.pod(annotations={key: "1m30s"})
    world.pass_s(89)
    assert world.phase() == "Running"
    world.pass_s(2)
    status = world.status()
    assert status["phase"] == "Succeeded"
    (main,) = status["containerStatuses"]
    terminated = main["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (0, "Completed")
    assert (terminated["startedAt"], terminated["finishedAt"]) == (EPOCH, "2026-01-01T00:01:30Z")
    assert not main["ready"]
    assert world.condition("Ready")["reason"] == "PodCompleted"
    assert world.condition("Initialized")["reason"] == "PodCompleted"
    assert world.condition("PodScheduled")["status"] == "True"


def test_an_annotation_that_comes_later_counts_from_the_start(world):
    world.pod()
    world.pass_s(10)
    world.annotate("pods", "p", complete_after="15s")
    world.pass_s(4)
    assert world.phase() == "Running"
    world.pass_s(2)
    assert world.phase() == "Succeeded"


def test_an_annotation_that_is_no_duration_is_ignored_and_said(world):
    world.pod(annotations={"quorate.dev/complete-after": "soon"})
    world.pass_s(3600)
    assert world.phase() == "Running"
    ((reason, message),) = world.events()
    assert reason == "InvalidAnnotation"
    assert "'soon' is not a duration" in message


def test_a_pod_that_never_restarts_fails(world):
    world.pod(annotations={"quorate.dev/fail-after": "10s"}, **NEVER)
    world.pass_s(11)
    assert world.phase() == "Failed"
    terminated = world.status()["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (1, "Error")
    assert world.condition("Ready")["reason"] == "PodFailed"


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_containers_that_fail_are_restarted_ever_more_slowly(world, policy):
    world.pod(annotations={"quorate.dev/fail-after": "5s"}, restartPolicy=policy)
    world.pass_s(6)
    (main,) = world.status()["containerStatuses"]
    assert main["restartCount"] == 1
    assert "running" in main["state"], "the first restart is at once"
    assert main["lastState"]["terminated"]["exitCode"] == 1
    assert world.condition("Ready")["status"] == "True"
    world.pass_s(5)
    (main,) = world.status()["containerStatuses"]
    assert main["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert world.condition("Ready")["reason"] == "ContainersNotReady"
    assert world.phase() == "Running"
    world.pass_s(10)
    (main,) = world.status()["containerStatuses"]
    assert main["restartCount"] == 2
    assert "running" in main["state"]
    world.pass_s(23)
    assert world.status()["containerStatuses"][0]["restartCount"] == 2, "twice as long"
    world.pass_s(2)
    assert world.status()["containerStatuses"][0]["restartCount"] == 3


def test_run_times_are_drawn_from_the_seed_for_pods_that_may_finish():
    def ends(seed: int) -> list[float]:
        world = World(Settings(run_time=parse_run_time("exponential(100s)")), seed=seed)
        world.node()
        for index in range(5):
            world.pod(f"p{index}", **NEVER)
        world.pod("service")
        found: list[float] = []
        while len(found) < 5:
            wait_s = world.settle()
            assert wait_s is not None
            world.passed_s += wait_s
            world.settle()
            found += [world.passed_s] * (
                sum(world.phase(f"p{i}") == "Succeeded" for i in range(5)) - len(found)
            )
        assert world.phase("service") == "Running"
        return found

    assert ends(1) == ends(1)
    assert ends(1) != ends(2)


def test_a_deleted_pod_goes_at_once_and_leaves_its_room(world):
    world.pod("first", requests={"cpu": "4"})
    world.settle()
    world.delete("pods", "first")
    assert world.get("first")["metadata"]["deletionTimestamp"], "it has 30 s of grace"
    world.pod("second", requests={"cpu": "4"})
    world.settle()
    assert world.phase("first") == "gone"
    assert world.phase("second") == "Running"


def test_a_pod_with_a_finalizer_says_how_it_ended_before_it_waits_to_go(world):
    world.pod(finalizers=["example.com/stay"], **NEVER)
    world.settle()
    world.delete("pods", "p")
    assert world.settle() is None
    assert world.phase() == "Failed"
    assert world.status()["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    world.amend("pods", "p", lambda pod: pod["metadata"].pop("finalizers"))
    world.settle()
    assert world.phase() == "gone"


def test_agents_that_start_anew_go_on_where_others_were():
    world = World()
    world.node()
    world.pod("runs", requests={"cpu": "3"}, annotations={"quorate.dev/complete-after": "60s"})
    world.pass_s(20)
    address = world.status("runs")["podIP"]
    world.agents.close()
    version = world.get("runs")["metadata"]["resourceVersion"]
    world.agents = world.new_agents(Settings())
    world.settle()
    assert world.get("runs")["metadata"]["resourceVersion"] == version, "nothing to write"
    world.pod("large", requests={"cpu": "2"})
    world.pod("small", requests={"cpu": "1"})
    world.settle()
    assert world.status("large")["reason"] == "OutOfcpu"
    assert world.status("small")["podIP"] != address
    world.pass_s(39)
    assert world.phase("runs") == "Running"
    world.pass_s(2)
    assert world.phase("runs") == "Succeeded"
