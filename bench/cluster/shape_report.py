"""Show the results of scheduler_perf's shapes: pods per second of each scheduler, and the ratio.

Of a shape whose pods are created at a pace: how long each of them waited.

In: results of ``shape_bench``. Out: one table. Called by ``python -m bench``.
"""

import math
import statistics
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from bench.cluster.measurement import Result
from bench.cluster.shape_bench import PEER_NAMES, pods_per_s
from bench.cluster.shapes import NODES, SHAPES, Shape


def print_table(results: Sequence[Result], console: Console) -> None:
    """Print one row for each shape that has results; nothing when none has."""
    table = Table(
        title=f"shapes of scheduler_perf on {NODES:,} nodes: pods/s, first creation to last bind",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("shape")
    for name in ("pods", *PEER_NAMES, "ratio", "wanted", "", "CPU ms/bind", "load"):
        table.add_column(name, justify="right")
    waits = Table(title="ms from created to bound, of all pods", title_justify="left")
    for name in ("shape", "peer", "p50", "p90", "p99", "not bound"):
        waits.add_column(name, justify="left" if name in {"shape", "peer"} else "right")
    for shape in SHAPES:
        of_shape = [result for result in results if result.case == shape.name]
        if of_shape and shape.created_per_s:
            for cells in wait_rows(shape, of_shape):
                waits.add_row(shape.title, *cells)
        elif of_shape:
            table.add_row(shape.title, f"{shape.measured:,}", *row(shape, of_shape))
    for one in (table, waits):
        if one.row_count:
            console.print(one)


def wait_rows(shape: Shape, results: Sequence[Result]) -> Iterator[list[str]]:
    """Return the cells of each peer: how long pods of one shape waited, over all its runs."""
    runs = {
        name: [one for one in results if one.peer == name and not one.error] for name in PEER_NAMES
    }
    p99_s = {}
    for name in PEER_NAMES:
        waits_s = [wait_s for one in runs[name] for wait_s in one.created_to_bound_s]
        of_hundred = statistics.quantiles(waits_s, n=100) if len(waits_s) > 1 else [math.nan] * 99
        p99_s[name] = of_hundred[98]
        missing = sum(shape.measured - one.binds for one in runs[name])
        shown = [f"{1000 * of_hundred[share - 1]:.0f}" for share in (50, 90, 99)]
        yield [name, *shown, f"{missing:,}"]
    ratio = p99_s["quorate"] / p99_s["kube-scheduler"]
    yield ["p99, ratio", "", "", f"{ratio:.2f}, wanted <= 1.0{', MISSED' if ratio > 1 else ''}", ""]


def row(shape: Shape, results: Sequence[Result]) -> list[str]:
    """Return the cells of one shape: medians with their ranges, and whether the target is met."""
    speeds = {name: _speeds(shape, results, name) for name in PEER_NAMES}
    ours, theirs = (statistics.median(speeds[name] or [0.0]) for name in PEER_NAMES)
    ratio = ours / theirs if ours and theirs else None
    cpu = [_cpu_ms(results, name) for name in PEER_NAMES]
    load = max(result.other_cores for result in results)
    return [
        *(_shown(shape, results, name, speeds[name]) for name in PEER_NAMES),
        "-" if ratio is None else f"{ratio:.2f}",
        f">= {shape.target:.1f}",
        "MISSED" if ratio is not None and ratio < shape.target else "",
        " / ".join(cpu),
        f"{load:.1f}",
    ]


def _speeds(shape: Shape, results: Sequence[Result], name: str) -> list[float]:
    return [
        pods_per_s(shape, result) for result in results if result.peer == name and not result.error
    ]


def _shown(shape: Shape, results: Sequence[Result], name: str, speeds: Sequence[float]) -> str:
    if not speeds:
        return "-"
    text = f"{statistics.median(speeds):,.0f}"
    if len(speeds) > 1:
        text += f" ({min(speeds):,.0f} to {max(speeds):,.0f})"
    least = min(result.binds for result in results if result.peer == name and not result.error)
    return text if least >= shape.measured else f"{text}, only {least:,} bound"


def _cpu_ms(results: Sequence[Result], name: str) -> str:
    values = [
        result.cpu_ms_per_bind
        for result in results
        if result.peer == name and result.cpu_ms_per_bind is not None
    ]
    return f"{statistics.median(values):.2f}" if values else "-"
