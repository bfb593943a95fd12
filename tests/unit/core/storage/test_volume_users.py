"""Pods that use volumes: who is woken by what, and what is given back."""

import pytest

from quorate.core.model import ClaimUse, Owner
from quorate.core.model.storage import CSINode, Volume
from tests.unit.core.storage_world import DRIVER, nodes_of, planned, prepared
from tests.unit.core.volume_world import (
    MANY,
    bound,
    classes_of,
    gang,
    world,
)

# Who is woken


def test_other_limits_wake_the_pods_of_that_driver_alone_and_only_when_they_grow():
    w = world("n0")
    w.limit("n0", 0)
    w.put(CSINode("n0", ((DRIVER, 0), ("other.csi", 0))))
    bound(w, "data")
    which = gang(w, "g", 1, "data")
    plain = gang(w, "plain", 1, cpu=99)
    w.decide()
    for limits, is_woken in (
        (((DRIVER, 0), ("other.csi", 5)), False),
        (((DRIVER, 0),), False),
        (((DRIVER, 0), ("other.csi", 5)), False),
        (((DRIVER, 3), ("other.csi", 5)), True),
    ):
        w.put(CSINode("n0", limits))
        plan = w.decide(1)
        assert w.tries(plan, which) == is_woken
        assert not w.tries(plan, plain)
    w.settle(plan)
    w.decide(1)
    w.put(CSINode("n0", ()))
    assert not w.tries(w.decide(1), which)


def test_a_volume_that_comes_to_a_full_node_wakes_those_who_share_it():
    w = world("n0")
    w.limit("n0", 0)
    bound(w, "data")
    which = gang(w, "g", 1, "data")
    assert not nodes_of(w.decide())
    w.running("r", "n0", claims=(ClaimUse("data"),))
    w.put(CSINode("n0", ((DRIVER, 0), ("other.csi", 1))))
    assert w.tries(w.decide(1), which)


def test_one_more_pod_that_shares_a_claim_wakes_the_others_only_at_first():
    w = world("n0", cpu=1)
    bound(w, "data")
    which = gang(w, "g", 2, "data")
    w.decide()
    w.pod("x", cpu=9, claims=(ClaimUse("data"),))
    assert not w.tries(w.decide(1), which)
    w.delete("x")
    assert not w.tries(w.decide(1), which)


def test_a_volume_that_a_failed_plan_gives_back_wakes_those_who_lack_one():
    w = world("n0", cpu=1)
    w.volume("pv-1")
    w.claiming("one", 1, storage_class="local")
    plan = w.decide()
    w.labelled_node("n1", cpu=8)
    other = w.claiming("two", 1, storage_class="local", cpu=8)
    assert not w.decide(1).preparing
    w.refused(plan)
    plan = w.decide(1)  # n0 has room again, which is too small for the other one
    w.undone(plan)
    assert w.tries(plan, other)


# One decision


@pytest.mark.parametrize("modes", [MANY, ("ReadWriteOnce",)])
@pytest.mark.parametrize("storage_class", ["fast", "local"])
def test_gangs_of_one_decision_prepare_a_claim_that_they_share_in_the_same_way(
    modes, storage_class
):
    w = world("n0", "n1", cpu=4)
    w.volume("pv-1")
    w.volume("pv-2")
    w.claim("shared", access_modes=modes, storage_class=storage_class)
    for name in ("a", "b"):
        gang(w, name, 2, "shared")
    plan = w.decide()
    assert len(plan.preparing) == 2
    [(node, volume)] = {(one.node, one.volume) for one in prepared(plan)}
    assert volume == ("pv-1" if storage_class == "local" else "")
    assert w.scheduler.verified(plan) == (plan, [])
    assert storage_class == "local" or set(planned(plan).values()) == {node}


# Sizes


def test_columns_of_drivers_go_with_their_last_volume_and_their_last_limit():
    w = world("n0")
    for index in range(50):
        w.put(CSINode("n0", ((f"d{index}.csi", 3),)))
    counts = w.cluster.storage.nodes
    assert list(counts.limits) == ["d49.csi"]
    w.volume("pv", phase="Bound")
    w.claim("c", volume="pv", bound=True)
    w.running("r", "n0", claims=(ClaimUse("c"),))
    for index in range(50):
        w.put(Volume("pv", phase="Bound", driver=f"d{index}.csi", handle="pv"))
    assert list(counts.counts) == ["d49.csi"]
    w.lose_node("n0")
    assert not counts.limits
    assert not counts.counts
    w.labelled_node("n0")
    assert list(counts.limits) == list(counts.counts) == ["d49.csi"]
    w.gone("CSINode", "n0")
    w.delete("r")
    assert not counts.limits
    assert not counts.counts


def test_a_replacement_and_one_more_member_prepare_a_claim_that_they_share_once():
    w = world("n0")
    w.volume("pv-1")
    w.claim("shared", storage_class="local")
    which = w.object("g", 2)
    for index in (0, 1):
        w.pod(f"g-{index}", which, owner=Owner("example.com/v1", "Thing", "g"))
    assert w.cycle() == {"g-0": "n0", "g-1": "n0"}
    w.edit("g-1", node="n0", phase="Running")
    w.edit("g-1", terminating=True)
    w.decide()
    w.delete("g-1")
    for index in (2, 3):  # room is held for the first one alone
        w.pod(f"g-{index}", which, cpu=index - 1, claims=(ClaimUse("shared"),))
    plan = w.decide()
    [part] = plan.preparing
    assert [len(bind.prepare) for bind in part.binds] == [1, 0]
    assert w.scheduler.verified(plan) == (plan, [])


def test_pods_with_the_same_volumes_share_what_follows_from_these():
    w = world()
    bound(w, "data")
    which = gang(w, "g", 5, "data")
    [pod_class] = classes_of(w, which)
    users = w.cluster.storage.users.values()
    assert len({id(user.volume_set) for user in users}) == 1
    assert all(user.volume_set.volume_needs is pod_class.volume_needs for user in users)
    w.edit_claim("data", size=7)
    assert next(iter(users)).volume_set.volume_needs is None
    w.delete(*[f"g-{index}" for index in range(5)])
    assert not w.cluster.storage._users._volume_sets


def test_a_claim_of_one_pod_at_a_time_starts_one_pod():
    w = world("n1")
    w.claim("one", access_modes=("ReadWriteOncePod",), storage_class="local", volume="pv-1")
    w.volume("pv-1", phase="Bound")
    w.edit_claim("one", bound=True)
    for index in range(2):
        w.pod(f"solo-{index}", claims=(ClaimUse("one"),))
    plan = w.decide()
    assert len(nodes_of(plan)) == 1
    w.settle(plan)
    [started] = nodes_of(plan)
    [waiting] = {"solo-0", "solo-1"} - {started}
    w.delete(started)
    assert nodes_of(w.decide(1)) == {waiting: "n1"}
