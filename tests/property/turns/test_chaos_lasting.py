"""A defect that stays: a function of the core raises whenever it is called about one gang.

The others are placed all the same, nothing escapes through the door, nobody is told of it in a
flood, and when the function is mended the state is sound. Functions are drawn from all that a
scenario calls about the gang; a large ``QUORATE_TIMES`` tries each.
"""

import random

import pytest

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry
from quorate.core.model import GangKey, GangSpec, Owner, Pod, changes
from quorate.core.model.plan import Bind
from tests.invariants import check_all
from tests.property.chaos import PlantedError, Trace, is_run, is_target, target_of
from tests.property.seeds import SEED, times
from tests.unit.core.world import World, accept, binds_of, fail, key

BAD = key("bad")
DRAWN = 25
DECISIONS = 30
INCIDENTS_FEW = 16
"""More than these come only as time passes: a defect that stays is met ever more seldom."""
CONTAINERS = frozenset(
    {
        *("Scheduler._set_aside", "Scheduler._observe", "Scheduler._take_back"),
        *("Scheduler.note_unexplained", "Scheduler._retry"),
        *("Defects.note", "Defects.set_aside", "Defects.replace", "stand_in", "id_of"),
        *("rebuilt", "Objects.note", "_is_aside"),
    }
)
"""What contains is not hit: a defect in it would be met with all that it contains."""


def is_about_it(one):
    match one:
        case GangEntry(key=of) | PodEntry(gang=GangEntry(key=of)) | GangSpec(key=of):
            return of == BAD
        case GangKey():
            return one == BAD
        case Pod(name=name) | Bind(name=name) | changes.PodChanged(pod=Pod(name=name)):
            return name.startswith("bad")
    return False


class Lasting(Trace):
    """Raises at each call of one function that is about the gang; or notes which there are."""

    def __init__(self, code=None):
        self.code = code
        self.met = set()
        self.is_mended = False

    def on_call(self, frame, event, _):
        code = frame.f_code
        if self.is_mended or (self.code is not None and code is not self.code):
            return
        if not is_target(code) or code.co_qualname in CONTAINERS or not is_run(frame):
            return
        count = code.co_argcount + code.co_kwonlyargcount
        if not any(is_about_it(frame.f_locals.get(name)) for name in code.co_varnames[:count]):
            return
        self.met.add(code)
        if self.code is not None:
            raise PlantedError(f"planted in {code.co_qualname}")


class Played(World):
    """A world whose door is called under a trace."""

    def __init__(self, trace, **policy):
        super().__init__(**policy)
        self.trace = trace
        self.told = 0
        for index in range(4):
            self.node(f"n{index}", cpu=8)

    def observe(self, *news):
        self.trace.calls(self.scheduler, "observe", news)

    def turn(self, outcome=accept, after_s=0.005):
        """Decide and bind; return the plan and the names of the pods that were placed."""
        self.now_s += after_s
        plan = self.trace.calls(self.scheduler, "decide", self.now_s)
        plan, problems = self.trace.calls(self.scheduler, "verified", plan)
        assert problems == []
        self.trace.calls(self, "explain_all")
        for bind in binds_of(plan):
            answer = outcome(bind)
            self.observe(answer)
            if isinstance(answer, changes.PodBound):
                self.edit(bind.name, node=bind.node)
        for eviction in plan.evictions:
            self.delete(eviction.name)
        self.told += len(self.scheduler.incidents())
        return plan, {bind.name for bind in binds_of(plan)}

    def explain_all(self):
        explainer = self.scheduler.explainer(self.now_s)
        for name in list(self.cluster.gangs):
            explainer.explain(name)


def waits(w):
    w.gang("bad", 2)
    w.turn()


def is_too_large(w):
    w.gang("bad", 5, cpu=7)
    w.turn()


def has_a_part_bound(w):
    w.gang("bad", 2)
    refused = fail(changes.BindFailure.REFUSED, "no")
    w.turn(lambda bind: accept(bind) if bind.name == "bad-0" else refused(bind))
    w.now_s += 61.0


def has_lost_a_member(w):
    w.gang("bad", 2, owner=Owner("batch/v1", "Job", "bad"))
    w.turn()
    w.edit("bad-0", node=w.where("bad-0"), phase="Running", terminating=True)
    w.turn()
    w.delete("bad-0")


def is_coupled(w):
    w.object("bad", 3)
    for index, cpu in enumerate((7, 5, 3, 6)):
        w.pod(f"bad-{index}", BAD, cpu=cpu)
    w.turn()


def is_one_of_many(w):
    for name in ("bad", "alike", "like"):
        w.gang(name, 5, cpu=7)
    w.turn()
    w.lose_node("n0")
    w.node("n0", cpu=8)


def is_over(w):
    w.gang("bad", 2)
    w.turn()
    for index in range(2):
        w.edit(f"bad-{index}", node=w.where(f"bad-{index}"), phase="Failed")
    w.pod("bad-again", BAD)


SCENARIOS = [
    waits,
    is_too_large,
    has_a_part_bound,
    has_lost_a_member,
    is_coupled,
    is_one_of_many,
    is_over,
]


def problem_of(scenario, trace):
    """Play a scenario; return what is wrong with how the defect was contained, or ""."""
    w = Played(trace)
    scenario(w)
    w.told = 0
    w.gang("good", 2)
    placed_after_s, began_s = None, w.now_s
    for _ in range(DECISIONS):
        plan, names = w.turn()
        if {"good-0", "good-1"} <= names:
            placed_after_s = w.now_s - began_s
        if plan.wake_at_s is None:
            break
        w.now_s = max(w.now_s, min(plan.wake_at_s, w.now_s + 5.0))
    if placed_after_s is None or placed_after_s > 2.0:
        return f"the other gang was placed after {placed_after_s} s"
    passed_s = w.now_s - began_s
    if w.told > INCIDENTS_FEW + 2.0 * passed_s:
        return f"{w.told} incidents in {passed_s:.1f} s"
    trace.is_mended = True
    for _ in range(DECISIONS):
        plan, _ = w.turn()
        w.now_s = max(w.now_s, plan.wake_at_s or w.now_s)
    return "; ".join(one.text for one in check_all(w.scheduler, w.now_s))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_what_a_function_raises_about_one_gang_whenever_it_is_called_costs_no_other(scenario):
    watching = Lasting()
    assert problem_of(scenario, watching) == ""
    codes = sorted(watching.met, key=lambda code: (target_of(code), code.co_firstlineno))
    assert len(codes) > 50
    random.Random(f"lasting {scenario.__name__} {SEED}").shuffle(codes)
    del codes[times(DRAWN) :]
    failed = []
    for code in codes:
        trace = Lasting(code)
        try:
            problem = problem_of(scenario, trace)
        except PlantedError as error:
            problem = f"escapes: {error}"
        if problem or not trace.met:
            failed.append(f"{target_of(code)}: {problem or 'was not met'}")
    assert not failed, "\n".join([f"{len(failed)} of {len(codes)}:", *failed])
