"""``python -m simulate``: replay one seed, or soak many."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from simulate import logs
from simulate.large import run_large
from simulate.run import Outcome, Run, run
from simulate.soak import soak


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; return 1 when a promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m simulate",
        description="Run the scheduler under virtual time, with faults that a seed drives.",
    )
    parser.add_argument("--seed", type=int, default=1, help="the seed, or a soak's first (1)")
    parser.add_argument("--soak", type=int, metavar="N", help="run N seeds")
    parser.add_argument("--processes", type=int, default=0, help="one for each core by default")
    parser.add_argument("--large", action="store_true", help="run the large world of the seed")
    parser.add_argument("--no-themes", action="store_true", help="run the seed without themes")
    parser.add_argument("--trace", action="store_true", help="print what happens, for one seed")
    given = parser.parse_args(arguments)
    if given.soak is None:
        return _one(given)
    summary = soak(
        given.soak,
        given.seed,
        processes=given.processes,
        with_themes=not given.no_themes,
        on_failure=partial(_tell, has_themes=not given.no_themes),
    )
    tables = (
        ("faults", summary.faults),
        ("checks", summary.checks),
        ("themes", summary.themes),
        ("met", summary.met),
    )
    for kind, counted in tables:
        _say(f"{kind}: " + ", ".join(f"{name} {count}" for name, count in counted.most_common()))
    _say(summary.line)
    return 1 if summary.failed else 0


def _one(given: argparse.Namespace) -> int:
    seed = given.seed
    logs.set_up(traced=given.trace)

    def prepare(one: Run) -> None:
        if given.trace:
            one.trace(_say)

    themes = () if given.no_themes else None
    outcome = run_large(seed) if given.large else run(seed, prepare, themes=themes)
    for violation in outcome.violations:
        _say(f"violation at {violation}")
    _say(
        f"seed {seed} ({', '.join(outcome.themes) or 'no theme'}): "
        f"{outcome.steps} steps, {outcome.virtual_s:.1f} virtual seconds, "
        f"{sum(outcome.faults.values())} faults, {sum(outcome.checks.values())} checks, "
        f"{len(outcome.violations)} violations, trace {outcome.digest[:16]}"
    )
    return 1 if outcome.violations else 0


def _tell(outcome: Outcome, *, has_themes: bool) -> None:
    for violation in outcome.violations:
        _say(f"seed {outcome.seed}: violation at {violation}")
    _say(f"  replay: {replay(outcome.seed, has_themes=has_themes)}")


def replay(seed: int, *, has_themes: bool) -> str:
    """Return the command that plays a seed alone, with the themes that it draws or with none."""
    return f"make sim SEED={seed}" + ("" if has_themes else " ARGS=--no-themes")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
