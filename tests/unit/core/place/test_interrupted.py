"""A gang whose planning takes longer than a turn gets longer ones, up to a bound."""

import pytest

from quorate.core.model import policy
from quorate.core.model.reasons import Reason
from quorate.core.model.steps import OutOfStepsError
from quorate.core.turn.cycle import Cycle
from tests.unit.core.world import World


@pytest.mark.parametrize(("needed", "is_placed"), [(79, True), (80, True), (81, False)])
def test_a_gang_that_needs_more_than_the_longest_turn_is_left_alone(needed, is_placed, monkeypatch):
    """Its turns are doubled up to a bound; then others have theirs."""
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", 10)
    monkeypatch.setattr(policy, "INTERRUPTIONS_FEW", 2)
    monkeypatch.setattr(policy, "LONG_TURN_STEPS_MAX", 80)
    w, given, real = World(), [], Cycle.try_gang

    def try_gang(self, gang, **how):
        if gang.key.name == "large":
            given.append(self.steps.left)
            if self.steps.left < needed:
                self.steps.take(self.steps.left)
                raise OutOfStepsError
        return real(self, gang, **how)

    monkeypatch.setattr(Cycle, "try_gang", try_gang)
    w.node("n0")
    large = w.gang("large", 1)
    for _ in range(20):
        w.cycle()
    assert max(given) == 80
    assert ("large-0" in w.binds) == is_placed
    w.gang("small", 1)
    assert "small-0" in w.cycle()
    queue, tries = w.scheduler.planner.queue, len(given)
    assert large not in queue.searching
    if not is_placed:
        why = w.why(large)
        assert why.reason is Reason.BACKING_OFF
        assert why.message == (
            "the last attempt failed (to look at its claims takes longer than a turn may last); "
            "another follows within 10 minutes"
        )
    w.cycle(after_s=policy.ASIDE_S_MAX - 1)
    assert len(given) == tries
    w.cycle(after_s=2)
    assert (len(given) > tries) != is_placed


@pytest.fixture
def given(monkeypatch):
    """Let a gang named large take all steps that it is given, and never be placed."""
    given, real = [], Cycle.try_gang

    def try_gang(self, gang, **how):
        if gang.key.name == "large":
            given.append(self.steps.left)
            self.steps.take(self.steps.left)
            raise OutOfStepsError
        return real(self, gang, **how)

    monkeypatch.setattr(Cycle, "try_gang", try_gang)
    return given


@pytest.mark.parametrize("bound", [50, 600])
def test_one_that_needs_more_than_its_part_of_a_turn_lets_others_go_on(given, bound, monkeypatch):
    monkeypatch.setattr(policy, "TRY_STEPS_MAX", bound)
    w = World()
    w.node("n0")
    w.gang("large", 1)
    w.gang("small", 1)
    assert w.cycle() == {"small-0": "n0"}
    assert given[0] == bound


def test_what_a_turn_placed_is_not_kept_waiting_by_one_that_is_looked_at_for_long(given):
    w = World()
    w.node("n0")
    large = w.gang("large", 1)
    w.cycle()
    times = w.scheduler.planner._interrupted[large]
    for number in range(2 * policy.INTERRUPTIONS_FEW):
        w.gang(f"small-{number}", 1)
        assert w.cycle()
        assert 0 < given[-1] < policy.TURN_STEPS_MAX // 20
    assert w.scheduler.planner._interrupted[large] == times, "these were no turns of its own"
    w.cycle()
    assert given[-1] > policy.TURN_STEPS_MAX // 2
