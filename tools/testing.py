"""What tests of both distributions share, and benches too: waiting, skipping, ports, processes."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
import time
from collections.abc import Callable

import pytest

from quorate.cli import main
from tools.controlplane.applying import HANGS_S
from tools.controlplane.process import free_port

__all__ = [
    "HANGS_S",
    "call",
    "command_line",
    "free_port",
    "in_ci",
    "manifests",
    "skip_or_fail",
    "wait_for",
]


def in_ci() -> bool:
    """Whether this is a run of CI."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def skip_or_fail(why: str) -> None:
    """Skip with a plain message on a developer's machine; fail in CI."""
    if in_ci():
        pytest.fail(f"{why} (in CI nothing is skipped)", pytrace=False)
    pytest.skip(why)


def wait_for(true: Callable[[], object], what: str, timeout_s: float = HANGS_S) -> object:
    """Return the first true value of ``true()``; fail with ``what`` when there is none in time.

    ``timeout_s`` is for what takes longer when all is well, as the end of a lease.
    """
    started_s = time.monotonic()
    while True:
        value = true()
        if value:
            return value
        waited_s = time.monotonic() - started_s
        if waited_s > timeout_s:
            raise AssertionError(f"after {waited_s:.0f} s still not true: {what}; last: {value!r}")
        time.sleep(0.05)


def command_line(*args: str) -> list[str]:
    """Return the command that runs quorate's command line."""
    return [sys.executable, "-m", "quorate.cli", *args]


def call(*args: str) -> int:
    """Run a command line in this process; return its exit code.

    It has a thread of its own, as its event loop must not be that of pytest.
    """
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main.call(args)))
    thread.start()
    thread.join()
    return codes[0]


def manifests(*args: str) -> str:
    """Return what ``quorate manifests`` prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert call("manifests", *args) == 0
    return out.getvalue()
