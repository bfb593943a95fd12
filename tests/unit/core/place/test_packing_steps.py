"""Packing by domain takes steps for what it looks at, and little more for more domains."""

from unittest.mock import patch

import numpy as np
import pytest

from quorate.core.model import policy
from quorate.core.model.steps import Steps
from quorate.core.place.packing import pack as packing_of
from quorate.core.place.packing.domains import Cells, Levels
from quorate.core.place.packing.one_by_one import place_one_by_one
from tests.unit.core.terms import apart, pods, spread
from tests.unit.core.world import World

JOB = {"job": "j"}
OWN = pods(**JOB)


def both(one, other):
    return {name: one.get(name, ()) + other.get(name, ()) for name in one | other}


def cells(codes):
    return Cells(codes, int(codes.max()) + 1)


def steps_of(domains, skew, count):
    """Deal out to rows in such domains, and return how many steps that takes."""
    steps, rows = Steps(10**9), len(domains[0])
    parts = [cells(codes) for codes in domains]
    levels = [
        Levels(np.zeros(one.number, np.int64), np.ones(one.number, bool), skew, False)
        for one in parts
    ]
    slots, order = np.full(rows, 9), np.arange(rows)
    placed = place_one_by_one(count, slots, order, list(zip(parts, levels, strict=True)), [], steps)
    assert placed.sum() == count
    return steps.taken


@pytest.mark.parametrize("skew", [1, 1000])
@pytest.mark.parametrize("domains", ["many", "few and many"])
def test_twice_the_nodes_and_pods_take_about_twice_the_steps(domains, skew):
    def taken(rows):
        row = np.arange(rows)
        pairs = row // 2
        return steps_of([pairs, row % (len(row) // 2 if domains == "many" else 3)], skew, rows // 4)

    assert taken(1600) < 2.5 * taken(800)
    assert taken(1600) < 600  # each cell for each pod would be 1600 * 400 looks


def racks(nodes=120):
    w = World()
    for i in range(nodes):
        w.node(f"n{i}", labels={"host": f"n{i}", "pair": f"p{i // 2}", "alt": f"a{i % 60}"})
    return w


def test_a_gang_that_takes_longer_than_a_turn_to_deal_out_starts_in_a_later_one(monkeypatch):
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", 50)
    w = racks()
    w.gang("job", 60, labels=JOB, spec=both(spread(OWN, by="pair"), spread(OWN, by="alt")))
    w.gang("other", 2)
    placed = {}
    for turn in range(40):
        binds = w.cycle()
        placed |= dict.fromkeys(binds, turn)
        if len(placed) == 62:
            break
    assert len(placed) == 62
    assert placed["job-0"] > placed["other-0"]


def test_a_gang_of_many_classes_that_keep_apart_ends_with_the_turn_and_starts_later(monkeypatch):
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", 100)  # a class takes some 46
    w = racks()
    gang = w.object("job", 12)
    for i in range(12):
        w.pod(f"p{i}", gang, cpu=1 + i / 100, labels=JOB, spec=apart(OWN, by="pair"))
    packed, turns = [], 0
    with patch.object(packing_of, "pack", wraps=packing_of.pack) as packs:
        binds = {}
        while not binds and turns < 40:
            before, turns = packs.call_count, turns + 1
            binds = w.cycle()
            packed.append(packs.call_count - before)
    assert len(binds) == 12
    assert max(packed[:4]) <= 6
    assert turns > 4
