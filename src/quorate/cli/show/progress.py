"""Progress on standard error, for work of more than two seconds. Only on a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from quorate.cli.show.output import shown
from quorate.shell.process.clock import Clock

PATIENCE_S = 2.0


class Progress:
    """One line, shown after ``PATIENCE_S`` and removed when the work is done. A context manager."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_s = clock.monotonic_s()
        self._console = Console(stderr=True, highlight=False)
        self._status: Status | None = None

    def say(self, text: str) -> None:
        """Show the text, once ``PATIENCE_S`` have passed and if this is a terminal."""
        if not self._console.is_terminal:
            return
        if self._status is not None:
            self._status.update(Text(shown(text)))
        elif self._clock.monotonic_s() - self._since_s >= PATIENCE_S:
            self._status = self._console.status(Text(shown(text)))
            self._status.start()

    def stop(self) -> None:
        """Remove the line, if there is one."""
        if self._status is not None:
            self._status.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
