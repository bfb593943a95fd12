"""Each way of naming a gang: the shape that users apply, and the status that their tools read."""

import copy
import re
from functools import partial

import pytest

from quorate.dialects import by_name
from tests.e2e.harness.gang_shapes import SHAPES
from tools.objects import NATIVE, SIGS, VOLCANO, gang_pods, named, pod, pod_group
from tools.testing import wait_for

pytestmark = pytest.mark.usefixtures("volcano")

SENTENCE = "2 of 4 members exist; Deployment pause makes 2"
SIGS_CRD = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.sigs.k8s.io"
)


def condition(status: dict, kind: str) -> dict:
    return next((c for c in status.get("conditions", []) if c["type"] == kind), {})


@pytest.mark.core
@pytest.mark.parametrize("dialect", ["x-k8s", "volcano", "native"])
def test_the_deployment_of_two_waits_says_why_and_starts_whole_when_scaled(world, dialect):
    shape = SHAPES[dialect]
    world.nodes(2)
    world.apply(shape.group("pg1", 4), shape.deployment("pause", "pg1", 2))
    assert world.wait_condition(SENTENCE) == SENTENCE
    world.wait_event("FailedScheduling", SENTENCE)
    explanation = world.why("pg1")
    assert (explanation["message"], explanation["reason"]) == (SENTENCE, "OwnerMakesTooFew")
    assert explanation["api"] == dialect
    assert world.bound() == 0

    world.scale("pause", 4)
    wait_for(lambda: world.running("app=pause") == 4, "all four run")


@pytest.mark.core
@pytest.mark.parametrize("dialect", ["x-k8s", "sigs"])
def test_scheduler_plugins_phases_and_counts(world, dialect):
    shape, api = SHAPES[dialect], SHAPES[dialect].api
    world.nodes(1, allocatable={"cpu": "2"})
    world.apply(shape.group("pg1", 3, scheduleTimeoutSeconds=0))
    world.wait_status("pg1", api, phase="Pending")  # operators look again only when it changes
    done_soon = {"annotations": {"quorate.dev/complete-after": "2s"}}
    first, *others = shape.pods("pg1", 3, **done_soon)
    world.create_pod(first)
    world.wait_condition("1 of 3 members exist")
    assert world.group("pg1", api)["status"]["phase"] == "Pending"
    world.create_pods(others)
    world.wait_status("pg1", api, phase="Scheduling")  # they exist, but there is too little room
    world.nodes(1, prefix=f"{world.namespace}-more-")
    running = world.wait_status("pg1", api, phase="Running", running=3)
    assert running.get("failed", 0) == 0
    world.wait_status("pg1", api, phase="Finished", succeeded=3, running=0)


def test_occupied_by_names_the_owner_of_the_pods(world):
    shape = SHAPES["x-k8s"]
    world.nodes(1)
    world.apply(shape.group("pg1", 2), shape.deployment("pause", "pg1", 2))
    status = world.wait_status("pg1", phase="Running", running=2)
    assert status["occupiedBy"] == f"{world.namespace}/pause"


def test_volcano_stays_pending_until_min_resources_fit(world):
    world.nodes(1, allocatable={"cpu": "2"})
    world.apply(SHAPES["volcano"].group("job2", 4, minResources={"cpu": "4"}))
    world.wait_status("job2", VOLCANO, phase="Pending")
    world.nodes(1, prefix=f"{world.namespace}-more-")
    world.wait_status("job2", VOLCANO, phase="Inqueue")


def test_volcano_without_pods_says_everywhere_that_room_is_short_until_there_is_some(world):
    """It stayed Pending and nobody said why; ``why`` asked for pods that no client makes then."""
    world.nodes(1)
    world.apply(SHAPES["volcano"].group("job2", 2, minResources={"nvidia.com/gpu": "1"}))
    sentence = "minResources ask for 1 nvidia.com/gpu (0 free)"
    assert world.wait_event("FailedScheduling", sentence) == sentence
    (event,) = [one for one in world.all_events() if one["reason"] == "FailedScheduling"]
    assert (event["type"], event["reportingController"]) == ("Warning", "volcano")
    assert (event["regarding"]["kind"], event["regarding"]["name"]) == ("PodGroup", "job2")

    def unschedulable(state: str) -> dict:
        def found() -> dict:
            said = condition(world.group("job2", VOLCANO).get("status", {}), "Unschedulable")
            return said if said.get("status") == state else {}

        return wait_for(found, f"condition Unschedulable is {state}")

    said = unschedulable("True")
    assert said["reason"] == "NotEnoughResources"
    assert said["message"] == f"2/2 tasks in gang unschedulable: {sentence}"
    world.wait_status("job2", VOLCANO, phase="Pending")
    explanation = world.why("job2")
    assert (explanation["state"], explanation["reason"]) == ("Waiting", "MinResourcesShort")
    assert (explanation["message"], explanation["line"]) == (sentence, None)
    counts = partial(world.quorate.metric, "quorate_waiting_gangs", reason="MinResourcesShort")
    wait_for(lambda: counts() == 1, "it counts as waiting")

    world.nodes(1, prefix=f"{world.namespace}-gpu-", allocatable={"nvidia.com/gpu": "1"})
    world.wait_status("job2", VOLCANO, phase="Inqueue")
    assert "message" not in unschedulable("False")
    words = "0 of 2 members exist"
    assert world.wait_event("FailedScheduling", words) == words
    explanation = world.why("job2")
    assert (explanation["reason"], explanation["message"]) == ("NotEnoughMembers", words)
    wait_for(lambda: counts() == 0, "nobody waits for room")


@pytest.mark.core
def test_volcano_phases_conditions_and_counts(world):
    world.nodes(1, allocatable={"cpu": "2"})
    shape = SHAPES["volcano"]
    world.apply(shape.group("job", 3))
    done_soon = {"annotations": {"quorate.dev/complete-after": "2s"}}
    world.create_pods(shape.pods("job", 3, **done_soon))
    waiting = wait_for(
        lambda: condition(world.group("job", VOLCANO).get("status", {}), "Unschedulable"),
        "condition Unschedulable",
    )
    assert waiting["status"] == "True"
    assert waiting["reason"] == "NotEnoughResources"
    assert waiting["message"].startswith("3/3 tasks in gang unschedulable: ")
    assert world.group("job", VOLCANO)["status"]["phase"] == "Inqueue"

    world.nodes(1, prefix=f"{world.namespace}-more-")
    running = world.wait_status("job", VOLCANO, phase="Running", running=3)
    assert condition(running, "Scheduled")["status"] == "True"
    assert condition(running, "Unschedulable")["status"] == "False"
    world.wait_status("job", VOLCANO, phase="Completed", succeeded=3, running=0)


@pytest.mark.core
def test_volcano_queues_root_and_default_are_there_and_open(world):
    path = f"/apis/{VOLCANO}/queues"

    def queues() -> dict[str, dict]:
        return {q["metadata"]["name"]: q for q in world.cluster.api("GET", path)["items"]}

    wait_for(
        lambda: (
            {n: q.get("status", {}).get("state") for n, q in queues().items()}
            == {"root": "Open", "default": "Open"}
        ),
        "both queues are open",
    )
    assert queues()["root"]["spec"] == {"reclaimable": False, "weight": 1}
    assert queues()["default"]["spec"] == {"reclaimable": True, "weight": 1}


def test_what_gangs_take_of_a_volcano_queue_is_in_its_status_and_in_those_above(world):
    """Volcano's admission lets nobody make a queue below one of which something is taken."""
    shape = SHAPES["volcano"]
    above, below = f"{world.namespace}-above", f"{world.namespace}-below"
    world.nodes(2)
    for name, parent in ((above, "root"), (below, above)):
        world.apply(named("Queue", VOLCANO, name, spec={"weight": 1, "parent": parent}))

    def taken(queue: str) -> dict[str, str]:
        found = world.cluster.api("GET", f"/apis/{VOLCANO}/queues/{queue}")
        return found.get("status", {}).get("allocated", {})

    for name, queue, size in (("one", above, 1), ("two", below, 2)):
        world.apply(shape.group(name, size, queue=queue))
        world.create_pods(shape.pods(name, size))
    wait_for(lambda: taken(above).get("pods") == "3", "those of both are counted")
    assert taken(below) == {"cpu": "2", "memory": "0", "pods": "2"}
    assert taken(above) == {"cpu": "3", "memory": "0", "pods": "3"}
    world.delete_pods("gang=two")
    wait_for(lambda: taken(below) == {"cpu": "0", "memory": "0"}, "those that are gone are not")
    wait_for(lambda: taken(above).get("pods") == "1", "nor above it")
    for name in (above, below):  # the next test is of queues, too, and no namespace has them
        world.cluster.api("DELETE", f"/apis/{VOLCANO}/queues/{name}")


@pytest.mark.core
def test_native_condition_says_why_and_then_that_it_is_scheduled(world):
    shape = SHAPES["native"]
    world.nodes(1, allocatable={"cpu": "2"})
    world.apply(shape.group("ng", 3))
    world.create_pods(shape.pods("ng", 3))

    def scheduled() -> dict:
        return condition(world.group("ng", NATIVE).get("status", {}), "PodGroupScheduled")

    waiting = wait_for(scheduled, "condition PodGroupScheduled")
    assert (waiting["status"], waiting["reason"]) == ("False", "Unschedulable")
    assert "3 members must start together and 2 fit" in waiting["message"]
    world.nodes(1, prefix=f"{world.namespace}-more-")
    wait_for(lambda: scheduled()["status"] == "True", "it is scheduled")
    assert scheduled()["reason"] == "Scheduled"
    wait_for(lambda: world.running("gang=ng") == 3, "all run")


def test_two_dialects_on_one_pod_warn_and_the_first_of_the_order_counts(world):
    world.nodes(1)
    world.apply(pod_group("first", 2), SHAPES["volcano"].group("second", 1))
    both = {"annotations": {"scheduling.k8s.io/group-name": "second"}}
    first, other = gang_pods("first", 2, **both)
    world.create_pod(first)
    note = world.wait_event("GangLabels", "names several gangs")
    assert '"first" by label scheduling.x-k8s.io/pod-group, which counts' in note
    assert '"second" by annotation scheduling.k8s.io/group-name, which is ignored' in note
    assert [e["type"] for e in world.all_events() if e["reason"] == "GangLabels"] == ["Warning"]
    assert note in world.why("first")["warnings"]
    world.stays_unbound()
    world.create_pod(other)
    world.wait_bound(2)


def test_dialects_meet_in_one_queue_the_higher_priority_first(world):
    world.nodes(1, allocatable={"cpu": "2"})
    world.create_pod(pod("holder", requests={"cpu": "2"}))
    world.wait_bound(1)
    for dialect in ("x-k8s", "volcano"):
        world.apply(SHAPES[dialect].group(dialect, 2))
    high = {"priorityClassName": "system-cluster-critical"}
    world.create_pods(
        SHAPES["x-k8s"].pods("x-k8s", 2), SHAPES["volcano"].pods("volcano", 2, **high)
    )
    world.wait_condition("must start together", "gang=volcano")
    world.wait_condition("must start together", "gang=x-k8s")
    world.delete_pod("holder")
    world.wait_bound(2, "gang=volcano")
    assert world.bound("gang=x-k8s") == 0


def test_an_old_sigs_crd_without_status_subresource_gets_its_status_all_the_same(world):
    def put(crd: dict) -> None:
        now = world.cluster.api("GET", SIGS_CRD)
        world.cluster.api("PUT", SIGS_CRD, {**now, "spec": crd["spec"]})

    current = world.cluster.api("GET", SIGS_CRD)
    old = copy.deepcopy(current)
    del old["spec"]["versions"][0]["subresources"]
    put(old)
    try:
        world.nodes(1)
        world.apply(SHAPES["sigs"].group("pg1", 2))
        wait_for(lambda: "status" not in served_resources(world), "/status is not served any more")
        world.create_pods(SHAPES["sigs"].pods("pg1", 2))
        world.wait_status("pg1", SIGS, phase="Running", running=2)
    finally:
        put(current)
        wait_for(lambda: "status" in served_resources(world), "/status is served again")


def served_resources(world) -> set[str]:
    listed = world.cluster.api("GET", f"/apis/{SIGS}")["resources"]
    return {resource["name"].partition("/")[2] for resource in listed}


def test_volcanos_queues_are_left_to_those_who_own_its_pods(volcano, apart, beside):
    """Those of the suite's own scheduler, which owns them, are removed first: it made them once."""
    del volcano
    path = f"/apis/{VOLCANO}/queues"
    for name in ("root", "default"):
        apart.cluster.api("DELETE", f"{path}/{name}")
    stranger = beside({"schedulerNames": [apart.scheduler]})
    apart.nodes(1)
    apart.create_pods([pod("single", scheduler=apart.scheduler)])
    apart.wait_bound(1)  # it knows all that is served, and decides
    assert "podgroups.scheduling.volcano.sh" not in stranger.page("/readyz")
    assert apart.cluster.api("GET", path)["items"] == []
    stranger.stop()
    beside({"schedulerNames": [apart.scheduler, "volcano"]})
    wait_for(lambda: len(apart.cluster.api("GET", path)["items"]) == 2, "their owner makes them")


@pytest.mark.core
@pytest.mark.real
@pytest.mark.parametrize("dialect", ["x-k8s", "sigs"])
def test_the_object_has_events_of_waiting_and_of_the_start(world, dialect):
    """``kubectl describe podgroup`` had no Event for x-k8s and sigs."""
    shape = SHAPES[dialect]
    world.nodes(1, allocatable={"pods": "1"})
    world.apply(shape.group("pg1", 2), shape.deployment("pause", "pg1", 2))
    described = "describe", f"podgroup.{by_name(dialect).resource.group}", "pg1"
    wait_for(
        lambda: "2 members must start together and 1 fit" in world.kubectl(*described),
        "the object says why it waits",
    )
    assert "FailedScheduling" in world.kubectl(*described)
    world.nodes(1, prefix=f"{world.namespace}-more-")
    wait_for(
        lambda: re.search(
            r"Normal +GangStarted .* 2 of 2 members have a node; 2 had to start together",
            world.kubectl(*described),
        ),
        "the object says that it has started",
    )
