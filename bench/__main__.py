"""Command line of the benchmark on a real API server: ``python -m bench --help``."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from bench import report
from bench.cases import CASES
from bench.cluster_bench import ClusterBench
from bench.measurement import Result
from bench.peers.build import PeerBuildError, build_coscheduling, say
from bench.peers.processes import PEERS
from tools.controlplane import ComponentError
from tools.controlplane.build import BuildError, build
from tools.controlplane.golang import GoError


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen cases; give the exit code: 1 if any run failed."""
    options = _parser().parse_args(arguments)
    names = _split(options.peers, list(PEERS), "peer")
    wanted = _split(options.case, [case.name for case in CASES], "case")
    results: list[Result] = []
    try:
        build(say)
        if "coscheduling" in names:
            build_coscheduling(say)
        with ClusterBench(say) as bench:
            for case in (case for case in CASES if case.name in wanted):
                results += bench.measure(case, [PEERS[name] for name in names], options.runs)
    except (GoError, BuildError, PeerBuildError, ComponentError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("interrupted; showing what there is")
    report.print_tables(results, Console(width=160))
    if options.json:
        options.json.write_text(json.dumps(report.to_json(results), indent=2) + "\n")
        say(f"all values: {options.json}")
    return 1 if any(result.error for result in results) or not results else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    cases = ", ".join(case.name for case in CASES)
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
