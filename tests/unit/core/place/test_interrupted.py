"""A gang that the end of a turn interrupts has taken nothing from those that follow in the turn."""

import pytest

from quorate.core.model import ClaimUse, Owner, policy
from quorate.core.model.reasons import Reason
from quorate.core.model.steps import OutOfStepsError, Steps
from quorate.core.turn.cycle import Cycle
from tests.unit.core.storage_world import HOSTNAME, StorageWorld, on
from tests.unit.core.world import World

POOL = {"node_selector": (("pool", "y"),)}
THING = Owner("example.com/v1", "Thing", "y")


def half_held():
    """Return a world with a gang that gets one pod's room held, and looks at claims for the next.

    A pod of no gang is nominated to the node: promises are of the cycle too.
    """
    w = StorageWorld()
    for name, cpu in (("n0", 2), ("n1", 1)):
        w.node(name, cpu=cpu, labels={"pool": "y", HOSTNAME: name})
    gang = w.gang("y", 2, cpu=1, spec=POOL, owner=THING)
    w.cycle()
    w.edit("y-1", node="n0", phase="Running")
    w.edit("y-1", terminating=True)
    w.decide()
    w.delete("y-1")
    w.cycle(after_s=1)
    assert [reservation.node for reservation in w.cluster.reservations] == ["n0"]
    w.volume("v", affinity=on(HOSTNAME, "n1"))
    w.claim("data", storage_class="local")
    w.pod("y-new", gang, cpu=1, spec=POOL, owner=THING, nominated="n0")
    w.pod("y-data", gang, cpu=0.5, spec=POOL, claims=(ClaimUse("data"),))
    return w, w.cluster.gangs[gang]


def begin(w, steps):
    return w.scheduler.planner._cycle(w.now_s, steps)


def state(cycle):
    nominated = {
        node: [e.pod.name for e in cycle.promises.nominated.on(node)] for node in ("n0", "n1")
    }
    held = [reservation.node for reservation in cycle.reservations]
    return cycle.room.free.tolist(), held, nominated, cycle.hopeless, list(cycle.room.rows_taken)


def test_what_it_had_placed_and_ended_is_there_again():
    w, gang = half_held()
    cycle = begin(w, Steps(0))
    before = state(cycle)
    with pytest.raises(OutOfStepsError):
        cycle.try_gang(gang, preempts_more=True, searches=True)
    assert state(cycle) == before


def test_tried_again_in_the_same_turn_it_is_placed_as_in_a_new_one():
    w, gang = half_held()
    fresh = begin(w, Steps(1000)).try_gang(gang, preempts_more=True, searches=True)
    steps = Steps(0)
    cycle = begin(w, steps)
    with pytest.raises(OutOfStepsError):
        cycle.try_gang(gang, preempts_more=True, searches=True)
    steps.left = 1000
    again = cycle.try_gang(gang, preempts_more=True, searches=True)
    assert again.binds == fresh.binds
    assert {one.name: one.node for one in again.binds.binds} == {"y-new": "n0", "y-data": "n1"}
    assert not cycle.reservations


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
