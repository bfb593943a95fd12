"""Signals that a process inherits as ignored, as under nohup or after an ``&`` in a script."""

import sys

_PROGRAM = """\
import os, signal, sys
for number in sys.argv[1].split(","):
    signal.signal(int(number), signal.SIG_IGN)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def ignores(*numbers: int) -> list[str]:
    """Return how a command line begins whose program is to start with these signals ignored."""
    if not numbers:
        return []
    return [sys.executable, "-c", _PROGRAM, ",".join(str(int(number)) for number in numbers)]
