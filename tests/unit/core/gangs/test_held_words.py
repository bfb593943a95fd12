"""Who waits is told of what is held, and told anew when that is different."""

from tests.unit.core.held_world import full_world, lose, replace
from tests.unit.core.world import binds_of, key


def test_a_gang_is_explained_again_when_a_hold_begins_and_when_it_ends():
    w = full_world()
    w.cycle()
    lose(w, "a-1")
    told = [key("b") in w.decide(0.1).touched for _ in range(3)]
    assert told == [True, False, False]
    assert key("b") in w.decide(10_000).touched


def test_a_gang_is_explained_again_when_a_replacement_takes_what_was_held():
    w = full_world()
    lose(w, "a-1")
    w.decide()
    replace(w)
    taking = w.decide()
    assert [bind.name for bind in binds_of(taking)] == ["a-new"]
    assert key("b") in taking.touched
    w.settle(taking)
    assert key("b") not in w.decide(0.1).touched
