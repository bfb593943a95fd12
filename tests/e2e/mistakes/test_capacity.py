"""Goal: a gang without room is told in numbers why, and what the smallest change is.

Method: the public report's own case, and gangs that are larger than what the nodes have. The same
words are looked for in the condition, in the Event and in ``quorate why``.
"""

from tests.e2e.harness.workloads import case
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
