"""The cases of the core's benchmark run, and the table says what was measured, and what was not."""

import math
import time

import msgspec
import pytest

from bench import core_bench
from bench.core.measuring import Case, Row
from bench.core_bench import Measured, all_cases, line, main, markdown, measure

CASES = all_cases(quick=True)


def busy():
    while True:
        time.thread_time()


def swallowing():
    while True:
        try:
            busy()
        except Exception:
            continue


def case(run, *rows, limit_s=0.05):
    return Case("case", rows, run, limit_s=limit_s)


@pytest.mark.explore
@pytest.mark.parametrize("name", CASES)
def test_every_case_gives_a_figure_for_each_row(name):
    figures, longest = measure(CASES[name])
    assert [one.name for one in figures] == [row.name for row in CASES[name].rows]
    assert not [one.error for one in figures if one.error]
    assert all(math.isfinite(one.value) and one.value >= 0 for one in figures)
    assert math.isfinite(longest.value)


@pytest.mark.parametrize("work", [busy, swallowing])
def test_work_that_takes_too_long_is_cut_off_even_where_exceptions_are_caught(work):
    def run(stopwatch):
        yield 1.0
        yield stopwatch.cpu_s(work)
        yield 2.0

    rows = [Row("first", "ms", 5), Row("second", "ms", 5), Row("third", "x")]
    figures, _ = measure(case(run, *rows))
    assert [one.text for one in figures] == ["1 ms", "> 0.05 s", "> 0.05 s"]
    assert [one.is_missed for one in figures] == [False, True, True]


def test_a_case_that_fails_says_so_and_keeps_the_figures_it_had():
    def run(_meter):
        yield 1.0
        raise ValueError("no room")

    figures, _ = measure(case(run, Row("first", "ms"), Row("second", "ms")))
    assert [one.text for one in figures] == ["1 ms", "failed: ValueError: no room"]


def test_a_figure_for_which_there_is_no_row_fails_the_case():
    figures, _ = measure(case(lambda _: iter([1.0]), Row("first", "ms"), Row("second", "ms")))
    assert figures[1].error.startswith("failed: ValueError")


@pytest.mark.parametrize(
    ("value", "at_least", "missed"),
    [(5.0, False, False), (5.1, False, True), (1.0, True, True)],
)
def test_a_figure_over_its_budget_is_marked_and_so_is_one_that_may_be(value, at_least, missed):
    figure = Measured(name="a", unit="ms", budget=5, value=value, at_least=at_least)
    assert line(figure).endswith("MISSED") == missed


def test_one_case_runs_in_a_process_of_its_own_and_is_written_down(tmp_path, capsys):
    path = tmp_path / "figures.json"
    main(["--quick", "--case", "alike", "--json", str(path)])
    figures = msgspec.json.decode(path.read_bytes(), type=list[Measured])
    assert [one.name for one in figures] == [
        *(row.name for row in CASES["alike"].rows),
        core_bench._LONGEST.name,
    ]
    printed = capsys.readouterr().out.splitlines()
    main(["--markdown", str(path)])
    rows = capsys.readouterr().out.splitlines()
    assert printed == [line(one) for one in figures]
    assert rows == markdown([figures])
