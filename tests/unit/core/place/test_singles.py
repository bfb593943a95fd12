"""Totals that are kept from pod to pod are given up when what they were made from is another thing.

The property of that name plays at random; these are the cases that it meets too seldom.
"""

import pytest

from quorate.core.model import PreferredTerm, Requirement, SelectorTerm, policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.place.one_pod.single import Singles
from tests.unit.core.one_by_one import OneByOne
from tests.unit.core.terms import pods, spread
from tests.unit.core.world import World


def world() -> World:
    w = World(scheduler_names=("quorate", "kube"), profiles=(("kube", KUBE_SCHEDULER),))
    w.scheduler.planner._singles = OneByOne()
    return w


def placed(w: World, name: str, **more) -> str:
    w.pod(name, scheduler="kube", **more)
    return w.cycle()[name]


def prefers(**weights):
    terms = (
        PreferredTerm(weight, SelectorTerm((Requirement("kind", "In", (kind,)),)))
        for kind, weight in weights.items()
    )
    return {"preferred_terms": tuple(terms)}


def test_scores_are_relative_to_the_nodes_that_are_left():
    w = world()
    w.node("best", cpu=1, labels={"kind": "a"})
    w.node("busy", cpu=8, labels={"kind": "b"})
    w.node("idle", cpu=8, labels={"kind": "c"})
    w.running("company", "busy", cpu=6, spec={"scored": (6000, 0)})
    spec = prefers(a=100, b=20, c=10) | {"scored": (1000, 0)}
    assert [placed(w, name, spec=spec) for name in "ab"] == ["best", "busy"]


def test_pods_that_came_while_nobody_looked_count_when_somebody_looks_again():
    w = world()
    w.node("n0", labels={"zone": "a"})
    w.node("n1", labels={"zone": "b"})
    keeps_off = spread(pods(app="web"), skew=1)
    assert placed(w, "first", spec=keeps_off) == "n0"
    w.delete("first")
    w.running("web-0", "n0", labels={"app": "web"}, cpu=0)
    w.running("web-1", "n0", labels={"app": "web"}, cpu=0)
    assert placed(w, "second", spec=keeps_off) == "n1"


@pytest.mark.parametrize(("bound", "kept"), [(3, 3), (4, 4), (5, 5), (6, 6), (7, 6), (0, 1)])
def test_so_many_classes_are_remembered_and_the_oldest_is_forgotten(bound, kept, monkeypatch):
    monkeypatch.setattr(policy, "TOTALS_CELLS_MAX", bound)
    w = world()
    w.node("n0", cpu=64)
    for cpu in range(1, 7):
        placed(w, f"pod-{cpu}", cpu=cpu)
    singles: Singles = w.scheduler.planner._singles
    newest = [cpu * 1000 for cpu in range(7 - kept, 7)]
    assert [dict(one.spec.requests)["cpu"] for one in singles._totals] == newest
