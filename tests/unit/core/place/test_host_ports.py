"""Host ports are looked up, not compared pair by pair; the check finds those taken meanwhile."""

import random

import numpy as np
import pytest

from quorate.core.check.verify import verify_gang
from quorate.core.model import HostPort
from quorate.core.model.steps import Steps
from quorate.core.room.port_room import PortRoom
from quorate.core.turn import planning
from tests.property.seeds import SEED
from tests.unit.core.world import World, binds_of

ADDRESSES = ("0.0.0.0", "10.0.0.1", "10.0.0.2")
ROWS = 6


def some_ports(chance):
    every = [HostPort(p, ip, n) for p in ("TCP", "UDP") for ip in ADDRESSES for n in (80, 81, 82)]
    return tuple(sorted(chance.sample(every, chance.randrange(4))))


def conflict(mine, theirs):
    """The rule itself, pair by pair."""
    return any(one.conflicts(other) for one in mine for other in theirs)


@pytest.mark.parametrize("world", range(50))
def test_rows_where_ports_were_taken_are_found_and_copies_are_their_own(world):
    chance = random.Random(f"{SEED} {world}")
    rooms = [(PortRoom(), [])]
    for _ in range(12):
        room, taken = chance.choice(rooms)
        if chance.random() < 0.3:
            rooms.append((room.copy(), list(taken)))
        ports, rows = some_ports(chance), chance.sample(range(ROWS), chance.randrange(1, 4))
        room.take(ports, np.array(sorted(rows)))
        taken.append((ports, rows))
    for room, taken in rooms:
        wanted = some_ports(chance)
        there = {row for ports, rows in taken if conflict(wanted, ports) for row in rows}
        assert {row for rows in room.holding(wanted) for row in rows.tolist()} == there
        for row in range(ROWS):
            on = {port for ports, rows in taken if row in rows for port in ports}
            assert room.on(row) == on
            for port in wanted:
                assert room.has(row, port) == conflict((port,), on)


@pytest.mark.parametrize("world", range(50))
def test_a_check_finds_the_ports_that_others_took_meanwhile(world):
    chance = random.Random(f"{SEED} {world}")
    w = World()
    w.node("n0", pods=10)
    mine = some_ports(chance)
    w.gang("job", 1, spec={"host_ports": mine})
    (gang,) = w.scheduler.decide(w.now_s).gangs
    held = []
    for index in range(3):
        held += (ports := some_ports(chance))
        w.running(f"rival-{index}", "n0", spec={"host_ports": ports})
    twice = dict.fromkeys(port.port for port in mine if conflict((port,), held))
    texts = [f"node n0 would give out host port {port} twice" for port in twice]
    assert verify_gang(gang, w.cluster) == list(dict.fromkeys(texts))


def test_no_two_ports_are_compared_and_steps_are_taken_for_all(monkeypatch):
    """A gang of 8 pods with 64 ports each on one node: 512 ports, and 131,000 pairs of them."""
    compared, turns = [], []

    def note(mine, other):
        compared.append((mine, other))
        return False

    def steps(left):
        turns.append(Steps(left))
        return turns[-1]

    monkeypatch.setattr(HostPort, "conflicts", note)
    monkeypatch.setattr(planning, "Steps", steps)
    taken = []
    for ports in (0, 64):
        w = World()
        w.node("n0")
        gang = w.object("job", 8)
        for index in range(8):
            held = tuple(HostPort("TCP", "0.0.0.0", 1 + index * 64 + i) for i in range(ports))
            w.pod(f"p{index}", gang, cpu=1 - index / 100, spec={"host_ports": held})
        turns.clear()
        plan = w.scheduler.decide(w.now_s)
        assert len(binds_of(w.scheduler.verified(plan)[0])) == 8
        taken.append(sum(one.taken for one in turns))
    assert not compared
    assert taken[1] >= taken[0] + 8 * 64 // 16
