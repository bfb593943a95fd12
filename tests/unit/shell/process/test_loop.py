"""The loop around the core: much news is observed in slices, and then it is decided."""

import asyncio
import contextlib

import pytest

from quorate.core.model import Node, Pod, PodSpec
from quorate.core.model.changes import BindFailed, BindFailure, NodeChanged, PodChanged
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.shell import loop as loops
from quorate.shell.loop import Loop
from quorate.shell.process.clock import SteadyClock, SystemClock
from quorate.shell.process.heartbeat import Heartbeat
from quorate.shell.recording.recorder import Recorder
from quorate.shell.report.incidents import Incidents
from quorate.shell.report.metrics import Metrics
from tools.testing import HANGS_S

MOST = loops._SLICE_CHANGES_MAX


class Running:
    """A loop with a real core; it notes what it hears, and the plans that it hands on."""

    def __init__(self):
        clock, self.metrics = SystemClock(), Metrics()
        self.scheduler = Scheduler(Policy(), identity="id")
        self.loop = Loop(
            self.scheduler,
            clock,
            SteadyClock(clock),
            heartbeat=Heartbeat(clock),
            metrics=self.metrics,
            recorder=Recorder(self.scheduler, {}, "id", 0),
            incidents=Incidents(self.metrics, clock),
        )
        self.heard, self.plans, self.may_decide = [], [], True

    async def run(self, **others):
        parts = {
            "observers": (self.heard.append,),
            "leads": lambda: True,
            "may_decide": lambda: self.may_decide,
            "ready": lambda: None,
            "commit": self.plans.append,
            "touch": lambda _: None,
        }
        await self.loop.run(**parts | others)


@contextlib.asynccontextmanager
async def running(**others):
    one = Running()
    task = asyncio.create_task(one.run(**others))
    try:
        yield one
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def pods(count):
    return [
        PodChanged(Pod(f"u{n}", "team", f"p{n}", scheduler="quorate", spec=PodSpec()))
        for n in range(count)
    ]


async def until(holds):
    async with asyncio.timeout(HANGS_S):
        while not holds():
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("changes", "slices"), [(1, 1), (MOST - 1, 1), (MOST, 1), (MOST + 1, 2), (5 * MOST, 5)]
)
async def test_others_have_their_turn_between_slices_and_nothing_is_decided_before_the_last(
    changes, slices
):
    news, turns = pods(changes), []

    async def count():
        while True:
            turns.append((len(one.heard), len(one.plans)))
            await asyncio.sleep(0)

    async with running() as one:
        counting = asyncio.create_task(count())
        one.loop.put_all(news)
        await until(lambda: one.plans)
        counting.cancel()
    assert [len(some) for some in one.heard] == [
        min(MOST, changes - start) for start in range(0, changes, MOST)
    ]
    assert [change for some in one.heard for change in some] == news
    assert {heard for heard, plans in turns if not plans} >= set(range(1, slices))
    assert one.scheduler.cluster.pods.keys() == {change.pod.uid for change in news}


async def test_news_that_comes_between_two_slices_is_heard_in_the_next_turn():
    first, later = pods(2 * MOST), NodeChanged(Node("n0", allocatable=(("pods", 1),)))
    async with running() as one:
        one.loop.put_all(first)
        await until(lambda: one.heard)
        one.loop.put(later)
        await until(lambda: any(gang for plan in one.plans for gang in plan.gangs))
    assert [len(some) for some in one.heard] == [MOST, MOST, 1]


async def test_what_may_not_be_decided_yet_is_observed_all_the_same_and_decided_later():
    async with running() as one:
        one.may_decide = False
        one.loop.put_all([NodeChanged(Node("n0", allocatable=(("pods", 1),))), *pods(1)])
        await until(lambda: one.scheduler.cluster.pods)
        assert not one.plans
        one.may_decide = True  # nobody tells the loop
        await until(lambda: one.plans)
    assert [bind.node for gang in one.plans[0].gangs for bind in gang.binds] == ["n0"]


async def test_who_asks_waits_until_the_core_knows_of_each_failed_bind():
    """A seal is sent only when all others of its gang are bound, as far as is known here."""
    failed = BindFailed("u0", "n0", BindFailure.REFUSED, "no")
    async with running() as one:
        await one.loop.failures_observed()  # there are none
        for change in (*pods(2 * MOST), failed):
            one.loop.put(change)
        await one.loop.failures_observed()
        assert failed in one.heard[-1]


def broken(*_):
    raise KeyError("planted")


@pytest.mark.parametrize(
    "others",
    [{"observers": (broken,)}, {"ready": broken}, {"touch": broken}],
    ids=["an observer", "before a decision", "after a decision"],
)
async def test_a_defect_of_ours_around_the_core_is_told_and_the_core_goes_on(others):
    """It ended the process: observers run before the core, and were not contained."""
    async with running(**others) as one:
        one.loop.put_all([NodeChanged(Node("n0", allocatable=(("pods", 1),))), *pods(1)])
        await until(lambda: any(gang for plan in one.plans for gang in plan.gangs))
        one.loop.put_all(pods(1))
        await until(lambda: len(one.plans) > 1)
    defects = one.metrics.registry.get_sample_value
    stages = ("observe", "report")
    assert any(defects("quorate_contained_defects_total", {"stage": stage}) for stage in stages)
