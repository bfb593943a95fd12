"""What ends the help of commands: examples and exit codes."""

from __future__ import annotations

from typing import Final

EXIT_CODES: Final = """[bold]Exit codes:[/bold] 0 all is well; 1 nothing was found, lint found
errors, or a replay differs; 2 the call, a file or the cluster is at fault; 130 stopped by
Ctrl-C."""


def examples(*lines: str) -> str:
    """Return examples as the end of a command's help, one on each line, and the exit codes."""
    shown = "\n".join(f"  {line}" for line in lines)
    return f"[bold]Examples:[/bold]\n{shown}\n\n{EXIT_CODES}"
