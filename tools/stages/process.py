"""One stage as a process of its own, and how nothing of it is left.

What a stage prints goes to a file, read when it ends. Its processes are a group, which gets Ctrl-C
as a terminal would give it. On Linux what has left the group and lost its parent becomes our child,
and is ended, too.
"""

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

from tools.stages.plan import Stage

GRACE_S = 30.0
"""How long a stage may take to stop its clusters after Ctrl-C; then it is killed."""
_PR_SET_CHILD_SUBREAPER = 36
_COUNTED = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)\b")
_SUMMARY = re.compile(r"^[= ]*(?:\d+ \w+(?:, )?)+ in [\d.:]+s?\b.*$", re.MULTILINE)
_SHARE = re.compile(r"\[ *(\d+)%\]")


def adopt_orphans() -> None:
    """Become the parent of all that descends from us and has lost its own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Running:
    """A stage that has begun."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage = stage
        self.started_s = time.monotonic()
        self.took_s = 0.0
        self.cpu_s = 0.0
        """Of all its processes that were waited for, clusters included."""
        self.code: int | None = None
        self._file = folder / f"{re.sub('[^a-z0-9]+', '-', stage.name)}.log"
        with self._file.open("wb") as file:
            self._process = subprocess.Popen(
                stage.command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def ended(self) -> bool:
        """Return whether it has ended; if so, its code and its times are known."""
        if self.code is not None:
            return True
        pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        if not pid:
            return False
        self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.took_s = time.monotonic() - self.started_s
        self.cpu_s = usage.ru_utime + usage.ru_stime
        return True

    def send(self, number: int) -> None:
        """Send a signal to all of its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def output(self) -> str:
        """Return all that it has printed."""
        return self._file.read_text(errors="replace")

    def counts(self) -> dict[str, int]:
        """Return how many tests passed, failed, ... as pytest's last lines say; {} without any."""
        found: dict[str, int] = {}
        for line in _SUMMARY.findall(self.output()):
            for count, what in _COUNTED.findall(line):
                found[what] = found.get(what, 0) + int(count)
        return found

    def share(self) -> str:
        """Return how much of it is done, as pytest says, such as ``41 %``; "" if unknown."""
        shares = _SHARE.findall(self.output()[-4000:])
        return f"{shares[-1]} %" if shares else ""


def stop(running: list[Running], grace_s: float = GRACE_S) -> None:
    """End stages: as Ctrl-C does, and after a while for good."""
    for one in running:
        one.send(signal.SIGINT)
    deadline_s = time.monotonic() + grace_s
    while not all([one.ended() for one in running]):
        if time.monotonic() > deadline_s:
            for one in running:
                one.send(signal.SIGKILL)
        time.sleep(0.05)


def end_orphans(known: Collection[int]) -> int:
    """Kill what stages left behind, if this platform tells; return how many there were.

    ``known`` are children that we had before: they are none of the stages' business.
    """
    ended = 0
    while children := [pid for pid in children_of_ours() if pid not in known and _runs(pid)]:
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        ended += len(children)
    return ended


def _runs(pid: int) -> bool:
    """Whether a child still runs; one that has only to be waited for is waited for."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def children_of_ours() -> list[int]:
    """Return the process ids of our children, if this platform tells."""
    try:
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:
        return []
    return [int(pid) for pid in listed.split()]
