"""A mistake never ends in silence: each has its own reason, in every place where people look."""

import time

import pytest

from tests.e2e.harness.gang_shapes import SHAPES
from tests.e2e.harness.telling import is_told_everywhere
from tools.objects import GANG_LABEL, X_K8S, gang_pods, pod, pod_group
from tools.testing import wait_for


def forgets(world, reason: str) -> None:
    """The gang's pods are gone, and it counts no more."""
    world.delete_pods()
    wait_for(
        lambda: world.quorate.metric("quorate_waiting_gangs", reason=reason) == 0,
        f"no gang waits for {reason}",
    )


def test_a_label_of_another_era_names_the_key_to_use(world):
    world.nodes(1)
    world.apply(SHAPES["sigs"].group("pg1", 2))
    world.create_pods(gang_pods("pg1", 2))  # with the current API's label
    explanation = is_told_everywhere(
        world,
        "pg1",
        "PodGroupInOtherApi",
        "pg1 is one of scheduling.sigs.k8s.io/v1alpha1",
    )
    assert "use label pod-group.scheduling.sigs.k8s.io: pg1" in explanation["hint"]
    forgets(world, "PodGroupInOtherApi")


@pytest.mark.parametrize(
    ("place", "key", "remedy"),
    [
        ("labels", "scheduling.x-k8s.io/podgroup", f"{GANG_LABEL}: pg1"),
        ("labels", "scheduling.sigs.k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io: pg1"),
        ("annotations", GANG_LABEL, f"label {GANG_LABEL}: pg1"),
        ("labels", "scheduling.k8s.io/group-name", "annotation scheduling.k8s.io/group-name: pg1"),
    ],
)
def test_a_near_miss_of_a_label_names_the_key_to_use(world, place, key, remedy):
    world.nodes(1)
    world.apply(pod_group("pg1", 2))
    world.create_pod(pod("w-0", **{place: {key: "pg1"}}))
    is_told_everywhere(world, "w-0", "UnknownGangLabel", f"{key} is read by no scheduler; use ")
    assert remedy in world.why("w-0")["message"]


def test_a_missing_pod_group(world):
    world.nodes(1)
    world.create_pods(gang_pods("nowhere", 2))
    text = f"PodGroup nowhere ({X_K8S}) does not exist in namespace {world.namespace}"
    is_told_everywhere(world, "nowhere", "PodGroupNotFound", text)
    forgets(world, "PodGroupNotFound")


def test_a_pod_group_api_that_is_not_installed(world):
    world.nodes(1)
    world.create_pods(SHAPES["volcano"].pods("job", 2))
    explanation = is_told_everywhere(
        world,
        "job",
        "PodGroupApiNotInstalled",
        "this cluster does not serve scheduling.volcano.sh/v1beta1",
    )
    assert "CRD" in explanation["hint"]


def test_min_above_what_the_owner_makes(world):
    world.nodes(1)
    shape = SHAPES["x-k8s"]
    world.apply(shape.group("pg1", 5), shape.deployment("few", "pg1", 2))
    explanation = is_told_everywhere(
        world, "pg1", "OwnerMakesTooFew", "2 of 5 members exist; Deployment few makes 2"
    )
    assert explanation["hint"].startswith(
        f"kubectl -n {world.namespace} scale deployment few --replicas=5"
    )


def test_a_selector_that_no_node_meets(world):
    world.nodes(3, labels={"gpu": "a100"})
    world.create_pods(world.gang("g", 2, nodeSelector={"gpu": "h100"}))
    explanation = is_told_everywhere(
        world,
        "g",
        "NoNodeMatches",
        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
        condition="Unschedulable",
    )
    assert explanation["blockers"][0]["ruledOut"] == [
        {"message": "node(s) didn't match Pod's node affinity/selector", "nodes": 3}
    ]


TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"gang": "g"}}}
WITHOUT_CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def test_an_anti_affinity_of_a_running_pod_holds_what_it_selects(world):
    (node,) = world.nodes(1)
    term = {**TERM, "labelSelector": {"matchLabels": {"gang": "g"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    guard = pod("guard", scheduler="default-scheduler", nodeName=node, affinity=apart)
    world.create_pod(guard)
    world.create_pods(world.gang("g", 2))
    world.wait_condition("node(s) didn't satisfy existing pods anti-affinity rules")
    assert world.bound("gang=g") == 0
    world.delete_pod("guard")
    world.wait_bound(2, "gang=g")


def test_two_schedulers_that_act_for_one_name_are_told_of(world):
    """Nobody said so while they overfilled nodes."""
    (node,) = world.nodes(1)
    world.create_pods([pod("single", requests={"cpu": "999"}), *world.gang("g", 2)[:1]])
    wait_for(lambda: len(world.conditions()) == 2, "both wait")
    for name in ("single", "g-0"):
        world.bind(name, node)
        words = f"another scheduler bound pod {name} to node {node}: only one may act for"
        world.wait_event("BoundByAnother", words)


def versions(world) -> dict[str, str]:
    return {p["metadata"]["name"]: p["metadata"]["resourceVersion"] for p in world.pods()}


@pytest.mark.parametrize(
    "options",
    [{"requests": {"cpu": "99"}}, {"nodeSelector": {"no": "node"}}, WITHOUT_CLAIM],
)
def test_what_was_said_once_is_not_written_again(world, options):
    """The sentence names one member: always the same one, or each report would cause the next."""
    world.nodes(2)
    world.create_pods(world.gang("g", 40, **options))
    wait_for(lambda: len(world.conditions()) == 40, "all were told")

    def at_rest() -> dict[str, str]:
        world.settle()
        wait_for(lambda: world.quorate.metric("quorate_reports_queued") == 0, "all is written")
        world.settle()  # what was on its way by then has arrived
        return versions(world)

    before = at_rest()
    time.sleep(2.0)
    assert at_rest() == before
    assert len(world.events("FailedScheduling")) <= 80


def test_command_line_and_scheduler_name_the_same_pod_whatever_came_first(world):
    world.nodes(1, allocatable={"cpu": "8"})
    first, second = world.gang("g", 2, requests={"cpu": "9"})
    world.create_pods([second])
    world.wait_condition("1 of 2 members exist")
    world.create_pods([first])
    sentence = world.wait_condition("asks for 9 cpu")
    assert world.why("g")["message"] == sentence
