"""Durations and run times, as people write them."""

import random
import statistics

import pytest

from pocketkube.agents.settings import DURATION_S_MAX, duration_s, parse_run_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("1h30m", 5400),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("100ms", 0.1),
        ("250us", 0.00025),
        ("0", 0),
        ("0s", 0),
        (" 2m ", 120),
        ("99999999h", DURATION_S_MAX),
    ],
)
def test_durations_are_read_as_go_reads_them(text, seconds):
    assert duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "30", "s", "-5s", "1d", "5 s", "1h30", "soon", "1e3s", "9" * 99]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="is not a duration such as"):
        duration_s(text)


@pytest.mark.parametrize(
    ("text", "median_s"),
    [
        ("30s", 30),
        ("uniform(10s, 1m)", 35),
        ("uniform(1m,10s)", 35),
        ("exponential(30s)", 30 * 0.693),
        ("lognormal(5m, 0.8)", 300),
    ],
)
def test_run_times_have_the_median_of_their_distribution(text, median_s):
    chance = random.Random(7)
    run_time = parse_run_time(text)
    drawn = [run_time(chance) for _ in range(4000)]
    assert min(drawn) >= 0
    assert statistics.median(drawn) == pytest.approx(median_s, rel=0.1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("normal(3s)", "is no run time: write 30s, uniform"),
        ("uniform(3s)", "is no run time: write 30s, uniform"),
        ("exponential(0s)", "is zero: give a longer duration"),
        ("lognormal(5m, -1)", "give a number from 0 to 10"),
        ("lognormal(5m, nan)", "give a number from 0 to 10"),
        ("lognormal(5m, much)", "could not convert"),
        ("exponential(soon)", "is not a duration"),
        ("soon", "is not a duration"),
    ],
)
def test_what_is_no_run_time_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        parse_run_time(text)
