"""Default constraints that are kept by change are what working all of them out anew finds."""

import random

import pytest
from hypothesis import given

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import Where
from quorate.core.cluster.labels.neighbours import _selectors_of
from quorate.core.model import LabelSelector, Node, Owner, Pod, PodSpec, Requirement, policy
from quorate.core.model.changes import (
    NodeChanged,
    ObjectChanged,
    ObjectGone,
    PodBound,
    PodChanged,
    PodGone,
)
from quorate.core.model.profile import GANGS, KUBE_SCHEDULER
from quorate.core.model.selecting_objects import (
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from tests.property.seeds import drawn, seeds
from tests.unit.core.counted import selectors_in_use
from tests.unit.core.random_terms import random_terms

SPACES = ("a", "b")
KINDS = (Service, Service, Service, ReplicationController, ReplicaSet, StatefulSet)
OWNERS = (None, Owner("apps/v1", "ReplicaSet", "x"), Owner("apps/v1", "StatefulSet", "y"))


def selector(chance):
    """Most ask for one label, some for several, for any value, or for nothing."""
    found = []
    for key in chance.sample("pq", chance.choice([0, 1, 1, 1, 2])):
        operator = chance.choice(["In", "In", "In", "Exists"])
        values = tuple(chance.sample("01", chance.choice([1, 1, 2]))) if operator == "In" else ()
        found.append(Requirement(key, operator, values))
    return LabelSelector(tuple(found))


def pod(chance, number):
    spec = PodSpec((("cpu", 1),), **(random_terms(chance) if chance.random() < 0.3 else {}))
    return Pod(
        f"u{number}",
        chance.choice(SPACES),
        f"p{number}",
        chance.choice(["kube", "kube", "quorate", "other"]),
        spec,
        labels=tuple((key, chance.choice("01")) for key in "pq" if chance.random() < 0.8),
        owner=chance.choice(OWNERS),
        gates=("g",) if chance.random() < 0.2 else (),
    )


def move(chance, cluster, pods):
    what = chance.random()
    number = chance.randrange(8)
    if what < 0.3:
        kind, space, name = chance.choice(KINDS), chance.choice(SPACES), chance.choice("xy")
        if chance.random() < 0.7:
            found = selector(chance) if chance.random() < 0.9 else None
            cluster.apply(ObjectChanged(kind(space, name, found)))
        else:
            cluster.apply(ObjectGone(kind.__name__, space, name))
    elif what < 0.7:
        pods[number] = pod(chance, number)
        cluster.apply(PodChanged(pods[number]))
    elif what < 0.8:
        pods.pop(number, None)
        cluster.apply(PodGone(f"u{number}"))
    elif number in pods:
        entry = cluster.pods[f"u{number}"]
        if entry.where is Where.WAITING and chance.random() < 0.5:
            cluster.assume([entry], [0])
        else:
            cluster.apply(PodBound(f"u{number}", "n0"))


@drawn(200)
@given(seeds)
def test_constraints_selectors_and_touched_gangs_equal_a_recount(seed):
    chance = random.Random(seed)
    profiles = {"kube": KUBE_SCHEDULER, "quorate": GANGS}
    cluster = Cluster(("kube", "quorate"), profiles)
    cluster.apply(NodeChanged(Node("n0", (("cpu", 99), ("pods", 99)))))
    pods: dict[int, Pod] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "SPREAD_IDLE_MAX", chance.choice([0, 1, 32]))
        for _ in range(60):
            before = {uid: cluster.spread_defaults.of(e) for uid, e in cluster.pods.items()}
            cluster.take_news()
            move(chance, cluster, pods)
            wanted, neighbours = set(), cluster.neighbours
            for uid, entry in cluster.pods.items():
                found = ()
                if entry.where is Where.WAITING and not entry.pod.spec.spread:
                    profile = profiles[entry.pod.scheduler]
                    found = cluster.spread_defaults.constraints(entry.pod, profile)
                assert cluster.spread_defaults.of(entry) == found
                wanted.update(one.selector for one in found)
                if entry.where is Where.WAITING and before.get(uid, ()) != found:
                    assert entry.gang.key in cluster.touched
            assert wanted <= set(selectors_in_use(neighbours))
            if not policy.SPREAD_IDLE_MAX:
                own = {one for spec in neighbours._specs for one in _selectors_of(spec)}
                assert set(selectors_in_use(neighbours)) == wanted | own
