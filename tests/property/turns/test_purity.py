"""Planning is a question: it changes nothing, and asked again it gives the same answer.

The whole state is compared before and after, in random worlds; what is left out of it is listed in
``states.CACHES``. And worlds in which everything is asked all the time go on as those in which
nothing is.
"""

import random
from copy import deepcopy
from dataclasses import replace

import pytest

from quorate.core.model import Node
from quorate.core.model.changes import NodeChanged
from quorate.core.scheduler import Scheduler
from tests.property.chaos import small_world
from tests.property.seeds import SEED, times
from tests.property.states import differences, state_of
from tests.property.worlds.world import World

WORLDS = times(20)


class Asking(World):
    """Asks ``question`` before each decision, and compares the state before and after."""

    def __init__(self, setting, question):
        super().__init__(setting)
        self.question = question
        self.asked = 0

    def decide(self, chance, after_s):
        self.commit.expire(self.now_s + after_s)  # that is news
        before = state_of(self.scheduler)
        check = self.question(self.scheduler, self.now_s + after_s, random.Random(self.asked))
        self.asked += 1
        assert differences(before, state_of(self.scheduler)) == []
        plan = super().decide(chance, after_s)
        if check is not None:
            check(plan)
        return plan


def play(question, run=SEED):
    """Ask the question in several worlds."""
    asked = 0
    for index in range(WORLDS):
        setting, script = small_world(run, index)
        world = Asking(setting, question)
        try:
            world.play(script)
        except Exception as error:
            error.add_note(f"world {index} of seed {run}")
            raise
        asked += world.asked
    assert asked > WORLDS


def test_explaining_and_the_journal_change_nothing():
    def question(scheduler, now_s, _):
        explainer = scheduler.explainer(now_s)
        for gang in list(scheduler.cluster.gangs):
            explainer.explain(gang)
        scheduler.journal()

    play(question)


def test_a_turn_that_is_planned_twice_is_the_same_turn(monkeypatch):
    """Asked where ``decide`` asks: after news and time were taken in."""
    take_step, problems, turns = Scheduler._take_step, [], 0

    def planned_twice(self, now_s):
        nonlocal turns
        take_step(self, now_s)
        before = state_of(self)
        self.forget_caches()
        copies = deepcopy(self), deepcopy(self)  # the queue notes who is blocked on what
        turn, again = (other.planner.plan(other._due, now_s) for other in copies)
        problems.extend(differences(before, state_of(self)))
        if (again.plan, what_came_of(again)) != (turn.plan, what_came_of(turn)):
            problems.append(f"{turn} and then {again}")
        problems.extend(differences(state_of(copies[0]), state_of(copies[1])))
        turns += 1

    monkeypatch.setattr(Scheduler, "_take_step", planned_twice)
    for index in range(WORLDS):
        setting, script = small_world(SEED, index)
        World(setting).play(script)
        assert problems == [], f"world {index} of seed {SEED}"
    assert turns > WORLDS


def what_came_of(turn):
    """Return what came of each gang; classes of pods by their specs, as each plan makes them."""
    return [
        replace(one, waits_for={c.spec: pods for c, pods in one.waits_for.items()})
        for one in turn.outcomes
    ]


class Curious(World):
    """Asks why each gang waits before each decision; remembers the plans."""

    asks = True

    def __init__(self, setting):
        super().__init__(setting)
        self.plans = []

    def decide(self, chance, after_s):
        if self.asks:
            now_s, scheduler = self.now_s + after_s, self.scheduler
            for gang in list(scheduler.cluster.gangs):
                scheduler.explainer(now_s).explain(gang)
            scheduler.journal()
        plan = super().decide(chance, after_s)
        self.plans.append(plan)
        return plan


class Silent(Curious):
    asks = False


@pytest.mark.parametrize("part", range(2))
def test_who_asks_all_the_time_sees_what_happens_to_who_never_asks(part):
    for index in range(part, 2 * WORLDS, 2):
        setting, script = small_world(SEED, index)
        worlds = Curious(setting), Silent(setting)
        for world in worlds:
            world.play(script)
        assert worlds[0].plans == worlds[1].plans, f"world {index} of seed {SEED}"


def test_the_state_that_is_compared_is_all_of_it():
    """A decision, a change of one pod, a number in an array: each is seen."""
    setting, script = small_world(SEED, 1)
    world = World(setting)
    world.play(script)
    before = state_of(world.scheduler)
    assert len(before) > 200
    world.scheduler.observe([NodeChanged(Node("another", (("cpu", 1), ("pods", 1))))])
    after = state_of(world.scheduler)
    assert differences(before, after) != []
    world.scheduler.cluster.nodes.free[0, 0] += 1
    assert len(differences(after, state_of(world.scheduler))) == 1
