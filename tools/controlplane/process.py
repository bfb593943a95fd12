"""One component of the control plane: a child process with a log, that never outlives us.

In: a command line. Out: a process that runs, or an error that shows the end of its log. Called by
``cluster`` and ``build``.
"""

import contextlib
import fcntl
import functools
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

_SET_DEATH_SIGNAL = """
import ctypes, os, sys
pr_set_pdeathsig, sigkill = 1, 9
ctypes.CDLL(None).prctl(pr_set_pdeathsig, sigkill)
if os.getppid() == int(sys.argv[1]):  # or else it died before prctl
    os.execv(sys.argv[2], sys.argv[2:])
"""
# Below Linux's ephemeral range: no outgoing connection takes the port while a server restarts.
_PORTS = range(20_000, 30_000)
_RANDOM = random.SystemRandom()  # test runners seed the usual one alike in every worker
_given_out: set[int] = set()
"""Ports of this process. Others know of them by ``_all_given_out``: a server may take a moment to
listen on its port, or listen there again later."""


class ComponentError(RuntimeError):
    """A component failed to start or died; the text names it and shows the end of its log."""


def die_with_parent(command: list[str]) -> list[str]:
    """Wrap a command so that the kernel kills it when the thread that starts it is gone.

    A tiny Python sets this and becomes the command. ``preexec_fn`` would do without, but is not
    safe in a process with threads.
    """
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-S", "-c", _SET_DEATH_SIGNAL, str(os.getpid()), *command]


@contextlib.contextmanager
def lock(folder: Path, progress: Callable[[str], None], name: str = "build") -> Iterator[None]:
    """Let one process at a time put ``name`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another build of {folder / name}")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


@functools.cache
def _all_given_out() -> IO[bytes]:
    """Open the file in which processes lock the byte of each port that they have, till they end."""
    return (Path(tempfile.gettempdir()) / f"quorate-ports-{os.getuid()}").open("ab")


def free_port() -> int:
    """Find a loopback port that nobody listens on, another one in each call of any process."""
    for _ in range(1000):
        port = _RANDOM.choice(_PORTS)
        if port in _given_out:
            continue
        try:
            fcntl.lockf(_all_given_out(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:  # another process has it
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given_out.add(port)
        return port
    raise ComponentError(f"No free port from {_PORTS.start} to {_PORTS.stop} on 127.0.0.1.")


class Component:
    """A process of the control plane; its log is ``<folder>/<name>.log``."""

    def __init__(
        self,
        name: str,
        command: list[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it in ``folder``; ``environment`` is merged over ours."""
        self.name = name
        self.log = folder / f"{name}.log"
        # Its own home: a kwok.yaml, kuberc or cache of whoever runs this plays no part.
        environment = {**os.environ, "HOME": str(folder), **(environment or {})}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                die_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment,
                process_group=0,  # Ctrl-C is for us: we stop the components in order
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def check(self, within_s: float = 0.0) -> None:
        """Raise ComponentError if the process has ended, or ends within this time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(within_s)
            raise ComponentError(f"{self.name} ended with code {code}.\n{self.log_tail()}")

    def log_tail(self, lines_max: int = 15) -> str:
        """Give the end of the log, with its path."""
        lines = self.log.read_text(errors="replace").splitlines()[-lines_max:]
        return "\n".join([f"The end of {self.log}:", *lines])

    def stop(self, *, grace_s: float) -> None:
        """Ask it to end, and kill it after ``grace_s``."""
        if self._process.poll() is not None:
            return
        if grace_s > 0:
            self._process.terminate()
            try:
                self._process.wait(timeout=grace_s)
                return
            except subprocess.TimeoutExpired:
                pass
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def paused(components: Iterable[Component]) -> Iterator[None]:
    """Stop processes for a while, as SIGSTOP does; they go on afterwards, also after an error."""
    pids = [one.pid for one in components]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def wait_until(
    ready: Callable[[], bool], components: list[Component], what: str, *, timeout_s: float
) -> None:
    """Wait until ``ready``; raise if one of the components ends or the time is up."""
    deadline_s = time.monotonic() + timeout_s
    while not ready():
        for component in components:
            component.check()
        if time.monotonic() > deadline_s:
            tails = "\n".join(component.log_tail() for component in components)
            raise ComponentError(f"{what} took more than {timeout_s:.0f} s.\n{tails}")
        time.sleep(0.05)
