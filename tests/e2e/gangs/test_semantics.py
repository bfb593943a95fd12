"""What a gang means, row by row of the design's table: who counts, and what starts when."""

import pytest

from tests.e2e.harness.gang_shapes import SHAPES
from tools.objects import GANG_LABEL, SIGS, gang_pods, pod, pod_group
from tools.testing import wait_for

GATE = {"schedulingGates": [{"name": "example.com/hold"}]}


def more_nodes(world, count: int = 1, **options) -> None:
    world.nodes(count, prefix=f"{world.namespace}-more-", **options)


@pytest.mark.core
def test_with_fewer_members_than_min_nothing_starts_and_bare_pods_have_a_remedy(world):
    world.nodes(2)
    *three, fourth = world.gang("g", 4)
    world.create_pods(three)
    world.wait_condition("3 of 4 members exist")
    world.stays_unbound()
    assert world.why("g")["hint"] == "create the other 1, or lower min"
    world.create_pod(fourth)
    world.wait_bound(4)


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "Job"])
def test_the_owner_that_makes_too_few_is_named(world, kind):
    world.nodes(1)
    template = {
        "metadata": {"labels": {"app": "w", GANG_LABEL: "g"}},
        "spec": pod("w")["spec"],
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "w"}}, "template": template}
    api = "apps/v1"
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        api, spec = "batch/v1", {"parallelism": 2, "completions": 5, "template": template}
    if kind == "StatefulSet":
        spec |= {"podManagementPolicy": "Parallel", "serviceName": "w"}
    owner = {"apiVersion": api, "kind": kind, "metadata": {"name": "w"}, "spec": spec}
    world.apply(pod_group("g", 3), owner)
    world.wait_condition(f"2 of 3 members exist; {kind} w makes 2")


def test_all_exist_but_too_little_room_holds_nothing_so_another_gang_takes_the_room(world):
    world.nodes(1, allocatable={"cpu": "3"})
    world.create_pods(world.gang("large", 4))
    world.wait_condition("4 members must start together and 3 fit")
    world.create_pods(world.gang("small", 3))
    world.wait_bound(3, "gang=small")
    assert world.bound("gang=large") == 0


@pytest.mark.core
def test_room_for_min_but_not_for_all_starts_what_fits_and_the_rest_follows_singly(world):
    world.nodes(1, allocatable={"cpu": "3"})
    world.create_pods(world.gang("g", 5, minimum=2, requests={"cpu": "1"}))
    world.wait_bound(3)
    world.wait_condition("0 of 2 more members fit")
    more_nodes(world, allocatable={"cpu": "1"})
    world.wait_bound(4)
    world.stays_bound(4)
    world.nodes(1, prefix=f"{world.namespace}-last-")
    world.wait_bound(5)


@pytest.mark.core
def test_a_gated_member_does_not_count(world):
    world.nodes(1)
    first, second = world.gang("g", 2)
    second["spec"] |= GATE
    world.create_pods([first, second])
    assert world.wait_condition("1 of 2 members exist; 1 more is scheduling-gated")
    assert world.why("g")["reason"] == "MembersGated"
    world.stays_unbound()
    gated = next(c for c in world.pod("g-1")["status"]["conditions"] if c["type"] == "PodScheduled")
    assert gated["reason"] == "SchedulingGated"  # the API server's word stays
    world.patch_pod("g-1", {"spec": {"schedulingGates": None}})
    world.wait_bound(2)


@pytest.mark.core
def test_a_terminating_member_does_not_count(world):
    """The garbage collector of pods may have set it to Failed before anything is said of it."""
    world.nodes(1)
    first, second = world.gang("g", 2)
    second["metadata"]["finalizers"] = ["example.com/stay"]
    second["spec"] |= GATE
    world.create_pods([first, second])
    world.delete_pod("g-1")
    world.patch_pod("g-1", {"spec": {"schedulingGates": None}})
    try:
        world.wait_condition("1 of 2 members exist")
        world.stays_unbound()
    finally:
        world.remove_finalizers("g-1")
    world.create_pod(gang_pods("g", 3)[2])
    world.wait_bound(2)


def test_bound_members_count_whatever_their_phase(world):
    world.nodes(1)
    done, runs = world.gang("g", 2)
    done["metadata"].setdefault("annotations", {})["quorate.dev/complete-after"] = "100ms"
    world.create_pods([done, runs])
    wait_for(
        lambda: [p["status"]["phase"] for p in world.pods()] == ["Succeeded", "Running"],
        "one is done",
    )
    late = gang_pods("g", 3)[2]
    world.create_pod(late)
    world.wait_bound(3)


@pytest.mark.core
def test_a_started_gang_that_loses_a_member_gets_it_replaced_alone(world):
    world.nodes(1, allocatable={"cpu": "3"})
    shape = SHAPES["x-k8s"]
    deployment = shape.deployment("w", "g", 3)
    resources = {"requests": {"cpu": "1"}}
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    world.apply(shape.group("g", 3), deployment)
    before: set[str] = set()

    def others_run() -> set[str]:
        """Return all three that run, in one look, if they are not those that ran before."""
        now = {p["metadata"]["uid"] for p in world.pods() if p["status"]["phase"] == "Running"}
        return now if len(now) == 3 and now != before else set()

    before = wait_for(others_run, "all run")
    world.delete_pod(world.pods()[0]["metadata"]["name"])
    assert len(before & wait_for(others_run, "a replacement runs")) == 2


@pytest.mark.core
def test_a_replacement_starts_though_the_gang_is_below_min(world):
    world.nodes(1)
    world.create_pods(world.gang("g", 3))
    world.wait_bound(3)
    world.delete_pod("g-0", wait=True)
    world.delete_pod("g-1", wait=True)
    world.create_pod(gang_pods("g", 1)[0])  # one bound, one new: 2 of 3
    world.wait_bound(2)


@pytest.mark.core
def test_members_wait_for_a_missing_object_and_start_when_it_appears(world):
    world.nodes(1)
    world.create_pods(gang_pods("late", 2))
    world.wait_condition("PodGroup late (scheduling.x-k8s.io/v1alpha1) does not exist in namespace")
    world.stays_unbound()
    world.apply(pod_group("late", 2))
    world.wait_bound(2)


@pytest.mark.core
def test_an_object_deleted_while_members_wait_holds_them_with_that_reason(world):
    world.nodes(1, allocatable={"cpu": "2"})
    world.create_pods(world.gang("g", 3))
    world.wait_condition("3 members must start together and 2 fit")
    world.delete_group("g")
    world.wait_condition("PodGroup g (scheduling.x-k8s.io/v1alpha1) does not exist")
    more_nodes(world)
    world.stays_unbound()
    world.apply(pod_group("g", 3))
    world.wait_bound(3)


def test_an_object_deleted_after_the_start_touches_nothing_that_runs(world):
    world.nodes(1)
    world.create_pods(world.gang("g", 2))
    wait_for(lambda: world.running() == 2, "both run")
    before = world.where()
    world.delete_group("g")
    world.create_pod(gang_pods("g", 3)[2])
    world.wait_condition("PodGroup g (scheduling.x-k8s.io/v1alpha1) does not exist")
    assert world.where() == before
    assert world.running() == 2


def test_min_edited_while_members_wait_holds_from_the_next_cycle_on(world):
    world.nodes(1, allocatable={"cpu": "3"})
    world.create_pods(world.gang("g", 4))
    world.wait_condition("4 members must start together and 3 fit")
    world.patch_group("g", {"spec": {"minMember": 3}})
    world.wait_bound(3)

    world.create_pods(world.gang("h", 2))
    world.wait_condition("2 members must start together and 0 fit")
    world.patch_group("h", {"spec": {"minMember": 3}})
    world.wait_condition("2 of 3 members exist")


@pytest.mark.parametrize("minimum", [0, -5])
def test_an_object_with_min_of_zero_or_less_is_met_at_once(world, minimum):
    world.nodes(1, allocatable={"cpu": "1"})
    shape = SHAPES["sigs"]  # its CRD stores such values
    world.apply(shape.group("g", minimum))
    world.create_pods(shape.pods("g", 2))
    world.wait_bound(1)
    world.stays_bound(1)


def test_an_object_without_min_is_met_at_once(world):
    world.nodes(1)
    world.apply({**pod_group("g", 1, SIGS), "spec": {}})
    world.create_pods(SHAPES["sigs"].pods("g", 1))
    world.wait_bound(1)


def test_min_resources_hold_a_gang_of_min_1_until_the_whole_job_fits(world):
    world.nodes(1, allocatable={"cpu": "8"})
    group = {"minResources": {"cpu": "12", "memory": "1Gi"}}
    driver, *executors = world.gang("spark", 4, minimum=1, group=group, requests={"cpu": "2"})
    world.create_pod(driver)
    sentence = world.wait_condition("minResources ask for 12 cpu (8 free)")
    assert world.why("spark")["reason"] == "MinResourcesShort"
    assert world.conditions() == [("Unschedulable", sentence)]
    world.stays_unbound()
    more_nodes(world, allocatable={"cpu": "4"})
    world.wait_bound(1)
    world.create_pods(executors)
    world.wait_bound(4)


def test_pods_of_other_schedulers_are_never_ours_but_count_on_their_nodes(world):
    (node,) = world.nodes(1, allocatable={"cpu": "4"})
    world.create_pod(pod("foreign", scheduler="default-scheduler", nodeName=node))
    world.create_pod(pod("unscheduled", scheduler="default-scheduler"))
    world.create_pods(world.gang("g", 4))
    world.wait_condition("4 members must start together and 3 fit")
    assert "nodeName" not in world.pod("unscheduled")["spec"]
    assert world.pod("unscheduled")["status"].get("conditions") is None
    world.delete_pod("foreign")
    world.wait_bound(4, "gang=g")
    assert "nodeName" not in world.pod("unscheduled")["spec"]
