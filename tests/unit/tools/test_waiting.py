"""Waiting of tests: limits are tight on a quiet machine, and a busy one gets more time."""

import os
from types import SimpleNamespace

import pytest

from tools import testing
from tools.testing import slowness, wait_for


@pytest.fixture
def load(monkeypatch):
    """Set how many processes want each core."""
    return lambda each: monkeypatch.setattr(os, "getloadavg", lambda: (each * os.cpu_count(), 0, 0))


@pytest.mark.parametrize(
    ("each", "times"), [(0.0, 1.0), (1.0, 1.0), (2.5, 2.5), (4.0, 4.0), (20.0, 4.0)]
)
def test_a_machine_is_as_slow_as_processes_want_each_core_within_bounds(load, each, times):
    load(each)
    assert slowness() == times


def test_what_comes_in_time_is_given():
    assert wait_for(iter([0, "", "here"]).__next__, "it comes") == "here"


def test_what_does_not_come_is_named_with_its_last_value(load):
    load(0.0)
    with pytest.raises(AssertionError, match="after 0 s still not true: it comes; last: 0"):
        wait_for(lambda: 0, "it comes", timeout_s=0.0)


def test_a_busy_machine_gets_more_time(load, monkeypatch):
    now_s = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: now_s[0], sleep=lambda waits_s: now_s.append(now_s.pop() + waits_s)
    )
    monkeypatch.setattr(testing, "time", clock)
    load(4.0)
    assert wait_for(lambda: now_s[0] > 0.3, "it comes", timeout_s=0.1)
