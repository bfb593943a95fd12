"""Nothing that fits is left waiting, whatever happened; and a waking that forgets is found out."""

import pytest

from quorate.core.check.invariants import check_all
from quorate.core.model import policy
from tests.property.full_worlds import FullWorld, fresh
from tests.simulation import mutations

BOUNDS = {
    "as they are": {},
    "few tallies": {"CLASSES_WATCHED_MAX": 2},
    "few masks": {"CLASS_MASKS_CELLS_MAX": 8},
    "few levels": {"PRIORITIES_WATCHED_MAX": 1},
    "few steps": {"TURN_STEPS_MAX": 12, "CHECK_STEPS_MAX": 3},
    "all of that": {
        "CLASSES_WATCHED_MAX": 1,
        "PRIORITIES_WATCHED_MAX": 0,
        "TURN_STEPS_MAX": 4,
        "CHECK_STEPS_MAX": 1,
        "EXPLAINED_PER_TURN_MAX": 1,
    },
}


def what_a_successor_places(world):
    """Return the gangs that a new scheduler, told all that is, places at once."""
    found, placed = world.successor(), []
    for _ in range(200):
        plan = found.decide(world.now_s)
        placed += [gang.key for gang in plan.gangs]
        if plan.wake_at_s is None or plan.wake_at_s > world.now_s:
            return placed
    raise AssertionError("it never comes to rest")


def missed(chance):
    """Play in one world; return what was missed at the first rest at which something was."""
    world = FullWorld(chance)
    world.play(chance.randint(10, 40))
    world.come_to_rest()
    for _ in range(12):
        for _ in range(chance.choice([1, 1, 1, 2])):
            world.change()
        world.come_to_rest()
        if placed := what_a_successor_places(world):
            return placed
        found = check_all(world.scheduler, world.now_s, excused=frozenset(world.nodes))
        assert not [one for one in found if not one.tolerated_s]
    return []


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS.keys())
def test_what_fits_at_rest_has_been_placed_so_no_wake_up_was_missed(monkeypatch, bounds):
    for name, value in bounds.items():
        monkeypatch.setattr(policy, name, value)
    for chance in fresh(40):
        assert missed(chance) == []


WAKING = (
    mutations.wake_up_is_lost,
    mutations.watched_class_never_wakes,
    mutations.bucket_passes_over,
    mutations.label_news_wake_nobody,
)


@pytest.mark.parametrize("mutation", WAKING, ids=lambda one: one.__name__)
def test_the_property_finds_a_waking_that_forgets(monkeypatch, mutation):
    mutation(monkeypatch)
    assert any(missed(chance) for chance in fresh(600))
