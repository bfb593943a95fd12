"""Devices when the steps of a turn are over: nothing is lost, and who asks again goes on."""

import numpy as np

from quorate.core.model import policy
from quorate.core.model.steps import OutOfStepsError, Steps
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from tests.unit.core.device_world import (
    DRIVER,
    Nodes2,
    choice,
    device,
    first_of,
    many,
    on,
    request,
    spec,
)

UUID = f'device.attributes["{DRIVER}"].uuid'


def uuids(node: str, count: int):
    return on(node, *(device(f"d{i}", attributes={"uuid": f"{node}-{i}"}) for i in range(count)))


class Turns:
    """Asks in one turn after the other, each with a room of its own, as decisions do."""

    def __init__(self, world: Nodes2, steps: int):
        self.world, self.steps, self.masks = world, steps, RuleCache()
        self.taken, self.turns = [], 0

    def device_room(self):
        room = Room(self.world.cluster.snapshot(), self.masks)
        room.device_room.steps = Steps(self.steps)
        return room.device_room

    def until_said(self, ask_for, turns_max=10_000):
        for self.turns in range(1, turns_max):
            device_room = self.device_room()
            try:
                return ask_for(device_room)
            except OutOfStepsError:
                assert device_room.steps.are_over
            finally:
                self.taken.append(device_room.steps.taken)
        raise AssertionError("it makes no progress")


ROWS = np.arange(2)


def hard():
    """Claims that ever fewer pods can meet: a search for each number of pods."""
    world = Nodes2(*many(300))
    pod_class, room = world.ask(*[spec(request(count=2))] * 10)
    return world, pod_class.device_needs, room


def test_a_search_goes_on_where_it_stopped_though_planning_begins_anew():
    world, ask, room = hard()
    expected = room.device_room.pods(ask, ROWS).tolist()
    assert expected == [15, 0]
    turns = Turns(world, 40)
    assert turns.until_said(lambda device_room: device_room.pods(ask, ROWS).tolist()) == expected
    assert turns.turns > 5
    whole = Turns(world, 10**9)
    whole.until_said(lambda device_room: device_room.pods(ask, ROWS))
    [in_one_go] = whole.taken
    assert sum(turns.taken) < 2 * in_one_go, "hardly anything is done twice"


def test_what_a_turn_takes_is_little_more_than_its_steps():
    world, ask, _ = hard()
    turns = Turns(world, 40)
    turns.until_said(lambda device_room: device_room.pods(ask, ROWS))
    assert max(turns.taken) < 40 + 60, "one search more"


def test_selectors_go_on_device_by_device():
    world = Nodes2(uuids("n0", 60), uuids("n1", 60))
    pod_class, room = world.ask(spec(request(f'{UUID} == "n1-59"')))
    expected = room.device_room.pods(pod_class.device_needs, ROWS).tolist()
    assert expected == [0, 1]
    turns = Turns(world, 50)
    assert (
        turns.until_said(
            lambda device_room: device_room.pods(pod_class.device_needs, ROWS).tolist()
        )
        == expected
    )
    assert turns.turns > 5
    assert max(turns.taken) < 50 + 50


def test_many_unlike_devices_of_one_node_are_looked_at_over_several_turns():
    world = Nodes2(uuids("n0", 100))
    pod_class, _ = world.ask(spec(request(f'{UUID} == "n0-99"')))
    turns = Turns(world, 1)
    taken = turns.until_said(
        lambda device_room: device_room.pods(pod_class.device_needs, ROWS).tolist()
    )
    assert taken == [1, 0]
    assert turns.turns > 100, "the least that a turn does is progress"


def test_selectors_go_on_though_no_program_is_kept(monkeypatch):
    monkeypatch.setattr(policy, "CEL_PROGRAMS_TEXT_MAX", 1)
    monkeypatch.setattr(policy, "CEL_ANSWERS_MAX", 1)
    world = Nodes2(uuids("n0", 20))
    pod_class, _ = world.ask(spec(request(f'{UUID} != "a"', f'{UUID} != "b"')))
    turns = Turns(world, 30)
    assert turns.until_said(
        lambda device_room: device_room.pods(pod_class.device_needs, ROWS).tolist()
    ) == [
        20,
        0,
    ]
    assert turns.turns > 10


def test_what_is_known_takes_no_steps():
    world, ask, _ = hard()
    turns = Turns(world, 10**9)
    turns.until_said(lambda device_room: device_room.pods(ask, ROWS))
    turns.until_said(lambda device_room: device_room.for_one_pod(ask, ROWS))
    assert turns.taken[-1] == 0
    turns.steps = 0
    turns.until_said(lambda device_room: device_room.pods(ask, ROWS))


def test_a_chain_of_pods_counts_too():
    world = Nodes2(*many(250))
    pod_class, _room = world.ask(spec(first_of(choice(name="only"))))
    turns = Turns(world, 100)
    assert turns.until_said(
        lambda device_room: device_room.pods(pod_class.device_needs, ROWS).tolist()
    ) == [
        250,
        0,
    ]
    assert turns.turns > 10


def test_giving_devices_counts_all_that_the_node_has():
    world = Nodes2(*many(200))
    pod_class, _ = world.ask(spec())
    turns = Turns(world, 10**9)
    turns.until_said(lambda device_room: device_room.pods(pod_class.device_needs, ROWS))
    device_room = turns.device_room()
    device_room.take(pod_class.id, pod_class.device_needs, [0], ["n0"])
    assert device_room.steps.taken > 5
    assert device_room.copy().steps is device_room.steps
