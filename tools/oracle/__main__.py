"""Command line: build the oracle, or ask it the cases of a file (one JSON per line; - is stdin)."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from tools.controlplane.build import BuildError
from tools.controlplane.cluster import say
from tools.controlplane.golang import GoError
from tools.oracle.asking import Oracle, OracleError
from tools.oracle.build import binary, build
from tools.oracle.tables import upstream_tables
from tools.oracle.tables.recording import TablesError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; give the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "build":
            return _build(if_possible=options.if_possible, tables=options.tables)
        return _ask(options.file, _gates(options.features))
    except (GoError, BuildError, OracleError, TablesError, OSError, ValueError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _build(*, if_possible: bool, tables: bool) -> int:
    already_built = binary().is_file()
    try:
        path = build(say)
        count = len(upstream_tables()) if tables else 0
    except GoError as error:
        if not if_possible or os.environ.get("CI"):
            raise
        print(f"{error}\nThe tests that ask kube-scheduler's plugins are skipped without it.")
        return 0
    if already_built:
        print(f"Built already: {path}")
    if tables:
        print(f"{count} cases of the scheduler's own table tests")
    return 0


def _ask(file: str, features: dict[str, bool]) -> int:
    text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    cases = [json.loads(line) for line in text.splitlines() if line.strip()]
    with Oracle(features=features) as oracle:
        start_s = time.monotonic()
        for answer in oracle.ask_all(cases):
            print(json.dumps(answer))
        print(f"{len(cases)} cases in {time.monotonic() - start_s:.2f} s", file=sys.stderr)
    return 0


def _gates(text: str) -> dict[str, bool]:
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {name: value == "true" for name, _, value in pairs}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.oracle", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build the oracle if the cache has it not")
    building.add_argument(
        "--if-possible",
        action="store_true",
        help="where Go cannot be had, say so and go on (but not in CI)",
    )
    building.add_argument(
        "--tables",
        action="store_true",
        help="also run the scheduler's own table tests and keep their cases",
    )
    asking = commands.add_parser("ask", help="print the answers to the cases of a file")
    asking.add_argument("file")
    asking.add_argument("--features", default="", help="feature gates: A=true,B=false")
    return parser


if __name__ == "__main__":
    sys.exit(main())
