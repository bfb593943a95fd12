"""``make test``, ``make test-real``: run commands, two at a time, and show what failed.

In: the name of a tier, perhaps names of its stages. Out: a line for each stage; what a stage that
failed has printed, whole; exit code 0 when all passed. Called by the Makefile; ``explore`` runs its
commands by it.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.controlplane.versions import OPERATORS, TOOLS
from tools.signals import heeding_signals, stop_if_asked
from tools.testing import in_ci

AT_ONCE = 2
SAY_AGAIN_S = 30.0
GRACE_S = 30.0
"""How long stages may take to stop their clusters after Ctrl-C; then they are killed."""


class Stage(NamedTuple):
    """One command."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """Stages that have to be over before this one begins."""


def _python(name: str, module: str, *arguments: str, needs: tuple[str, ...] = ()) -> Stage:
    return Stage(name, (sys.executable, "-m", module, *arguments), needs)


def _tests(
    name: str, *arguments: str, mark: str = "not explore", needs: tuple[str, ...] = ()
) -> Stage:
    return _python(name, "pytest", "-q", "-m", mark, *arguments, needs=needs)


def _after(first: Sequence[Stage], *then: Stage) -> tuple[Stage, ...]:
    """Return all of them; of those that come then each begins when all the first are over."""
    names = tuple(one.name for one in first)
    return (*first, *(one._replace(needs=(*names, *one.needs)) for one in then))


_STEALING = ("-n2", "--dist", "worksteal")  # long tests come last: they are shared out again
_BY_FILE = ("-n2", "--dist", "loadfile")

TEST = (
    Stage("check", ("make", "--no-print-directory", "check", "docs")),
    _tests("e2e", "-n4", "--dist", "loadfile", "tests/e2e", "--cluster=embedded"),
    _tests(
        "unit",
        *_STEALING,
        *("tests/unit", "tests/property", "tests/simulation"),
        *("embedded/tests/unit", "embedded/tests/test_own.py"),
    ),
)
_BUILDS = (
    _python("build-controlplane", "tools.controlplane", "build", "--if-possible"),
    _python("build-companions", "tools.controlplane", "build", "kwok", *TOOLS, "--if-possible"),
    _python("build-operators", "tools.controlplane", "build", *OPERATORS, "--if-possible"),
    _python(
        *("build-oracle", "tools.oracle", "build", "--tables", "--if-possible"),
        needs=("build-controlplane",),
    ),
)
REAL = _after(
    _BUILDS,
    # Five have control planes of their own, at most two: each waits for those before it.
    _tests(*("e2e-real", *_BY_FILE, "tests/e2e", "--cluster=real"), mark="core and not explore"),
    _tests("hostile", *_BY_FILE, "tests/hostile", needs=("e2e-real",)),
    _tests("differential", "-n0", "embedded/tests/differential", needs=("e2e-real", "hostile")),
    _tests("chart", *_BY_FILE, "tests/chart", needs=("e2e-real", "hostile", "differential")),
    _tests(
        *("operators", "-n2", "tests/operators"),  # shared out as its conftest says
        needs=("e2e-real", "hostile", "differential", "chart"),
    ),
    # These may run beside them.
    _tests("clients", *_BY_FILE, "embedded/tests/clients", "tests/clients", "tests/up"),
    _tests("parity", *_STEALING, "tests/oracle", "tests/parity"),
    _tests("image", "-n0", "tests/image"),
)
TIERS = {"test": TEST, "real": REAL}


class Running:
    """A stage that has begun. What it prints goes to a file; its processes are a group."""

    def __init__(
        self, stage: Stage, folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.stage = stage
        self._began_s = time.monotonic()
        self._file = folder / stage.name
        with self._file.open("wb") as file:
            self.process = subprocess.Popen(
                stage.command,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def output(self) -> str:
        """Return all that it has printed."""
        return self._file.read_text(errors="replace")

    def line(self) -> str:
        """Return its name, how long it runs, and how far pytest is or what it said at its end."""
        said = self.output()[-4000:]
        shares = re.findall(r"\[ *(\d+)%\]", said)
        ends = re.findall(r"^(\d+ \w+.*) in [\d.]+s", said, re.MULTILINE)
        how = f" {ends[-1]}" if ends else f" {shares[-1]} %" if shares else ""
        return f"{self.stage.name} {time.monotonic() - self._began_s:.0f} s{how}"

    def send(self, number: int) -> None:
        """Send a signal to all of its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def run(stages: Sequence[Stage], folder: Path, *, keep_going: bool) -> int:
    """Run all; return 0, or 1 when one failed. At an exception, Ctrl-C too, all are stopped.

    After a failure nothing more begins, unless ``keep_going``.
    """
    waiting, running, failed = list(stages), list[Running](), list[str]()
    said_s = time.monotonic()
    try:
        while running or (waiting and (keep_going or not failed)):
            stop_if_asked()
            if (keep_going or not failed) and len(running) < AT_ONCE:
                to_end = {one.name for one in (*waiting, *(one.stage for one in running))}
                stage = next((one for one in waiting if to_end.isdisjoint(one.needs)), None)
                if stage:
                    waiting.remove(stage)
                    running.append(Running(stage, folder))
            time.sleep(0.1)
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                code = one.process.returncode
                if code:
                    failed.append(one.stage.name)
                    print(one.output().rstrip("\n"))
                    print(f"FAILED with exit code {code}: {one.line()}", flush=True)
                else:
                    print(f"passed: {one.line()}", flush=True)
            if running and time.monotonic() - said_s > SAY_AGAIN_S:
                said_s = time.monotonic()
                print("running:", " · ".join(one.line() for one in running), flush=True)
    finally:
        stop(running)
    if failed:
        left = f"; not run: {', '.join(one.name for one in waiting)}" if waiting else ""
        print(f"failed: {', '.join(failed)}{left}")
    return int(bool(failed))


def stop(running: Sequence[Running]) -> None:
    """Let all of these end themselves; kill those that do not."""
    for one in running:
        one.send(signal.SIGINT)
    deadline_s = time.monotonic() + GRACE_S
    for one in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.process.wait(max(0.0, deadline_s - time.monotonic()))
        one.send(signal.SIGKILL)
        one.process.wait()


def main() -> int:
    """Run what the command line names; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.stages", description=__doc__)
    parser.add_argument("tier", choices=TIERS)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these of the tier")
    parser.add_argument(
        "--keep-going",
        action="store_true",
        default=in_ci(),
        help="run all that is left after one has failed (as in CI)",
    )
    options = parser.parse_args()
    known = {stage.name: stage for stage in TIERS[options.tier]}
    if unknown := set(options.stages) - known.keys():
        parser.error(f"no stage is called {unknown.pop()}; there are: {', '.join(known)}")
    picked = [known[name] for name in options.stages or known]
    with tempfile.TemporaryDirectory(prefix="quorate-test-") as folder:
        return run(picked, Path(folder), keep_going=options.keep_going)


if __name__ == "__main__":
    sys.exit(heeding_signals(main))
