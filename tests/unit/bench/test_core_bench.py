"""The cases of the core's benchmark run, and the table says what was measured, and what was not."""

import math
import time

import msgspec
import pytest

from bench import core_bench
from bench.core.measuring import Case, Figure, Row, Stopwatch
from bench.core.world import gang, gang_key, node, nodes, pod
from bench.core_bench import Measured, all_cases, line, main, markdown, measure
from quorate.core.model import PodSpec
from quorate.core.model.changes import NodeChanged, PodChanged

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


def test_rows_have_names_of_their_own_in_both_sizes():
    for quick in (True, False):
        names = [row.name for one in all_cases(quick).values() for row in one.rows]
        assert len(set(names)) == len(names)


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


def test_a_decision_that_is_cut_off_counts_for_the_longest(monkeypatch):
    def run(stopwatch):
        core = stopwatch.core()
        monkeypatch.setattr(core.scheduler.__class__, "decide", lambda *_: busy())
        yield core.decide(0.0)[1]

    _, longest = measure(case(run, Row("decide", "ms")))
    assert longest == Figure(0.05, at_least=True)


def test_a_case_that_fails_says_so_and_keeps_the_figures_it_had():
    def run(_meter):
        yield 1.0
        raise ValueError("no room")

    figures, _ = measure(case(run, Row("first", "ms"), Row("second", "ms")))
    assert [one.text for one in figures] == ["1 ms", "failed: ValueError: no room"]


def test_a_figure_for_which_there_is_no_row_fails_the_case():
    figures, _ = measure(case(lambda _: iter([1.0]), Row("first", "ms"), Row("second", "ms")))
    assert figures[1].error.startswith("failed: ValueError")


def test_settling_places_what_fits_and_tells_what_was_touched():
    core = Stopwatch(10.0).core()
    core.observe(nodes(1))
    core.observe([*gang("fits", 8), *gang("waits", 2)])
    rest = core.settle(0.0)
    assert {host for _, host in rest.binds} == {"node-0"}
    assert len(rest.binds) == 8
    assert rest.started == {gang_key("fits")}
    assert rest.touched >= {gang_key("waits")}
    assert rest.is_over
    assert rest.whole_s >= rest.cpu_s >= rest.longest_s > 0


def test_settling_stops_when_its_time_is_over():
    core = Stopwatch(10.0).core()
    core.observe([NodeChanged(node(0))])
    small = PodSpec(requests=(("cpu", 1),))
    core.observe(PodChanged(pod(f"single-{index}", small)) for index in range(100))
    rest = core.settle(0.0, limit_s=0.0)
    assert rest.turns == 1
    assert not rest.is_over
    assert core.settle(1.0).is_over


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (Measured(name="a", unit="ms", value=3.14159), "3.14 ms"),
        (Measured(name="a", unit="ms", value=1234.5), "1,234 ms"),
        (Measured(name="a", unit="", value=20.0), "20"),
        (Measured(name="a", unit="x", value=2.5, at_least=True), "> 2.5 x"),
    ],
)
def test_a_figure_is_said_with_its_unit(figure, expected):
    assert figure.text == expected


@pytest.mark.parametrize(
    ("value", "at_least", "missed"),
    [(5.0, False, False), (5.1, False, True), (1.0, True, True)],
)
def test_a_figure_over_its_budget_is_marked_and_so_is_one_that_may_be(value, at_least, missed):
    figure = Measured(name="a", unit="ms", budget=5, value=value, at_least=at_least)
    assert line(figure).endswith("MISSED") == missed


def test_markdown_has_a_column_for_each_run_and_a_gap_for_what_a_run_lacks():
    before = [Measured(name="a", unit="ms", budget=5, value=9.0), Measured(name="b", unit="x")]
    after = [Measured(name="a", unit="ms", budget=5, value=2.0)]
    assert markdown([before, after]) == [
        "| a | <= 5 ms | 9 ms | 2 ms |",
        "| b |  | 0 x |  |",
    ]


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
