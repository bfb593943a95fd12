"""Write the recording of a running scheduler to its file: on a signal, and on a failure.

In: SIGUSR1. Out: the file, and a line of log that names it. The health port serves only health and
metrics, so ``quorate record`` sends a signal. A scheduler that ends by a defect also writes its
recording: ``quorate replay`` then shows what led to the defect.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from quorate.shell.recording import file_format as recording
from quorate.shell.recording.recorder import Recorder

log = structlog.get_logger(__name__)

SIGNAL = signal.SIGUSR1


def default_path(pid: int) -> Path:
    """Return where the process writes its recording unless its configuration says otherwise."""
    return Path(tempfile.gettempdir()) / f"quorate-{pid}.recording"


@asynccontextmanager
async def written_when_asked(
    recorder: Recorder, path: str, expected: tuple[type[Exception], ...]
) -> AsyncIterator[Callable[[], None]]:
    """Write the recording at each signal, and when the body raises an error not ``expected``.

    Yields a function that writes it in a thread.
    """
    target = Path(path) if path else default_path(os.getpid())
    writes: set[asyncio.Task[None]] = set()

    def start() -> None:
        if not writes:  # else a recording is being written, and the next signal is handled after it
            task = asyncio.create_task(asyncio.to_thread(_write, recorder.frames(), target))
            writes.add(task)
            task.add_done_callback(writes.discard)

    loop = asyncio.get_running_loop()
    listens = threading.current_thread() is threading.main_thread()  # other threads get no signals
    if listens:
        loop.add_signal_handler(SIGNAL, start)
    try:
        yield start
    except Exception as error:
        if not isinstance(error, expected):
            _write(recorder.frames(), target)
        raise
    finally:
        await asyncio.gather(*writes)
        if listens:
            loop.remove_signal_handler(SIGNAL)


def _write(frames: list[bytes], path: Path) -> None:
    try:
        size = recording.write(path, frames)
    except OSError as error:
        log.error("the recording was not written", path=str(path), problem=str(error))
    else:
        log.warning("recording written", path=str(path), bytes=size)
