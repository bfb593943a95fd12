"""What nominated pods cost those that yield to them: counted, and class by class."""

import random

import numpy as np
import pytest

from quorate.core.cluster.labels.neighbours import Column, Key
from quorate.core.model import HostPort, policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.model.steps import Steps
from quorate.core.place.one_pod.nominated import room_less_nominated
from quorate.core.room.promises import Promises
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.turn import planning
from tests.property.seeds import SEED
from tests.unit.core.terms import apart, pods
from tests.unit.core.world import World, binds_of, key

NODES = 4
KUBE = "kube"


def world():
    w = World(scheduler_names=("quorate", KUBE), profiles=((KUBE, KUBE_SCHEDULER),))
    for index in range(NODES):
        w.node(f"n{index}", cpu=8, labels={"host": f"n{index}"})
    return w


def nominate(w, name, node, **more):
    """Add a pod that waits for its victim on the node to be gone."""
    w.pod(name, scheduler=KUBE, priority=1000, nominated=node, **more)


def one_by_one(room, promised, w, *, attracted):
    """Take the room of one nominated pod after the other."""
    left = room.copy()
    for row, entries in promised.items():
        each = np.zeros(len(room.free), np.int64)
        each[row] = 1
        for entry in entries:
            matched = w.cluster.neighbours.matched(entry.label_set)
            pod_class = w.cluster.classes.variant(entry.pod_class, matched)
            (left.withhold if attracted else left.take)(pod_class, each)
    return left


@pytest.mark.parametrize("attracted", [False, True])
@pytest.mark.parametrize("number", range(15))
def test_class_by_class_takes_what_pod_by_pod_does(number, attracted):
    chance, w = random.Random(f"{SEED} {number}"), world()
    specs = (
        {},
        apart(pods(app="x"), by="host"),
        {"host_ports": (HostPort("TCP", "0.0.0.0", 80),)},
    )
    for index in range(chance.randrange(1, 12)):
        nominate(
            w,
            f"p{index}",
            f"n{chance.randrange(NODES)}",
            cpu=chance.choice([1, 2]),
            labels={"app": chance.choice("xy")},
            spec=chance.choice(specs),
        )
    by_pull = {"affinity": apart(pods(app="x"), by="host")["anti_affinity"]} if attracted else {}
    w.gang("job", 2, labels={"app": "x"}, spec={**apart(pods(app="x"), by="host"), **by_pull})
    promised = Promises.of(w.cluster).to_others(0)
    classes = [entry.pod_class for entry in w.cluster.gangs[key("job")].members.values()]
    room = Room(w.cluster.snapshot(), RuleCache())
    left = room_less_nominated(room, promised, classes, w.cluster)
    plain = one_by_one(room, promised, w, attracted=attracted)
    assert left.free.tolist() == plain.free.tolist()
    assert left.scored.tolist() == plain.scored.tolist()
    selectors = {one for c in classes for one in w.cluster.neighbours.deciding_selectors(c)}
    for selector in selectors:
        one = Key(Column.PODS, selector)
        assert left.counts(one).tolist() == plain.counts(one).tolist()
    for row in range(NODES):
        assert left.ports.on(row) == plain.ports.on(row)


@pytest.mark.parametrize("kind", ["single", "gang"])
def test_steps_are_taken_for_those_that_are_yielded_to(kind, monkeypatch):
    turns = []

    def steps(left):
        turns.append(Steps(left))
        return turns[-1]

    monkeypatch.setattr(planning, "Steps", steps)
    taken = []
    for nominated in (False, True):
        w = World(scheduler_names=("quorate", KUBE), profiles=((KUBE, KUBE_SCHEDULER),))
        for index in range(61):
            w.node(f"n{index}", cpu=8, labels={"host": f"n{index}"})
        for index in range(60 if nominated else 0):
            w.running(f"v{index}", f"n{index}", cpu=4, terminating=True, preempted=True)
            nominate(w, f"p{index}", f"n{index}", cpu=6)
        for _ in range(10):
            w.decide()
        turns.clear()
        if kind == "single":
            w.pod("late", scheduler=KUBE)
        else:
            w.gang("late", 2)
        assert {bind.node for bind in binds_of(w.decide())} == {"n60" if nominated else "n0"}
        taken.append(sum(one.taken for one in turns))
    assert taken[1] >= taken[0] + 60 // 10


def test_a_turn_ends_when_those_that_yield_have_used_its_steps(monkeypatch):
    w = world()
    for index in range(12):
        nominate(w, f"p{index}", f"n{index % NODES}", cpu=8)
    w.decide()
    for index in range(6):
        w.pod(f"late{index}", scheduler=KUBE)
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", 3)
    plan = w.decide()
    assert plan.wake_at_s == w.now_s
    assert 0 < len(plan.touched) < 6
