"""Outcomes of binds: one line of the log for what befalls a whole gang."""

import pytest
import structlog

from quorate.core.model.changes import BindFailed, BindFailure
from quorate.shell.process.clock import SteadyClock
from quorate.shell.report import bind_outcomes as module
from quorate.shell.report.bind_outcomes import BindOutcomes
from quorate.shell.report.bind_times import BindTimes
from quorate.shell.report.metrics import Metrics
from tests.unit.core.world import World
from tests.unit.shell.scripted_server import ManualClock


class Telling:
    """A gang of five, and one of two, whose binds are under way."""

    def __init__(self):
        self.clock, self.metrics, self.w = ManualClock(), Metrics(), World()
        self.w.node("n0", cpu=20)
        self.w.gang("g", 5)
        self.w.gang("h", 2)
        self.w.decide()
        steady = SteadyClock(self.clock)
        times = BindTimes(self.metrics, steady)
        self.outcomes = BindOutcomes(self.w.scheduler, self.metrics, None, times, steady)

    def fail(self, *names, failure=BindFailure.REFUSED):
        with structlog.testing.capture_logs() as lines:
            self.outcomes.observe(
                [BindFailed(f"uid-{name}", "n0", failure, "no") for name in names]
            )
        return [(one["gang"], one["pod"], one["failure"]) for one in lines]


@pytest.fixture
def telling():
    return Telling()


def test_members_that_fail_in_one_way_are_one_line(telling):
    assert telling.fail("g-0", "g-1", "g-2") == [("team/g", "g-0", "refused")]
    assert telling.fail("g-3") == []
    failed = telling.metrics.registry.get_sample_value
    assert failed("quorate_binds_total", {"outcome": "refused"}) == 4


def test_another_gang_and_another_way_are_lines_of_their_own(telling):
    assert telling.fail("g-0", "h-0") == [
        ("team/g", "g-0", "refused"),
        ("team/h", "h-0", "refused"),
    ]
    again = telling.fail("g-1", failure=BindFailure.TIMEOUT)
    assert again == [("team/g", "g-1", "timeout")]


def test_what_goes_on_is_said_again_after_a_while(telling):
    telling.fail("g-0")
    telling.clock.time_s += module._SAME_FOR_S - 0.1
    assert telling.fail("g-1") == []
    telling.clock.time_s += 0.2
    assert telling.fail("g-2") == [("team/g", "g-2", "refused")]


def test_so_many_gangs_are_remembered(telling, monkeypatch):
    monkeypatch.setattr(module, "_GANGS_MAX", 1)
    assert len(telling.fail("g-0", "h-0", "g-1")) == 3
