"""``quorate up --background`` and ``quorate down``: a cluster that outlives the command line.

In: the words of the command line. Out: a process of its own that serves the cluster, and what it
said when it was ready. Exit code 2 when it could not start, or when there is none to stop.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from quorate.cli import processes
from quorate.cli.show import output

LOG = "QUORATE_UP_LOG"
"""Tells the process in the background where its words go; it removes that file at its end."""
_OPTION = "--background"
_READY = " stops the cluster. "
_LOOK_S = 0.05
_START_S_MAX = 120.0
_STOP_S_MAX = 30.0


def up(words: Sequence[str]) -> int:
    """Start the same command in the background; return when its cluster is ready."""
    with tempfile.NamedTemporaryFile(prefix="quorate-up-", suffix=".log", delete=False) as log:
        path = Path(log.name)
        process = subprocess.Popen(
            [sys.executable, "-m", "quorate.cli", *(word for word in words if word != _OPTION)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, LOG: log.name},
        )
    deadline_s = time.monotonic() + _START_S_MAX
    said = ""
    while _READY not in said and process.poll() is None and time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)
        with contextlib.suppress(OSError):
            said = path.read_text(errors="replace")
    if process.poll() is not None:
        path.unlink(missing_ok=True)
        return output.error(said.removeprefix("Error: ") or "the cluster ended as it started")
    if _READY not in said:
        process.terminate()
        return output.error(f"the cluster was not ready within {_START_S_MAX:.0f} s; see {path}")
    for line in said.splitlines():
        output.say(line)
    return 0


def down(pid: int | None) -> int:
    """Stop process ``pid``, or the only cluster; return the exit code."""
    if not (processes.PROC / "self").exists():
        return output.error(f"this system has no {processes.PROC}: end the process yourself")
    found = processes.of_quorate(("up",), catching=signal.SIGTERM)
    if pid is not None and pid not in found:
        return output.error(f"process {pid} is no quorate up of yours")
    if pid is None and len(found) != 1:
        nobody = "no quorate up of yours runs here"
        return output.error(processes.told(found) if found else nobody)
    chosen = found[0] if pid is None else pid
    words = processes.command_line(chosen)
    os.kill(chosen, signal.SIGTERM)
    deadline_s = time.monotonic() + _STOP_S_MAX
    while words and processes.command_line(chosen) == words:
        if time.monotonic() > deadline_s:
            return output.error(f"process {chosen} still runs after {_STOP_S_MAX:.0f} s")
        time.sleep(_LOOK_S)
    output.say(f"The cluster of process {chosen} is stopped.")
    return 0
