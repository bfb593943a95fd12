"""Joint searches that take several turns: what they say, and of which room."""

import pytest

from quorate.core.model import policy
from quorate.core.model.reasons import Reason
from quorate.core.model.steps import Steps
from quorate.core.place import gang as gangs
from quorate.core.place import greedy
from quorate.core.place.search.joint import SearchOutcome
from tests.unit.core.terms import HOST, apart, pods
from tests.unit.core.world import World, key

TURNS = 3
"""A search answers after so many."""


class SlowSearch(gangs.JointSearch):
    """Says what the real one does, about the room as it was when it began, some turns later."""

    turns = 0

    def run(self, steps):
        self.turns += 1
        steps.take(50)
        return super().run(Steps(10**6)) if self.turns > TURNS else None


def add_gang(w, name):
    """Add a gang that has room on 7 and 6 cores, but not on 7 and 5, and no order is greedy."""
    gang = w.object(name, 4)
    w.pod(f"{name}-x", gang, cpu=4, labels={"app": "x"}, spec=apart(pods(app="zz")))
    for index in range(3):
        w.pod(f"{name}-y{index}", gang, cpu=3, labels={"app": "y"})
    return gang


def node(w, name, cpu):
    w.node(name, cpu=cpu, labels={HOST: name})


@pytest.mark.parametrize("open_max", [0, 1, 2, policy.SEARCHES_OPEN_MAX])
def test_an_old_search_in_vain_says_nothing_of_another_gang(open_max, monkeypatch):
    monkeypatch.setattr(gangs, "JointSearch", SlowSearch)
    monkeypatch.setattr(policy, "SEARCHES_OPEN_MAX", open_max)
    w = World()
    node(w, "n0", 7)
    node(w, "n1", 5)
    old = add_gang(w, "old")
    w.cycle()
    node(w, "n1", 6)  # room for one of the two gangs
    w.cycle()
    add_gang(w, "new")
    w.cycle()  # the search for the old gang ends in vain here: it is of 7 and 5 cores
    w.delete("old-x", "old-y0", "old-y1", "old-y2")
    w.drop_object(old)
    monkeypatch.setattr(gangs, "JointSearch", SlowSearch.__base__)
    for _ in range(2 * TURNS):
        w.cycle(after_s=1)
    assert {name for name in w.binds if w.where(name)} == {"new-x", "new-y0", "new-y1", "new-y2"}
    assert key("new") not in w.scheduler.planner.queue.searching


class VainSearch(gangs.JointSearch):
    """Gives up at once."""

    def run(self, steps):
        return SearchOutcome(None, exhausted=True)


def test_orders_that_follow_a_search_are_tried_over_several_turns_and_each_once(monkeypatch):
    """Two classes: three orders (one of them first, as it spares most), each with both packings."""
    place, tried = greedy.place_in_order, []

    def recorded(classes, demand, room, packing, *more, **options):
        tried.append(packing)
        return place(classes, demand, room, packing, *more, **options)

    monkeypatch.setattr(gangs, "JointSearch", VainSearch)
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", 1)
    monkeypatch.setattr(greedy, "place_in_order", recorded)
    w = World()
    node(w, "n0", 7)
    node(w, "n1", 5)
    gang = add_gang(w, "a")
    turns = 0
    while not turns or gang in w.scheduler.planner.queue.searching:
        w.decide()
        turns += 1
    assert tried == 3 * ["most-allocated", "least-allocated"]
    assert turns > 3
    assert w.why(gang).reason is Reason.NOT_ENOUGH_ROOM
