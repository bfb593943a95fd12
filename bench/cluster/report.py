"""Show the results: a table for people, JSON for everything else.

In: results of ``gang_bench``. Out: text with the medians and their ratios, and JSON with all raw
values, versions and the machine's size. Called by ``python -m bench``.
"""

import dataclasses
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.cluster.cases import CASES
from bench.cluster.measurement import Result
from bench.cluster.shapes import SHAPES
from bench.peers import build
from bench.peers.processes import PEERS
from quorate import __version__
from tools.controlplane import versions

_PACKAGES = ("aiohttp", "msgspec", "numpy")


def print_tables(results: Sequence[Result], console: Console) -> None:
    """Print one table for each case that has results."""
    for case in CASES:
        of_case = [result for result in results if result.case == case.name]
        if not of_case:
            continue
        table = Table(title=case.title, title_justify="left", title_style="bold")
        table.add_column("scheduler")
        numbers = ["runs", "median s", "min s", "max s", "x ceiling", "x native", "CPU ms/bind"]
        if case.hold_s:
            held = f"{case.hold_s:.0f} s"
            numbers += [f"whole after {held}", "in part", f"CPU s in {held}", "idle CPU %"]
        for name in numbers:
            table.add_column(name, justify="right")
        for peer in PEERS.values():
            runs = [result for result in of_case if result.peer == peer.name]
            if runs:
                table.add_row(peer.title, *_row(runs, of_case, hold=case.hold_s > 0))
        console.print(table)


def print_errors(results: Sequence[Result], console: Console) -> None:
    """Print what was wrong with the runs that failed."""
    for result in results:
        if result.error:
            console.print(f"{result.case}, {result.peer}, run {result.run + 1}: {result.error}")


def to_json(results: Sequence[Result]) -> dict[str, Any]:
    """Give everything that was seen, and on what."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "memory_gib": round(_memory_bytes() / 2**30, 1),
        "platform": platform.platform(),
        "versions": {
            "quorate": __version__,
            "python": platform.python_version(),
            "kubernetes": versions.KUBERNETES,
            "scheduler-plugins": build.SCHEDULER_PLUGINS,
            **{name: metadata.version(name) for name in _PACKAGES},
        },
        "cases": [dataclasses.asdict(case) for case in CASES],
        "shapes": [dataclasses.asdict(shape.as_case()) for shape in SHAPES],
        "results": [dataclasses.asdict(result) for result in results],
    }


def _row(runs: Sequence[Result], of_case: Sequence[Result], *, hold: bool) -> list[str]:
    seconds = [result.seconds for result in runs if result.seconds is not None]
    mine = _median(runs, lambda result: result.seconds)
    cells = [
        f"{len(seconds)}/{len(runs)}",
        _shown(mine, 2),
        _shown(min(seconds, default=None), 2),
        _shown(max(seconds, default=None), 2),
    ]
    for name in ("ceiling", "native"):
        other = _median([r for r in of_case if r.peer == name], lambda result: result.seconds)
        cells.append(_shown(mine / other if mine is not None and other else None, 2))
    cells.append(_shown(_median(runs, lambda result: result.cpu_ms_per_bind), 2))
    if hold:
        whole = sorted(result.whole for result in runs)
        partial = sorted(result.partial for result in runs)
        cells += [str(statistics.median_low(whole)), str(statistics.median_high(partial))]
        cells.append(_shown(_median(runs, lambda result: result.hold_cpu_s), 1))
        cells.append(_shown(_median(runs, lambda result: result.idle_cpu_percent), 1))
    return cells


def _median(runs: Sequence[Result], value: Callable[[Result], float | None]) -> float | None:
    """Give the median over the runs that have a value, provided that they are most."""
    values = [number for result in runs if (number := value(result)) is not None]
    return statistics.median(values) if values and 2 * len(values) > len(runs) else None


def _shown(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _memory_bytes() -> int:
    if Path("/proc/meminfo").exists():
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0
