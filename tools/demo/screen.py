"""What a person sees: narration that scrolls, and on a terminal the live view below it.

In: text of the story, and views. Out: lines on standard output; where that is no terminal, plain
lines, with the view printed at each step instead.
"""

from __future__ import annotations

import os
import sys
import textwrap
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

_INDENT = (0, 0, 0, 2)
_COLUMNS = 100
"""Width where there is no terminal."""


class Screen:
    """Prints; a context manager, because a terminal has to be put in order again."""

    def __init__(self) -> None:
        """Look at standard output."""
        console = Console(highlight=False, markup=False, emoji=False)
        self.is_live = sys.stdout.isatty() and not console.is_dumb_terminal
        if not self.is_live and not sys.stdout.isatty():
            columns = int(os.environ.get("COLUMNS", "0") or 0) or _COLUMNS
            console = Console(highlight=False, markup=False, emoji=False, width=columns)
        self._console = console
        self._view: RenderableType = Text()
        self._live: Live | None = None
        self._after_blank = False

    def __enter__(self) -> Self:
        if self.is_live:
            self._live = Live(self._view, console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_view()

    def end_view(self) -> None:
        """Leave the view as it is now, and print below it from here on."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def draw(self, view: RenderableType) -> None:
        """Show how things are now."""
        self._view = view
        if self._live is not None:
            self._live.update(Group("", view), refresh=True)

    def snapshot(self) -> None:
        """Print the view where it is not seen anyway."""
        if self._live is not None:
            return
        with self._console.capture() as captured:
            self._console.print(self._view)
        self._console.print()
        for line in captured.get().splitlines():
            self._console.print(Text.from_ansi(f"  {line}".rstrip()), soft_wrap=True)
        self._console.print()
        self._after_blank = True

    def heading(self, text: str) -> None:
        """Begin a step."""
        if not self._after_blank:
            self._console.print()
        self._print(Text(text, style="bold cyan"))

    def say(self, text: str) -> None:
        """Tell the story."""
        self._print(Text(textwrap.fill(text, self._console.width - 1)))

    def lines(self, text: str) -> None:
        """Print lines as they are."""
        self._console.print(Text(text), soft_wrap=True)

    def action(self, command: str) -> None:
        """Say what is done now, by the command that would do the same."""
        self._print(Text("▸ like ", style="bold").append(command, style="not bold"))

    def output(self, command: str, text: str) -> None:
        """Show a command that was run, and what it printed."""
        self._print(Text("$ ", style="bold").append(command))
        for line in text.rstrip().splitlines():
            self._print(Padding(Text(line.rstrip()), _INDENT, expand=False) if line else Text())

    def check(self, text: str) -> None:
        """Say that something came true."""
        self._print(Text("✓ ", style="bold green").append(text, style="not bold default"))

    def fail(self, text: str) -> None:
        """Say in one line what went wrong."""
        self._console.print(Text(f"✗ {text}", style="bold red"), soft_wrap=True)

    def _print(self, what: RenderableType) -> None:
        self._console.print(what)
        self._after_blank = False
