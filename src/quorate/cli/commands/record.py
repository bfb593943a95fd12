"""``quorate record``: ask a running scheduler for its recording, and put it where it is wanted.

In: a process on this machine or in this container. Out: a file for ``quorate replay``. Asking is a
signal, because a scheduler serves nothing but health and metrics: it writes its recording to a file
of its own, which is moved. Without /proc (not Linux) people have to send the signal themselves.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from quorate.cli import processes
from quorate.cli.show import output
from quorate.shell.configuration.config import Config, ConfigError, load
from quorate.shell.recording import file_format as recording
from quorate.shell.recording.record_file import SIGNAL, default_path

_WAIT_S = 30.0
_LOOK_S = 0.02
_COMMANDS = ("run", "up")


class RecordError(Exception):
    """The recording cannot be had; the text says what to do."""


def record(pid: int | None, to: str | None, config_file: Path | None) -> int:
    """Take the recording of process ``pid``, or of the only scheduler; return the exit code.

    ``to`` is a file, ``-`` is standard output; the configuration says where the scheduler writes.
    """
    try:
        config = load(config_file) if config_file else Config.default()
        process = _check(pid) if pid is not None else _find()
        written = Path(config.recorder.path) if config.recorder.path else default_path(process)
        _ask(process, written)
        _hand_over(written, to or f"quorate-{process}.recording")
    except (ConfigError, RecordError) as error:
        return output.error(str(error))
    except OSError as error:
        return output.error(f"{error.filename}: {error.strerror or error}")
    return 0


def _find() -> int:
    """Return the only process of a scheduler that this user may signal."""
    _expect_proc()
    found = processes.of_quorate(_COMMANDS, catching=SIGNAL)
    if len(found) != 1:
        nobody = "no quorate run (or up) of yours runs here"
        raise RecordError(processes.told(found) if found else nobody)
    return found[0]


def _check(pid: int) -> int:
    """Refuse a process that the signal would end: one that does not wait for it."""
    _expect_proc()
    if pid not in processes.of_quorate(_COMMANDS, catching=SIGNAL):
        raise RecordError(f"process {pid} is no quorate run (or up) of yours that is ready")
    return pid


def _expect_proc() -> None:
    if not (processes.PROC / "self").exists():
        raise RecordError(
            f"this system has no {processes.PROC}: send {SIGNAL.name} to the scheduler yourself; "
            "its log says where it wrote the recording"
        )


def _ask(pid: int, written: Path) -> None:
    """Send the signal, and wait until there is a file that was not there before."""
    before = _version(written)
    os.kill(pid, SIGNAL)
    deadline_s = time.monotonic() + _WAIT_S
    while _version(written) in (None, before):
        if time.monotonic() > deadline_s:
            raise RecordError(
                f"process {pid} wrote nothing to {written} within {_WAIT_S:.0f} s; its log says "
                "where it writes; where recorder.path is configured, give --config here too"
            )
        time.sleep(_LOOK_S)


def _version(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _hand_over(written: Path, to: str) -> None:
    """Copy the recording to where it is wanted, whole or not at all, and remove the original."""
    size = written.stat().st_size
    with written.open("rb") as source:
        if to == "-":
            shutil.copyfileobj(source, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            target = Path(to)
            recording.replace_file(target, iter(lambda: source.read(1 << 20), b""))
    written.unlink()
    output.say(f"{size:,} bytes written to {'standard output' if to == '-' else to}", err=True)
