"""Measure the core without I/O: deciding, applying a change, explaining, memory.

Prints a table with the budget of each figure, and writes JSON with ``--json``. Times are CPU times.
Machines differ, so the table begins with the time of a fixed piece of NumPy work on the same
machine: compare figures of two machines by their ratio to it. Each case has a process of its own,
so that none finds another's memory. Work that takes too long is cut off, and says "> 20 s".
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from bench.core import basics, claims, classes, growth, neighbours, singles, volumes, waiting
from bench.core.measuring import Case, CutOffError, Figure, Row, Stopwatch

_MODULES = (
    basics,
    neighbours,
    claims,
    volumes,
    waiting,
    growth,
    classes,
    singles,
)
_LONGEST = Row("longest decision of all these cases, gang-large aside", "ms", 100)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A figure as written down. ``error`` says why there is none, ``note`` where it is from."""

    name: str
    unit: str
    budget: float | None = None
    value: float = 0.0
    at_least: bool = False
    error: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        """The figure with its unit."""
        more = "> " if self.at_least else ""
        return self.error or f"{more}{_number(self.value)} {self.unit}".rstrip()

    @property
    def budget_text(self) -> str:
        """The budget with its unit, or nothing."""
        return "" if self.budget is None else f"<= {self.budget:g} {self.unit}".rstrip()

    @property
    def is_missed(self) -> bool:
        """Whether the figure is over its budget, or could not be had."""
        over = self.budget is not None and (self.at_least or self.value > self.budget)
        return over or bool(self.error)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 or value == int(value) else f"{value:.3g}"


def all_cases(quick: bool = False) -> dict[str, Case]:
    """Return the cases by name; ``quick`` ones take seconds and mean little."""
    found = [case for module in _MODULES for case in module.cases(quick)]
    assert len({case.name for case in found}) == len(found), "names are unique"
    return {case.name: case for case in found}


def measure(case: Case) -> tuple[list[Measured], Figure]:
    """Run one case in this process; return its figures, and its longest decision in seconds."""
    stopwatch = Stopwatch(case.limit_s)
    figures: list[Measured] = []
    error = ""
    try:
        for row, value in zip(case.rows, case.run(stopwatch), strict=True):
            figure = value if isinstance(value, Figure) else Figure(value)
            figures.append(_measured(row, figure))
    except CutOffError:
        error = f"> {case.limit_s:g} s"
    except Exception as failure:  # it costs no other case its figures
        error = f"failed: {type(failure).__name__}: {failure}"
    finally:
        gc.unfreeze()
    left = case.rows[len(figures) :]
    return [
        *figures,
        *(Measured(**row._asdict(), error=error) for row in left),
    ], stopwatch.longest_turn


def _measured(row: Row, figure: Figure) -> Measured:
    value = float(figure.value)
    return Measured(**row._asdict(), value=value, at_least=figure.at_least)


def _measure_named(name: str, quick: bool) -> tuple[list[Measured], Figure]:
    return measure(all_cases(quick)[name])


def run(names: Sequence[str], quick: bool) -> Iterable[Measured]:
    """Run each case in a process of its own; yield its figures, then the longest decision."""
    longest, where = Figure(0.0), ""
    processes = multiprocessing.get_context("spawn")
    for name in names:
        with ProcessPoolExecutor(1, mp_context=processes) as executor:
            figures, turn = executor.submit(_measure_named, name, quick).result()
        yield from figures
        if all_cases(quick)[name].is_ordinary and turn >= longest:
            longest, where = turn, name
    figure = _measured(_LONGEST, Figure(1e3 * longest.value, longest.at_least))
    yield msgspec.structs.replace(figure, note=f"in case {where}")


def line(one: Measured) -> str:
    """Return the line of the table."""
    missed = "MISSED" if one.is_missed else ""
    words = " ".join(filter(None, (missed, one.note)))
    return f"{one.name:<99} {one.text:>12}  {one.budget_text:<10} {words}".rstrip()


def markdown(runs: Sequence[Sequence[Measured]]) -> list[str]:
    """Return the rows of a table with a column for each run, by the names of the first run."""
    by_name = [{one.name: one for one in run} for run in runs]
    rows = []
    for one in runs[0]:
        others = (figures.get(one.name) for figures in by_name)
        cells = (other.text if other else "" for other in others)
        rows.append(f"| {' | '.join([one.name, one.budget_text, *cells])} |")
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.core_bench", description=__doc__)
    parser.add_argument("--case", action="append", choices=all_cases(), help="only this one")
    parser.add_argument("--quick", action="store_true", help="small sizes: seconds, for a test")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument(
        "--markdown",
        type=Path,
        nargs="+",
        metavar="JSON",
        help="run nothing; print rows of a table of earlier runs, a column each",
    )
    options = parser.parse_args(arguments)
    if options.markdown:
        files = [path.read_bytes() for path in options.markdown]
        print("\n".join(markdown([msgspec.json.decode(raw, type=list[Measured]) for raw in files])))
        return
    figures = []
    for one in run(options.case or list(all_cases()), options.quick):
        figures.append(one)
        print(line(one), flush=True)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")


if __name__ == "__main__":
    main()
