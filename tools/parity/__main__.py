"""``make parity``: compare random cases with kube-scheduler; the last line is the summary."""

from __future__ import annotations

import argparse
import json
import sys

from tools.controlplane.golang import GoError
from tools.oracle import Oracle, OracleError
from tools.parity.cases import draw_case
from tools.parity.checking import Tally, check_seeds, differs
from tools.parity.seeded import Seeded
from tools.parity.shrink import shrink

_SHOWN_MAX = 5
_PROGRESS_EVERY = 1000


def main() -> int:
    """Return 0 when all cases agree, 1 when some differ, 2 when nothing could be compared."""
    parser = argparse.ArgumentParser(prog="make parity", description=__doc__)
    parser.add_argument("count", type=int, help="how many cases")
    parser.add_argument("seed", type=int, help="the first seed; each case has its own")
    args = parser.parse_args()
    try:
        with Oracle() as oracle:
            seeds = range(args.seed, args.seed + args.count)
            tally = check_seeds(oracle, seeds, on_case=_show_progress)
            for seed, found in tally.different[:_SHOWN_MAX]:
                _show(oracle, seed, found)
    except GoError as error:
        print(error, file=sys.stderr)
        return 2
    print(tally.summary())
    return 1 if tally.different else 0


def _show_progress(tally: Tally) -> None:
    if tally.cases % _PROGRESS_EVERY == 0:
        print(f"  {tally.cases} cases, {len(tally.different)} differ", flush=True)


def _show(oracle: Oracle, seed: int, found: list[str]) -> None:
    def still_differs(case: dict[str, object]) -> bool:
        try:
            return _kind(differs(oracle, case)) == _kind(found)
        except (OracleError, KeyError, StopIteration, AssertionError):
            return False

    print(f"\nseed {seed}:", *found, sep="\n  ")
    print("smallest case that differs (a fixture for tests/parity/fixtures):")
    print(json.dumps(shrink(draw_case(Seeded(seed)), still_differs)))


def _kind(found: list[str]) -> str:
    """Return what the first difference is about: a case must not become another as it shrinks."""
    return found[0].rpartition(": ours ")[0].rpartition(": ")[2] if found else "none"


if __name__ == "__main__":
    sys.exit(main())
