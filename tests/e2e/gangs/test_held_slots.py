"""The room of a lost member stays for its replacement: what people see of it, on a real API."""

import pytest

from tools.objects import GANG_LABEL, gang_pods, job, pod, pod_group
from tools.testing import wait_for

HOLD = "quorate.dev/hold-seconds"


TRAIN = pod("train", labels={"gang": "train", GANG_LABEL: "train"}, restartPolicy="Never")
"""It runs until it is deleted, on a whole node."""


@pytest.fixture
def full(world):
    """Return a function that fills the cluster with a started gang of 4; an older one waits."""

    def fill(**annotations):
        world.nodes(4, allocatable={"cpu": "1"})
        world.apply(pod_group("fresh", 1))  # its age is that of its object
        group = pod_group("train", 4)
        group["metadata"]["annotations"] = annotations
        world.apply(group, job("train", 4, TRAIN))
        wait_for(lambda: world.running("gang=train") == 4, "the gang runs")
        world.create_pods(gang_pods("fresh", 1))
        world.wait_condition("1 member must start now and 0 fit", "gang=fresh")
        return world

    return fill


def names(world, selector="gang=train"):
    return {p["metadata"]["name"] for p in world.pods(selector)}


def train(world) -> str:
    """Return the path of the gang's Job."""
    return world.path("jobs", "train", "batch/v1")


def kill_one(world) -> str:
    """Delete a member as a user does; return its node."""
    name, node = sorted(world.where("gang=train").items())[0]
    world.delete_pod(name)
    return node


def test_the_replacement_gets_the_room_though_an_older_gang_waits(full):
    world = full()
    before = names(world)
    node = kill_one(world)
    wait_for(lambda: len(names(world) - before) == 1, "the Job makes a replacement")
    (replacement,) = names(world) - before
    wait_for(lambda: world.where("gang=train").get(replacement) == node, "it has the room")
    assert world.bound("gang=fresh") == 0


def lose_for_good(world) -> str:
    """A member goes and nothing makes another: their owner is one that makes no pods."""
    orphan(world)
    owner = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "name": "train"}
    owner |= {"uid": world.group("train")["metadata"]["uid"], "controller": True}
    for name in names(world):
        world.patch_pod(name, {"metadata": {"ownerReferences": [owner]}})
    return kill_one(world)


def orphan(world):
    """Take the owner away from all members."""
    world.cluster.api("DELETE", f"{train(world)}?propagationPolicy=Orphan")
    wait_for(
        lambda: not any(p["metadata"].get("ownerReferences") for p in world.pods("gang=train")),
        "the pods are orphans",
    )


def test_a_held_slot_is_visible_everywhere(full):
    world = full()
    node = lose_for_good(world)
    message = world.wait_condition("holds room for gang", "gang=fresh")
    assert message.startswith("0/")
    assert (
        f"1 member must start now and 0 fit: node {node} holds room for gang "
        f"{world.namespace}/train until " in message
    )
    note = world.wait_event("SlotHeld", "room for 1 replacement is held until ")
    assert note.endswith(f"UTC on node {node}")
    assert world.why("train")["held"] == note
    why = world.why("fresh")
    assert (why["reason"], why["message"]) == ("RoomHeld", message)
    table = world.quorate_cli("gangs", "-n", world.namespace)
    assert "RoomHeld" in table.stdout
    wait_for(lambda: world.quorate.metric("quorate_held_slots") >= 1.0, "it is counted")
    assert world.bound("gang=fresh") == 0


def test_a_gang_of_higher_priority_takes_it(full):
    world = full()
    node = lose_for_good(world)
    world.wait_event("SlotHeld", node)
    world.apply(pod_group("urgent", 1))
    high = {"priorityClassName": "system-cluster-critical"}
    world.create_pods(gang_pods("urgent", 1, **high))
    wait_for(lambda: world.where("gang=urgent") == {"urgent-0": node}, "it has the room")
    world.wait_event("SlotReleased", "no room is held")
    assert not world.why("train")["held"]


def test_the_hold_ends_with_its_time_and_the_older_gang_is_placed(full):
    world = full(**{HOLD: "4"})
    node = lose_for_good(world)
    world.wait_event("SlotHeld", node)
    assert world.bound("gang=fresh") == 0
    wait_for(lambda: world.where("gang=fresh") == {"fresh-0": node}, "it has the room")


def test_nothing_is_held_for_a_member_that_nobody_would_make_again(full):
    world = full()
    orphan(world)
    node = kill_one(world)
    wait_for(lambda: world.where("gang=fresh") == {"fresh-0": node}, "it has the room at once")
