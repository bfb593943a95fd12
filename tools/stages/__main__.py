"""``python -m tools.stages``: run the stages, or those named; 0 when all passed, 130 at Ctrl-C."""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from tools.stages.plan import stages
from tools.stages.process import adopt_orphans
from tools.stages.run import Run
from tools.stages.screen import Screen

_MORE_THAN_CORES = 0.5
"""Stages wait now and then: a little more than the cores can do at once keeps them busy."""


def main() -> int:
    """Run; return the exit code."""
    known = {stage.name: stage for stage in stages()}
    options = _options(sorted(known))
    chosen = options.stages or list(known)
    picked = [
        stage._replace(after=tuple(name for name in stage.after if name in chosen))
        for stage in known.values()
        if stage.name in chosen
    ]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="quorate-test-") as folder:
        cores = options.cores or (os.cpu_count() or 1) + _MORE_THAN_CORES
        run = Run(picked, Path(folder), Screen(), cores=cores, keep_going=options.keep_going)
        try:
            return run.play()
        except KeyboardInterrupt as stopped:
            print("\nStopped; nothing is left behind.")
            return 128 + int(str(stopped) or signal.SIGINT)


def _stop(number: int, _frame: FrameType | None) -> None:
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)  # the end is near, and must not be cut short
    raise KeyboardInterrupt(int(number))


def _options(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make test", description="Runs all checks and tests, side by side."
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of: {'; '.join(names)}")
    parser.add_argument(
        "--keep-going",
        action="store_true",
        default=os.environ.get("CI", "").lower() in ("1", "true", "yes"),
        help="begin further stages after one has failed (as in CI)",
    )
    parser.add_argument(
        "--cores", type=float, metavar="N", help="how many cores to keep busy (those there are)"
    )
    options = parser.parse_args()
    unknown = [name for name in options.stages if name not in names]
    if unknown:
        parser.error(f"no stage is called {unknown[0]}; there are: {'; '.join(names)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
