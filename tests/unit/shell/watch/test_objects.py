"""Which paths are watched, and which change each object makes when it comes and when it goes."""

import json

import pytest

from quorate.core.model import GangKey, PriorityClass, Queue
from quorate.core.model.changes import (
    GangChanged,
    GangGone,
    NodeChanged,
    NodeGone,
    ObjectChanged,
    ObjectGone,
    PodChanged,
    PodGone,
)
from quorate.dialects import Malformed
from quorate.shell.kube.paths import resource_path
from quorate.shell.watch.lookups import LOOKUPS
from quorate.shell.watch.objects import identity, watched_kinds

KINDS = watched_kinds(frozenset({"quorate"}))
PODS, NODES = KINDS["/api/v1/pods"], KINDS["/api/v1/nodes"]
SIGS = KINDS["/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups"]
OBJECT = {"metadata": {"namespace": "team-a", "name": "x", "uid": "u1"}}


def raw(**more):
    return json.dumps(OBJECT | more).encode()


def test_what_rules_look_up_comes_first_and_pods_follow_nodes():
    assert list(KINDS) == [
        *(resource_path(*one.resource[:3]) for one in LOOKUPS),
        "/api/v1/nodes",
        "/api/v1/pods",
        "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
        "/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups",
        "/apis/scheduling.volcano.sh/v1beta1/podgroups",
        "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    ]
    assert [kind.dialect for kind in KINDS.values() if kind.dialect] == [
        "x-k8s",
        "sigs",
        "volcano",
        "native",
    ]


def test_an_object_that_comes_is_a_change():
    assert isinstance(NODES.changed(raw()), NodeChanged)
    assert isinstance(PODS.changed(raw(spec={"containers": []})), PodChanged)
    assert isinstance(SIGS.changed(raw(spec={"minMember": 4})), GangChanged)


def test_an_object_that_goes_is_a_change_made_from_its_last_version():
    who = identity(raw(spec="broken"))
    assert NODES.gone(who) == NodeGone("x")
    assert PODS.gone(who) == PodGone("u1")
    assert SIGS.gone(who) == GangGone(GangKey("team-a", "sigs", "x"))


def test_an_unreadable_object_leaves_the_cores_sight_when_it_is_known_which_one():
    nobody = Malformed("broken")
    known = Malformed("broken", namespace="team-a", name="x", uid="u1")
    assert NODES.unreadable(known) == NodeGone("x", "broken")
    assert PODS.unreadable(known) == PodGone("u1")
    assert SIGS.unreadable(known) == GangGone(GangKey("team-a", "sigs", "x"))
    assert [kind.unreadable(nobody) for kind in KINDS.values()] == [None] * len(KINDS)


@pytest.mark.parametrize("broken", [b"", b"{}", b'{"metadata":{"name":null}}', b"[" * 100_000])
def test_an_object_without_a_name_is_malformed(broken):
    with pytest.raises(Malformed):
        identity(broken)


@pytest.mark.parametrize(
    ("status", "closed"),
    [
        ({}, False),
        ({"status": {"state": ""}}, False),
        ({"status": {"state": "Open", "running": 3}}, False),
        ({"status": {"state": "Unknown"}}, False),
        ({"status": {"state": "Closing"}}, True),
        ({"status": {"state": "Closed"}}, True),
    ],
)
def test_a_queue_is_closed_when_its_controller_says_so(status, closed):
    queues = KINDS["/apis/scheduling.volcano.sh/v1beta1/queues"]
    one = json.dumps({"metadata": {"name": "research"}, "spec": {"weight": 1}, **status}).encode()
    assert queues.changed(one) == ObjectChanged(Queue("research", closed=closed))
    assert queues.gone(identity(one)) == ObjectGone("Queue", "", "research")
    assert queues.optional


def test_a_priority_class_brings_its_value():
    classes = KINDS["/apis/scheduling.k8s.io/v1/priorityclasses"]
    one = {"metadata": {"name": "high"}, "value": 20, "globalDefault": False}
    raw_one = json.dumps(one).encode()
    assert classes.changed(raw_one) == ObjectChanged(PriorityClass("high", 20))
    for broken in ({"value": 2**31}, {"value": "high"}):
        with pytest.raises(Malformed):
            classes.changed(json.dumps(one | broken).encode())
