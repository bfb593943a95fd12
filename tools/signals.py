"""Ctrl-C and other signals that ask a program to end: noted at once, heeded where it may end.

In: a program's main function. Out: its exit code. A handler that raises is not heard each time:
Python drops what is raised while it frees an object (as ``http.client`` closes its answers), and
a process that just begins is left behind.
"""

import signal
from collections.abc import Callable

_signals: list[int] = []
"""That asked us to stop."""


def heeding_signals(main: Callable[[], int]) -> int:
    """Run a program that calls ``stop_if_asked`` wherever it waits; return its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: _signals.append(number))
    try:
        return main()
    except KeyboardInterrupt as stopped:
        print("\nStopped; nothing is left behind.")
        return 128 + int(stopped.args[0])


def stop_if_asked() -> None:
    """Raise KeyboardInterrupt, with the signal's number, if one was noted."""
    if _signals:
        raise KeyboardInterrupt(_signals[0])
