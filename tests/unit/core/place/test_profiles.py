"""What people get of a profile: pods of no gang spread or packed, on preferred nodes first."""

import pytest

from quorate.core.model import (
    Owner,
    PreferredTerm,
    Requirement,
    SelectorTerm,
    WeightedPodTerm,
    policy,
)
from quorate.core.model.profile import Profile
from tests.unit.core.terms import near, pods, spread
from tests.unit.core.world import World

KUBE = "default-scheduler"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB = Owner("apps/v1", "ReplicaSet", "web")


def world(packing="least-allocated", nodes=4, cpu=8) -> World:
    profiles = ((KUBE, Profile(packing=packing)),)
    w = World(scheduler_names=("quorate", KUBE), profiles=profiles)
    for number in range(nodes):
        labels = {HOST: f"n{number}", ZONE: f"z{number % 2}"}
        w.node(f"n{number}", cpu=cpu, labels=labels)
    return w


def places(w: World, names, **fields) -> list[str]:
    fields = {"cpu": 1, "spec": {"scored": (1000, 0)}} | fields
    for name in names:
        w.pod(name, scheduler=KUBE, **fields)
    placed = w.cycle()
    return [placed[name] for name in names]


@pytest.mark.parametrize(("packing", "used"), [("least-allocated", 4), ("most-allocated", 1)])
def test_a_profile_spreads_pods_over_nodes_or_packs_them(packing, used):
    assert len(set(places(world(packing), "abcd"))) == used


def test_a_preferred_node_comes_before_an_emptier_one():
    w = world()
    w.node("ssd", cpu=8, labels={"disk": "ssd"})
    w.running("busy", "ssd", cpu=4, spec={"scored": (4000, 0)})
    term = SelectorTerm((Requirement("disk", "In", ("ssd",)),))
    assert places(w, ["p"], spec={"preferred_terms": (PreferredTerm(10, term),)}) == ["ssd"]


def test_a_node_with_a_soft_taint_comes_last():
    w = world(nodes=1)
    w.node("tainted", cpu=64, taints=["a=b:PreferNoSchedule"])
    assert places(w, "ab") == ["n0", "n0"]


def test_the_pods_that_are_there_count_for_preferred_affinity_and_soft_spread():
    w = world()
    w.running("web-0", "n2", cpu=6, labels={"app": "web"}, spec={"scored": (6000, 0)})
    soft = spread(pods(app="web"), by=HOST, hard=False)
    assert "n2" not in places(w, "abc", labels={"app": "web"}, spec=soft | {"scored": (1000, 0)})
    required = near(pods(app="web"), by=HOST)["affinity"]
    prefers = {"preferred_affinity": (WeightedPodTerm(100, required[0]),)}
    w = world()
    w.running("web-0", "n2", cpu=6, labels={"app": "web"}, spec={"scored": (6000, 0)})
    assert places(w, ["p"], spec=prefers) == ["n2"]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_replicas_are_spread_over_nodes_and_zones_although_others_have_less_to_do(kind):
    """Without their labels all would go to the two large nodes, which stay emptier."""
    w = world(nodes=0)
    for number in range(4):
        labels = {HOST: f"n{number}", ZONE: f"z{number // 2}"}
        w.node(f"n{number}", cpu=100 if number < 2 else 10, labels=labels)
    owner = Owner("apps/v1", kind, "web")
    for number in range(4):
        labels = {"app": "web", "apps.kubernetes.io/pod-index": str(number)}
        w.pod(f"web-{number}", scheduler=KUBE, owner=owner, labels=labels, cpu=1)
    assert sorted(w.cycle().values()) == ["n0", "n1", "n2", "n3"]


@pytest.mark.parametrize(
    "fields",
    [
        {"owner": None},
        {"owner": Owner("batch/v1", "Job", "web")},
        {"labels": {}},
        {"spec": spread(pods(app="other"), hard=False)},
    ],
)
def test_others_and_those_with_constraints_of_their_own_are_not(fields):
    w = world(nodes=2, cpu=10)
    w.node("large", cpu=1000, labels={HOST: "large", ZONE: "z0", "zone": "a"})
    fields = {"owner": WEB, "labels": {"app": "web"}} | fields
    spec = {"scored": (1000, 0)} | fields.pop("spec", {})
    assert set(places(w, "abc", spec=spec, **fields)) == {"large"}


def test_a_profile_that_packs_does_not_spread_replicas():
    w = world("most-allocated")
    assert len(set(places(w, "abcd", owner=WEB, labels={"app": "web"}))) == 1


def test_labels_stay_counted_while_no_replica_waits_and_of_many_the_longest_idle_go(monkeypatch):
    monkeypatch.setattr(policy, "ALIKE_IDLE_MAX", 2)
    w = world()
    for number in range(4):
        places(w, [f"p{number}"], owner=WEB, labels={"app": f"a{number}"})
    assert w.cluster.neighbours.selectors_in_use == 2
    places(w, ["again"], owner=WEB, labels={"app": "a3"})
    assert w.cluster.neighbours.selectors_in_use == 2
