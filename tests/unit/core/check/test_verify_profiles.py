"""Verification holds to the rules of each pod's own profile: no more of them, and no fewer."""

import pytest
from msgspec.structs import replace

from quorate.core.check.verify import verify_gang
from quorate.core.model import (
    ClaimUse,
    HostPort,
    PodSelector,
    Requirement,
    SelectorTerm,
    SpreadConstraint,
)
from quorate.core.model.changes import ObjectChanged
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.model.selecting_objects import Service
from tests.unit.core.storage_world import StorageWorld, on
from tests.unit.core.terms import HOST, apart, labels, pods
from tests.unit.core.world import TEAM, World

WEB = {"app": "web"}
PORT = HostPort("TCP", "0.0.0.0", 80)
SELECTOR = {"node_selector": (("disk", "ssd"),)}


def world(**profile) -> World:
    profiles = (("kube", replace(KUBE_SCHEDULER, **profile)),)
    return World(scheduler_names=("quorate", "kube"), profiles=profiles)


@pytest.mark.parametrize(
    ("off", "node", "pod"),
    [
        ("TaintToleration", {"taints": ["a=b:NoSchedule"]}, {}),
        ("NodeUnschedulable", {"cordoned": True}, {}),
        ("NodeAffinity", {}, {"spec": SELECTOR}),
        ("NodeResourcesFit", {"cpu": 1}, {"cpu": 2}),
        ("NodePorts", {}, {"spec": {"host_ports": (PORT,)}}),
        (
            "InterPodAffinity",
            {"labels": {HOST: "n0"}},
            {"spec": apart(pods(app="web")), "labels": WEB},
        ),
    ],
)
def test_a_rule_that_a_profile_does_without_is_not_verified(off, node, pod):
    w = world(disabled=(off,))
    w.node("n0", **({"cpu": 4} | node))
    w.running("there", "n0", labels=WEB, spec={"host_ports": (PORT,)})
    w.pod("p", scheduler="kube", **({"cpu": 1} | pod))
    assert w.cycle() == {"p": "n0"}  # the world verifies every plan


@pytest.mark.parametrize(
    "ignored",
    [{"ignored_resources": ("example.com/x",)}, {"ignored_resource_groups": ("example.com",)}],
)
def test_a_resource_that_a_profile_ignores_is_not_verified(ignored):
    w = world(**ignored)
    w.node("n0", cpu=4)
    w.pod("p", scheduler="kube", requests={"example.com/x": 2})
    assert w.cycle() == {"p": "n0"}


def test_volumes_of_pods_whose_profile_does_not_look_at_them_are_not_verified():
    profiles = (("kube", replace(KUBE_SCHEDULER, disabled=("VolumeBinding",))),)
    w = StorageWorld(scheduler_names=("quorate", "kube"), profiles=profiles)
    w.labelled_node("n0", cpu=4)
    w.volume("v", affinity=on(HOST, "elsewhere"))
    w.claim("c", volume="v", bound=True)
    w.pod("p", scheduler="kube", claims=(ClaimUse("c"),))
    assert w.cycle() == {"p": "n0"}


def planned(w: World):
    w.pod("p", scheduler="kube", cpu=1, labels=WEB)
    (gang,) = w.scheduler.decide(w.now_s).gangs
    assert verify_gang(gang, w.cluster) == []
    return gang


def test_affinity_that_a_profile_adds_is_verified():
    term = SelectorTerm((Requirement("disk", "In", ("ssd",)),))
    w = world(added_required=(term,))
    w.node("n0", cpu=4, labels={"disk": "ssd"})
    gang = planned(w)
    w.node("n0", cpu=4)
    assert verify_gang(gang, w.cluster) == ["node n0 does not match the required node affinity"]


def test_hard_spread_that_a_profile_has_by_default_is_verified():
    hard = SpreadConstraint(1, HOST, hard=True, selector=PodSelector((), None))
    w = world(default_spread=(hard,))
    for name in ("n0", "n1"):
        w.node(name, cpu=4, labels={HOST: name})
    w.observe(ObjectChanged(Service(TEAM, "web", labels(app="web"))))
    w.running("first", "n1", labels=WEB)
    gang = planned(w)
    assert gang.binds[0].node == "n0"
    w.delete("first")
    w.running("second", "n0", labels=WEB)
    assert verify_gang(gang, w.cluster) == [f"pod p would not be spread over {HOST}, on node n0"]
