"""Who waits is told of what is held, and told anew when that is different."""

from tests.unit.core.test_held_slots import full_world, lose
from tests.unit.core.world import key


def test_a_gang_is_explained_again_when_a_hold_begins_and_when_it_ends():
    w = full_world()
    w.cycle()
    lose(w, "a-1")
    told = [key("b") in w.decide(0.1).touched for _ in range(3)]
    assert told == [True, False, False]
    assert key("b") in w.decide(10_000).touched
