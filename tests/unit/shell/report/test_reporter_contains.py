"""A defect that is met while one gang is reported costs that gang its report, and nobody else."""

import asyncio

import pytest

from quorate.core.words import explain
from quorate.shell.process.clock import SteadyClock
from quorate.shell.report import reporter
from quorate.shell.report.metrics import Metrics
from tests.unit.core.world import World, amounts, key
from tests.unit.shell.scripted_server import ManualClock


class Lookup:
    def ask(self, namespace, owner, *, why):
        return False


class Client:
    def __init__(self):
        self.paths = []

    async def patch(self, path, body, kind):
        self.paths.append(path)

    async def post(self, path, body):
        self.paths.append(path)


class SlowClock(ManualClock):
    """Each look at it takes a while, as explaining a large gang does."""

    def monotonic_s(self):
        self.time_s += 0.02
        return super().monotonic_s()


def made(w, clock):
    idle = asyncio.Event()
    idle.set()
    client = Client()
    found = reporter.Reporter(
        client,
        w.scheduler,
        {},
        lookup=Lookup(),
        idle=[idle],
        metrics=Metrics(),
        instance="x",
        clock=SteadyClock(clock),
    )
    return found, client


@pytest.mark.parametrize("fails", ["_shortage", "owners", "pod_message"])
async def test_other_gangs_are_reported_though_one_cannot_be(fails, monkeypatch):
    w = World()
    w.node("n0", cpu=4)
    bad = w.object("bad", 2, min_resources=amounts(cpu=100))
    w.pod("bad-0", bad)
    w.pod("bad-1", bad)
    w.gang("good", 9)
    w.decide()
    real = getattr(explain.Explainer, fails)

    def planted(self, one, *more):
        if "bad" in str(getattr(one, "key", one)) or "bad" in str(getattr(one, "pod", "")):
            raise ValueError("planted")
        return real(self, one, *more)

    monkeypatch.setattr(explain.Explainer, fails, planted)
    made_reporter, client = made(w, ManualClock())
    running = asyncio.create_task(made_reporter.run())
    made_reporter.touch([bad, key("good")])
    while not any("good-8" in path for path in client.paths):
        await asyncio.sleep(0.01)
        made_reporter._clock._clock.time_s += 0.3
    assert not running.done()
    assert 1 <= len(w.scheduler.incidents()) <= 2
    running.cancel()


async def test_gangs_for_which_there_is_no_time_in_a_turn_are_reported_in_later_ones():
    w = World()
    w.node("n0", cpu=1)
    for name in "abcdef":
        w.gang(name, 2)
    w.decide()
    made_reporter, _ = made(w, SlowClock())
    keys = [key(name) for name in "abcdef"]
    made_reporter.touch(keys)
    turns = 0
    while len(made_reporter._telling.quiet_gangs):
        before = len(made_reporter._telling.quiet_gangs)
        made_reporter._report(list(keys)[-before:])
        turns += 1
        assert len(made_reporter._telling.quiet_gangs) < before
    assert turns > 1
