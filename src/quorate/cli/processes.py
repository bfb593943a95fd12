"""quorate's processes on this machine, or in this container, as ``/proc`` of Linux shows them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path

PROC = Path("/proc")
_NAMES = ("quorate", "quorate.cli", "kubectl-quorate")


def of_quorate(commands: Collection[str], *, catching: signal.Signals) -> list[int]:
    """Return this user's processes of these commands that wait for a signal, in order."""
    found = [
        int(folder.name)
        for folder in PROC.iterdir()
        if folder.name.isdigit() and _is_one(folder, commands, catching)
    ]
    return sorted(found)


def told(pids: Collection[int]) -> str:
    """Return how many run, and which they are: ``2 run: 4711 (up in /work), 4712 (run in /)``."""
    return f"{len(pids)} run: {', '.join(f'{pid} ({what(pid)})' for pid in pids)}; name one"


def command_line(pid: int) -> str:
    """Return the words of a process, each with a null behind it; "" when it has ended."""
    try:
        return (PROC / str(pid) / "cmdline").read_text(errors="replace")
    except OSError:
        return ""


def what(pid: int) -> str:
    """Return command and working folder of a process, as far as this user may know."""
    folder = PROC / str(pid)
    try:
        words = (folder / "cmdline").read_text(errors="replace").split("\0")
        names = [word.rpartition("/")[2] for word in words]
        pairs = pairwise(names)
        command = next((to for name, to in pairs if name in _NAMES), "quorate")
        return f"{command} in {(folder / 'cwd').readlink()}"
    except OSError:
        return "quorate"


def _is_one(folder: Path, commands: Collection[str], catching: signal.Signals) -> bool:
    try:
        words = (folder / "cmdline").read_text(errors="replace").split("\0")
        status = (folder / "status").read_text()
        owner = folder.stat().st_uid
    except OSError:  # it has ended
        return False
    names = [word.rpartition("/")[2] for word in words]
    runs = any(name in _NAMES and command in commands for name, command in pairwise(names))
    caught = next((line.split()[1] for line in status.splitlines() if "SigCgt" in line), "0")
    catches = bool(int(caught, 16) >> (catching - 1) & 1)
    return runs and catches and os.geteuid() in (0, owner)


def own_age_s() -> float:
    """Return how long ago this process began: its imports count, too. 0 where nobody tells."""
    try:
        fields = (PROC / "self" / "stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[19])  # field 22 of proc(5), of which the name's end is the second
        booted_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
    return max(0.0, booted_s - ticks / os.sysconf("SC_CLK_TCK"))
