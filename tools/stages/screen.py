"""What a run of stages prints: each one's output in whole when it ends, and a table at the end."""

import sys
import time
from collections.abc import Sequence
from typing import TextIO

from tools.stages.plan import Stage
from tools.stages.process import Running

SAY_AGAIN_S = 60.0
"""Where lines cannot be written anew, a line of progress comes this often."""


class Screen:
    """Where the run prints. On a terminal the line of progress is written anew."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._is_terminal = out.isatty()
        self._said_s = time.monotonic()
        self._shown = ""

    def ended(self, one: Running) -> None:
        """Print all that a stage has printed, between two lines that name it."""
        how = "passed" if one.code == 0 else f"FAILED with exit code {one.code}"
        self._say(f"──── {one.stage.name} ────", one.output().rstrip("\n"))
        self._say(f"──── {one.stage.name}: {how} in {clock(one.took_s)} ────", "")

    def progress(self, running: Sequence[Running]) -> None:
        """Say what runs, how long, and how much of it is done."""
        now_s = time.monotonic()
        if now_s - self._said_s < (1.0 if self._is_terminal else SAY_AGAIN_S) or not running:
            return
        self._said_s = now_s
        parts = []
        for one in running:
            share = f" ({one.share()})" if one.share() else ""
            parts.append(f"{one.stage.name} {clock(now_s - one.started_s)}{share}")
        line = "running: " + " · ".join(parts)
        if self._is_terminal:
            self._clear()
            self._shown = line
            self._out.write(line)
            self._out.flush()
        else:
            self._say(line)

    def summary(
        self, ended: Sequence[Running], not_begun: Sequence[Stage], left_behind: int
    ) -> None:
        """Print a row for each stage, and then once more what the first that failed has printed."""
        failed = [one for one in ended if one.code]
        rows = [("stage", "tests", "seconds", "CPU s", "")]
        for one in ended:
            counts = one.counts()
            others = ", ".join(f"{n} {what}" for what, n in counts.items() if what != "passed")
            how = "" if one.code == 0 else f"FAILED ({one.code})"
            said = ", ".join(part for part in (how, others) if part)
            tests = str(counts["passed"]) if "passed" in counts else "-"
            rows.append((one.stage.name, tests, f"{one.took_s:.0f}", f"{one.cpu_s:.0f}", said))
        rows += [(stage.name, "-", "-", "-", "not run") for stage in not_begun]
        width = max(len(row[0]) for row in rows)
        for name, tests, seconds, cpu, said in rows:
            self._say(f"{name:<{width}}  {tests:>6}  {seconds:>7}  {cpu:>6}  {said}".rstrip())
        if left_behind:
            self._say(f"{left_behind} processes of these stages still ran, and were killed.")
        if failed:
            one = failed[0]
            self._say("", f"The first that failed was {one.stage.name}. It printed:")
            self._say("", one.output().rstrip("\n"))

    def _say(self, *lines: str) -> None:
        self._clear()
        for line in lines:
            self._out.write(f"{line}\n")
        self._out.flush()

    def _clear(self) -> None:
        if self._shown:
            self._out.write("\r" + " " * len(self._shown) + "\r")
            self._shown = ""


def clock(seconds: float) -> str:
    """Give a time as ``m:ss``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
