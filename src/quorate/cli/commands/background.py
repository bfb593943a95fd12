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
from collections.abc import Iterator, Sequence
from typing import IO

from quorate.cli import processes
from quorate.cli.show import output

_ENDS = " stops the cluster."
ENDED_BY = f"Ctrl-C{_ENDS}"
"""What a cluster says when it is ready; in the background something else stops it."""
_NOBODY = "no quorate up of yours runs here"
_OPTION = "--background"
_SAID_BYTES_MAX = 1 << 16
_LOOK_S = 0.05
_START_S_MAX = 120.0
_STOP_S_MAX = 30.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def up(words: Sequence[str]) -> int:
    """Start the same command in the background; return when its cluster is ready.

    A signal that ends this process meanwhile ends the cluster first.
    """
    with _noted(*_ENDING) as asked, tempfile.TemporaryFile(prefix="quorate-up-") as said_to:
        process = subprocess.Popen(
            # -P: a folder ``quorate`` where somebody happens to stand is not what runs
            [sys.executable, "-P", "-m", "quorate.cli", *(one for one in words if one != _OPTION)],
            stdin=subprocess.DEVNULL,
            stdout=said_to,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        deadline_s = time.monotonic() + _START_S_MAX
        while process.poll() is None and time.monotonic() < deadline_s and not asked:
            if ENDED_BY in _text(said_to):
                break
            time.sleep(_LOOK_S)
        said = _text(said_to)
        ended_itself = process.poll() is not None
        if asked or ENDED_BY not in said:
            _end(process)
    if ended_itself:
        return output.error(said.removeprefix("Error: ") or "the cluster ended as it started")
    if ENDED_BY not in said:
        return output.error(f"the cluster was not ready within {_START_S_MAX:.0f} s; {said}")
    for line in said.replace(ENDED_BY, f"quorate down {process.pid}{_ENDS}").splitlines():
        output.say(line)
    return 0


@contextlib.contextmanager
def _noted(*numbers: signal.Signals) -> Iterator[list[int]]:
    """Give the signals that come meanwhile; they are sent anew at the end."""
    came: list[int] = []
    old = {int(one): signal.signal(one, lambda number, _: came.append(number)) for one in numbers}
    try:
        yield came
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()


def _text(file: IO[bytes]) -> str:
    """Return what is in a file without moving the place at which another process writes."""
    return os.pread(file.fileno(), _SAID_BYTES_MAX, 0).decode(errors="replace")


def down(pid: int | None, *, lists: bool = False) -> int:
    """Stop process ``pid``, or the only cluster; or only list all. Return the exit code."""
    if not (processes.PROC / "self").exists():
        return output.error(f"this system has no {processes.PROC}: end the process yourself")
    found = processes.of_quorate(("up",), catching=signal.SIGTERM)
    if lists:
        for one in found:
            output.say(f"{one}  {processes.what(one)}")
        if not found:
            output.say(_NOBODY, err=True)
        return 0
    if pid is not None and pid not in found:
        return output.error(f"process {pid} is no quorate up of yours")
    if pid is None and len(found) != 1:
        return output.error(processes.told(found) if found else _NOBODY)
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
