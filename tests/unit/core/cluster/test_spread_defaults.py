"""Default spreading: worked out when pods or their owners change, so that planning only reads."""

import pytest

from quorate.core.check.invariants import check_all
from quorate.core.cluster.labels.spread_defaults import SYSTEM_DEFAULTS
from quorate.core.model import (
    LabelSelector,
    Owner,
    PodSelector,
    Requirement,
    SpreadConstraint,
    policy,
)
from quorate.core.model.changes import ObjectChanged, ObjectGone
from quorate.core.model.profile import KUBE_SCHEDULER, Profile
from quorate.core.model.selecting_objects import ReplicaSet, Service, StatefulSet
from quorate.core.turn.cycle import members_of
from tests.unit.core.counted import columns_that_count, selectors_in_use
from tests.unit.core.world import TEAM, World

KUBE = "kube"
ZONE = "zone"
HARD = Profile(
    default_spread=(SpreadConstraint(1, ZONE, hard=True, selector=PodSelector((), None)),)
)


def world(profile=KUBE_SCHEDULER):
    w = World(scheduler_names=(KUBE, "quorate"), profiles=((KUBE, profile),))
    w.node("n0", cpu=2, labels={"kubernetes.io/hostname": "n0", ZONE: "a"})
    return w


def selecting(**labels):
    return LabelSelector(tuple(Requirement(k, "In", (v,)) for k, v in sorted(labels.items())))


def service(w, name, **labels):
    w.observe(ObjectChanged(Service(TEAM, name, selecting(**labels))))


def spread_of(w, name):
    return w.cluster.spread_defaults.of(w.cluster.pods[f"uid-{name}"])


def held(w):
    """Return the labels that selectors in use ask for."""
    selectors = (one.labels for one in selectors_in_use(w.cluster.neighbours))
    return {tuple(one.values[0] for one in found.requirements) for found in selectors}


@pytest.mark.parametrize("services", [256, 257, 300])
def test_any_number_of_owners_may_have_waiting_pods(services):
    w = world()
    for i in range(services):
        service(w, f"s{i}", app=f"a{i}")
        w.pod(f"p{i}", cpu=64, labels={"app": f"a{i}"}, scheduler=KUBE)
    assert w.cycle() == {}
    w.pod("small", labels={"app": "a0"}, scheduler=KUBE)
    assert w.cycle(after_s=1) == {"small": "n0"}
    assert w.cycle(after_s=1) == {}
    assert len(held(w)) == services


def test_a_selector_is_held_while_a_pod_that_it_spreads_waits(monkeypatch):
    monkeypatch.setattr(policy, "SPREAD_IDLE_MAX", 0)
    w = world()
    service(w, "web", app="web")
    assert held(w) == set()
    for i in range(3):
        w.pod(f"p{i}", labels={"app": "web"}, scheduler=KUBE)
    assert held(w) == {("web",)}
    assert len(w.cycle()) == 2
    assert held(w) == {("web",)}
    w.delete("p2")
    assert held(w) == set()
    assert w.cluster.neighbours.is_idle
    assert not columns_that_count(w.cluster.neighbours)


@pytest.mark.parametrize(("kinds", "kept"), [(1, 1), (2, 2), (3, 2)])
def test_so_many_kinds_stay_while_none_of_them_waits(kinds, kept, monkeypatch):
    monkeypatch.setattr(policy, "SPREAD_IDLE_MAX", 2)
    w = world()
    for i in range(kinds):
        service(w, f"s{i}", app=f"a{i}")
        w.pod(f"p{i}", labels={"app": f"a{i}"}, scheduler=KUBE)
    w.delete(*(f"p{i}" for i in range(kinds)))
    assert held(w) == {(f"a{i}",) for i in range(kinds - kept, kinds)}
    assert len(w.cluster.spread_defaults._kinds) == kept
    w.pod("again", labels={"app": f"a{kinds - 1}"}, scheduler=KUBE)
    assert [one.max_skew for one in spread_of(w, "again")] == [3, 5]


def test_pods_with_their_own_constraints_or_packed_as_gangs_have_none():
    w = world()
    service(w, "web", app="web")
    own = SpreadConstraint(2, ZONE, hard=False, selector=PodSelector((TEAM,), selecting(x="y")))
    w.pod("own", labels={"app": "web"}, scheduler=KUBE, spec={"spread": (own,)})
    w.pod("packed", labels={"app": "web"})
    w.pod("other", labels={"app": "db"}, scheduler=KUBE)
    assert spread_of(w, "own") == spread_of(w, "packed") == spread_of(w, "other") == ()
    assert held(w) == {("y",)}


def test_a_service_that_comes_changes_or_goes_has_its_pods_looked_at_again():
    w = world()
    w.pod("big", cpu=64, labels={"app": "web"}, scheduler=KUBE)
    w.pod("other", cpu=64, labels={"app": "db"}, scheduler=KUBE)
    big = w.cluster.pods["uid-big"].gang.key
    other = w.cluster.pods["uid-other"].gang.key
    w.decide()
    for change, labels in (
        (ObjectChanged(Service(TEAM, "s", selecting(app="web"))), [("web",)]),
        (ObjectChanged(Service(TEAM, "s", selecting(app="no"))), []),
        (ObjectChanged(Service(TEAM, "s", selecting(app="web"))), [("web",)]),
        (ObjectGone("Service", TEAM, "s"), []),
    ):
        w.observe(change)
        assert held(w) == set(labels)
        assert bool(spread_of(w, "big")) == bool(labels)
        plan = w.decide(1)
        assert w.tries(plan, big)
        assert not w.tries(plan, other)
    w.observe(ObjectChanged(Service("elsewhere", "s", selecting(app="web"))))
    assert not w.tries(w.decide(1), big)


def test_a_waiting_pod_is_placed_by_the_service_that_goes():
    w = world(HARD)
    w.node("n1", cpu=0, labels={ZONE: "b"})
    service(w, "web", app="web")
    w.running("r", "n0", labels={"app": "web"})
    w.pod("p", labels={"app": "web"}, scheduler=KUBE)
    assert w.cycle() == {}
    w.observe(ObjectGone("Service", TEAM, "web"))
    assert w.cycle(after_s=1) == {"p": "n0"}


def test_the_selectors_of_services_and_of_the_controller_are_joined():
    w = world()
    service(w, "a", app="web")
    service(w, "b", tier="front")
    service(w, "c", app="web", tier="back")
    w.observe(ObjectChanged(ReplicaSet(TEAM, "web-7", selecting(hash="7"))))
    w.observe(ObjectChanged(StatefulSet(TEAM, "web-7", selecting(no="no"))))
    labels = {"app": "web", "tier": "front", "pod-template-hash": "7"}
    w.pod("p", labels=labels, scheduler=KUBE, owner=Owner("apps/v1", "Deployment", "web"))
    [host, zone] = spread_of(w, "p")
    assert host.selector == zone.selector
    keys = [one.key for one in host.selector.labels.requirements]
    assert keys == ["app", "hash", "tier"]
    assert [one.topology_key for one in (host, zone)] == [
        one.topology_key for one in SYSTEM_DEFAULTS
    ]


def test_members_of_one_spec_with_other_labels_are_spread_by_their_own_services():
    w = world()
    service(w, "zero", index="0")
    which = w.object("set", 2)
    for i in range(2):
        w.pod(f"set-{i}", which, cpu=64, labels={"index": str(i)}, scheduler=KUBE)
    members = members_of(w.cluster.gangs[which], w.cluster)
    assert sorted(len(pod_class.spread) for pod_class in members) == [0, 2]


def test_planning_and_explaining_do_not_change_what_is_counted():
    w = world()
    for i in range(5):
        service(w, f"s{i}", app=f"a{i}")
        w.pod(f"p{i}", cpu=64, labels={"app": f"a{i}"}, scheduler=KUBE)
    neighbours = w.cluster.neighbours

    def seen():
        counted = {key: neighbours.column(key).tolist() for key in columns_that_count(neighbours)}
        in_use = [neighbours.selector_id(one) for one in selectors_in_use(neighbours)]
        return counted, neighbours.log.position, in_use

    before = seen()
    w.decide()
    w.why(w.cluster.pods["uid-p0"].gang.key)
    w.decide(1)
    assert seen() == before
    assert check_all(w.scheduler, w.now_s) == []


def test_what_a_class_looks_at_is_asked_also_when_nobody_counts_it(monkeypatch):
    monkeypatch.setattr(policy, "SPREAD_IDLE_MAX", 0)
    w = world()
    service(w, "web", app="web")
    w.pod("p", cpu=64, labels={"app": "web"}, scheduler=KUBE)
    gang = w.cluster.pods["uid-p"].gang
    [pod_class] = members_of(gang, w.cluster)
    assert len(w.cluster.neighbours.deciding_selectors(pod_class)) == 1
    w.delete("p")
    assert w.cluster.neighbours.deciding_selectors(pod_class) == pod_class.matched
