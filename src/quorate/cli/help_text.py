"""What help says beside commands and options: examples, exit codes, and no types of Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import typer

from quorate.cli import plain

_COMMON: Final = {
    0: "all is well",
    2: "the call, a file or the cluster is at fault",
    130: "stopped by Ctrl-C",
}
_BY_CALL: Final = {2: "the call is at fault", 130: ""}
_BY_SIGNAL: Final = {0: "it was stopped as it should be", 130: ""}
_NO_SUCH_NAME: Final = {1: "nothing has that name"}
_OWN: Final[Mapping[str, Mapping[int, str]]] = {
    "": {1: "the answer is no: see the command's own help"},
    "up": _BY_SIGNAL,
    "down": {2: "there is no such cluster, or it goes on"},
    "run": {**_BY_SIGNAL, 1: "the lease was lost"},
    "cks-nodes": {**_BY_SIGNAL, 1: "the lease was lost"},
    "why": _NO_SUCH_NAME,
    "gangs": _NO_SUCH_NAME,
    "lint": {1: "errors were found", 2: "the call or a file is at fault"},
    "record": {2: "the call is at fault, or there is no such scheduler"},
    "replay": {1: "a plan differs", 2: "the call or the file is at fault"},
    "manifests": _BY_CALL,
    "completion": _BY_CALL,
    "version": _BY_CALL,
}
"""What an exit code means where it is not what it means elsewhere; "": the command has it not."""


def exit_codes(command: str = "") -> str:
    """Return the exit codes of a command; without one, those of all."""
    codes = sorted({**_COMMON, **_OWN.get(command, {})}.items())
    return "[bold]Exit codes:[/bold] " + "; ".join(f"{n} {what}" for n, what in codes if what) + "."


def examples(command: str, *lines: str) -> str:
    """Return examples as the end of a command's help, one on each line, and its exit codes."""
    own = (re.sub(r"^quorate\b", plain.called_by(), line) for line in lines)
    shown = "\n".join(f"  {line}" for line in own)
    return f"[bold]Examples:[/bold]\n{shown}\n\n{exit_codes(command)}"


def without_types(command: Any, context: typer.Context) -> None:  # noqa: ANN401 - as in ``main``
    """Have help show what values are called and which there are, and not their types.

    An option without a value shows nothing: ``<bool>`` says less than its name.
    """
    for one in command.get_params(context):
        shown = one.display_type_rich(ctx=context) or ""
        if shown.startswith("<") and "|" not in shown:
            one.display_type_rich = lambda ctx: ""
