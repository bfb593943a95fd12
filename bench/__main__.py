"""Command line of the benchmark on a real API server: ``python -m bench --help``."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from bench.cluster import report, shape_report
from bench.cluster.cases import CASES
from bench.cluster.gang_bench import ClusterBench
from bench.cluster.measurement import BenchError, Result
from bench.cluster.shape_bench import ShapeBench, peers_of
from bench.cluster.shapes import SHAPES
from bench.peers.build import build_coscheduling, say
from bench.peers.processes import PEERS
from tools.controlplane import ComponentError
from tools.controlplane.build import BuildError, build
from tools.controlplane.golang import GoError

_CASES = [case.name for case in CASES]
_SHAPES = [shape.name for shape in SHAPES]
_GROUPS = {"gangs": _CASES, "shapes": _SHAPES}


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen cases; give the exit code: 1 if any run failed."""
    options = _parser().parse_args(arguments)
    names = _split(options.peers, list(PEERS), "peer")
    chosen = _split(options.case, [*_GROUPS, *_CASES, *_SHAPES], "case")
    wanted = {name for one in chosen for name in _GROUPS.get(one, [one])}
    results: list[Result] = []
    try:
        build(say)
        _measure_gangs(names, wanted, options.runs, results)
        _measure_shapes(names, wanted, options.runs, results)
    except (GoError, BuildError, BenchError, ComponentError) as error:
        print(f"Error: {error}", file=sys.stderr)
        if not results:
            return 1
    except KeyboardInterrupt:
        say("interrupted; showing what there is")
    console = Console(width=160)
    report.print_tables(results, console)
    shape_report.print_table(results, console)
    report.print_errors(results, console)
    if options.json:
        options.json.write_text(json.dumps(report.to_json(results), indent=2) + "\n")
        say(f"all values: {options.json}")
    return 1 if any(result.error for result in results) or not results else 0


def _measure_gangs(names: list[str], wanted: set[str], runs: int, results: list[Result]) -> None:
    cases = [case for case in CASES if case.name in wanted]
    peers = [PEERS[name] for name in names if name != "kube-scheduler"]  # it knows no gangs
    if not cases or not peers:
        return
    if "coscheduling" in names:
        build_coscheduling(say)
    with ClusterBench(say) as bench:
        for case in cases:
            results.extend(bench.measure(case, peers, runs))


def _measure_shapes(names: list[str], wanted: set[str], runs: int, results: list[Result]) -> None:
    chosen = [shape for shape in SHAPES if shape.name in wanted]
    peers = peers_of(names)
    if not chosen or not peers:
        return
    with ShapeBench(say) as bench:
        for shape in chosen:
            results.extend(bench.measure(shape, peers, runs))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    cases = ", ".join([*_GROUPS, *_CASES, *_SHAPES])
    parser.add_argument("--case", default="", help=f"comma-separated: {cases} (all)")
    parser.add_argument("--peers", default="", help=f"comma-separated: {', '.join(PEERS)} (all)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case by each peer (3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values to this file")
    return parser


def _split(chosen: str, known: list[str], what: str) -> list[str]:
    names = [name for name in chosen.split(",") if name] or known
    for name in names:
        if name not in known:
            print(f"There is no {what} {name}; choose of: {', '.join(known)}", file=sys.stderr)
            raise SystemExit(2)
    return names


if __name__ == "__main__":
    sys.exit(main())
