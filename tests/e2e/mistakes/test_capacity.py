"""Goal: a gang without room is told in numbers why, and what the smallest change is.

Method: the public report's own case, and gangs that are larger than what the nodes have. The same
words are looked for in the condition, in the Event and in ``quorate why``.
"""

from tests.e2e.harness.workloads import case
from tools.objects import pod
from tools.testing import wait_for

GPU = "nvidia.com/gpu"
RENEWED_S = 90.0
"""A reason is said again with other counts 30 s after it was said; on a loaded machine later."""


def gpu_nodes(world, count: int) -> list[str]:
    world.nodes(1, prefix="cpu-", allocatable={"cpu": "4"})
    return world.nodes(count, prefix="gpu-", allocatable={"cpu": "32", GPU: "8"})


def is_told(world, name: str, text: str) -> str:
    """Look for the text in condition, Event and command line; return the hint."""
    world.wait_condition(text)
    said = world.why(name)
    assert text in said["message"]
    assert said["reason"] == "NotEnoughRoom"
    assert text in world.wait_event("FailedScheduling", text)
    assert world.bound(f"gang={name}") == 0
    return said["hint"]


def test_a_cordoned_node_is_named_and_the_condition_follows_the_next_cordon(world):
    """It was told of a node that is full of its own members, then of a node without GPUs."""
    gpu_nodes(world, 2)
    world.cordon("gpu-1")
    world.apply(*case("14-cordon.yaml"))
    told = world.wait_condition("2 members must start together and 1 fit")
    assert told.endswith(
        f"needs 12 {GPU}; the nodes that it may use have 16, 8 free, 6 free and cordoned; "
        f"the rest is held by pod {world.namespace}/old (2)"
    )
    assert world.wait_event("FailedScheduling", told) == told
    said = world.why("both")
    assert (said["message"], said["hint"]) == (told, "uncordon gpu-1")
    world.cordon("gpu-0")
    wait_for(lambda: world.why("both")["hint"] == "uncordon gpu-0 and gpu-1", "both are named")
    assert all(not one.get("nearestMiss") for one in world.why("both")["blockers"])
    followed = "2 members must start together and 0 fit"
    wait_for(
        lambda: any(followed in message for _, message in world.conditions()),
        "the condition follows the cordon",
        RENEWED_S,
    )
    for node in ("gpu-0", "gpu-1"):
        world.uncordon(node)
    world.wait_bound(3)


def test_a_gang_larger_than_the_cluster_can_never_start_here(world):
    gpu_nodes(world, 4)
    world.create_pods(world.gang("large", 40, requests={GPU: "8"}))
    hint = is_told(
        world,
        "large",
        "40 members must start together and 4 fit: it can never start here: "
        f"needs 320 {GPU}; the nodes that it may use have 32, 0 in use",
    )
    assert hint == f"add nodes with 288 {GPU}, ask for less, or lower min"
    assert not any(one.get("nearestMiss") for one in world.why("large")["blockers"])


def test_empty_nodes_are_counted_as_they_are(world):
    """It said "16 Insufficient cpu", counted when 15 members were placed in thought."""
    world.nodes(15, allocatable={"cpu": "4"})
    world.nodes(1, prefix=f"{world.namespace}-small-", allocatable={"cpu": "2"})
    world.create_pods(world.gang("g", 16, requests={"cpu": "4"}))
    is_told(
        world,
        "g",
        "0/16 nodes are available: 1 Insufficient cpu, 15 Insufficient cpu once 15 members are "
        "placed. 16 members must start together and 15 fit: it can never start here: needs 64 cpu; "
        "the nodes that it may use have 62, 0 in use",
    )


def test_a_topology_key_that_no_node_has_is_named(world):
    """It said that a node lacks GPUs, while all nodes were empty."""
    gpu_nodes(world, 2)
    key = "topology.kubernetes.io/zome"
    spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {"gang": "g"}}
    options = {"requests": {GPU: "8"}, "topologySpreadConstraints": [spread]}
    world.create_pods(world.gang("g", 2, **options))
    told = world.wait_condition(f"topologyKey is {key}, a label that no node has")
    assert world.wait_event("FailedScheduling", told) == told
    said = world.why("g")
    assert (said["reason"], said["message"]) == ("NoNodeMatches", told)
    assert said["hint"] == "correct that field, or give nodes that label"


def test_who_holds_the_room_is_told_the_largest_first(world):
    gpu_nodes(world, 2)
    world.create_pods(world.gang("big", 3, requests={GPU: "4"}))
    world.wait_bound(3, "gang=big")
    world.create_pod(pod("small", requests={GPU: "1"}))
    world.wait_bound(1 + 3)
    world.create_pods(world.gang("late", 2, requests={GPU: "8"}))
    name = world.namespace
    hint = is_told(
        world,
        "late",
        f"needs 16 {GPU}; the nodes that it may use have 16, 3 free; "
        f"the rest is held by gang {name}/big (12) and pod {name}/small (1)",
    )
    assert hint.startswith("free or add room: node gpu-")


def test_min_resources_count_the_nodes_that_the_members_may_use(world):
    """min is 1: on the room of a tainted node half of the gang would have started."""
    taint = {"key": "dedicated", "value": "infra", "effect": "NoSchedule"}
    world.nodes(1, prefix="open-", allocatable={"cpu": "4"})
    world.nodes(1, prefix="closed-", allocatable={"cpu": "4"}, taints=[taint])
    world.create_pods(
        world.gang("g", 2, 1, requests={"cpu": "4"}, group={"minResources": {"cpu": "8"}})
    )
    told = world.wait_condition("minResources ask for 8 cpu (4 free where its members may run)")
    assert world.wait_event("FailedScheduling", told) == told
    said = world.why("g")
    assert (said["reason"], said["message"]) == ("MinResourcesShort", told)
    world.stays_unbound("gang=g")
    world.nodes(1, prefix="more-", allocatable={"cpu": "4"})
    world.wait_bound(2, "gang=g")
