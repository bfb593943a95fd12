"""What commands print: data as JSON or YAML, tables for people, and errors in one line.

Colours and control sequences go to terminals only, and never where NO_COLOR is set: rich sees to
both. Text of the cluster or of a file is printed as it is, never read as rich's markup.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

FILE_COLUMNS = 200
"""Width of a table that goes to a file or a pipe."""


def print_data(value: object, form: str) -> None:
    """Print builtins, or structs of msgspec, as ``json`` or as ``yaml``."""
    import msgspec  # noqa: PLC0415 - not for those who only ask for the version

    if form == "json":
        sys.stdout.write(f"{msgspec.json.format(msgspec.json.encode(value), indent=2).decode()}\n")
        return
    import yaml  # noqa: PLC0415

    plain: Any = msgspec.to_builtins(value)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(plain, Dumper=dumper, sort_keys=False, allow_unicode=True, width=100)
    sys.stdout.write(text)


def console() -> Console:
    """Return a console for standard output, as wide as the terminal or as a file may be."""
    from rich.console import Console  # noqa: PLC0415

    found = Console(highlight=False, markup=False, emoji=False)
    if found.is_terminal:
        return found
    return Console(highlight=False, markup=False, emoji=False, width=FILE_COLUMNS)


def error(message: str) -> int:
    """Print one line that begins with Error, and return the exit code of a call at fault."""
    sys.stderr.write(f"Error: {' '.join(message.split())}\n")
    return 2
