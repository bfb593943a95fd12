"""What commands print: data as JSON or YAML, tables for people, and errors in one line.

Everything that commands print goes through here. Text of a cluster, a file or a server is foreign:
control characters are escaped, so that it cannot move the cursor, start a line, hide anything, or
give a command to a terminal or to a CI service that reads the log. JSON and YAML escape the same
characters in their own way, so that no data is lost. Rich adds colours only on terminals, and never
where NO_COLOR is set.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from quorate.core.words.plain_text import plain, plain_json, plain_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_GAP = 3
"""Columns of a table are that far apart, as kubectl's are."""
LINE_CHARS_MAX = 8192
_TRACE_CHARS_MAX = 65_536
_UNFOLDED = 2**31 - 1
"""YAML's long texts stay on one line: folded, a stranger's words would begin a line."""

# "::error::", "##[error]", "##vso[...]", "##teamcity[...]": what CI services take for commands.
_CI_COMMAND = re.compile(r":(?=:[A-Za-z][A-Za-z-]{2,30}(?: |::))|#(?=#[\w.-]{0,30}\[)")


def say(line: str, *, err: bool = False) -> None:
    """Print one line. Control characters in it are escaped."""
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{shown(line)}\n")
    stream.flush()


def error(message: str) -> int:
    """Print ``Error: message`` as one line; return exit code 2."""
    say(f"Error: {' '.join(message.split())}", err=True)
    return 2


def defect(error: BaseException) -> None:
    """Print the traceback of a defect of ours, escaped line by line."""
    text = "".join(traceback.format_exception(error)).rstrip("\n")
    for line in plain_lines(text, _TRACE_CHARS_MAX).split("\n"):
        say(line, err=True)


def shown(line: str) -> str:
    """Return a line as it is printed: escaped, and at most ``LINE_CHARS_MAX`` characters."""
    return _CI_COMMAND.sub(lambda found: f"\\x{ord(found[0]):02x}", plain(line, LINE_CHARS_MAX))


def print_data(value: object, form: str) -> None:
    """Print builtins, or structs of msgspec, as ``json`` or as ``yaml``."""
    import msgspec  # noqa: PLC0415 - not for those who only ask for the version

    if form == "json":
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        sys.stdout.write(f"{plain_json(text)}\n")
        return
    import yaml  # noqa: PLC0415

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def represent_str(self, value: str) -> Any:  # noqa: ANN401 - yaml has no types
            """Return text; what is not plain as escapes on one line, which no other style has."""
            style = None if value.isprintable() else '"'
            return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, Dumper.represent_str)
    plain_value: Any = msgspec.to_builtins(value)
    text = yaml.dump(
        plain_value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=_UNFOLDED
    )
    if not text.replace("\n", "").isprintable():
        text = yaml.dump(plain_value, Dumper=Dumper, sort_keys=False, width=_UNFOLDED)
    sys.stdout.write(text)


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines with styles, without wrapping."""
    out = _console()
    for line in lines:
        out.print(_plain_text(line), soft_wrap=True)


class Table:
    """A table as kubectl prints it: no row wraps, nothing is cut, and widths only ever grow."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._widths = [len(column) for column in columns]
        self._has_header = False

    def show(self, rows: Iterable[Sequence[Text]]) -> None:
        """Print rows, below the header if this is the first time."""
        from rich.text import Text  # noqa: PLC0415

        cells = [[_plain_text(cell) for cell in row] for row in rows]
        if not cells:
            return
        for row in cells:
            for column, cell in enumerate(row):
                self._widths[column] = max(self._widths[column], cell.cell_len)
        header = [] if self._has_header else [[Text(column) for column in self._columns]]
        self._has_header = True
        print_lines(self._line(row) for row in header + cells)

    def _line(self, row: Sequence[Text]) -> Text:
        from rich.text import Text  # noqa: PLC0415

        line = Text()
        for cell, width in zip(row[:-1], self._widths, strict=False):
            line.append_text(cell).append(" " * (width - cell.cell_len + _GAP))
        return line.append_text(row[-1])


def _console() -> Console:
    """Return a console for standard output."""
    from rich.console import Console  # noqa: PLC0415

    return Console(highlight=False, markup=False, emoji=False)


def _plain_text(text: Text) -> Text:
    """Return the text with plain characters only; its parts keep their styles."""
    from rich.text import Text as Made  # noqa: PLC0415

    if shown(text.plain) == text.plain:
        return text
    made = Made(style=text.style)
    ends = sorted({0, len(text.plain), *(end for span in text.spans for end in span[:2])})
    for begin, end in pairwise(ends):
        styles = [span.style for span in text.spans if span.start <= begin and end <= span.end]
        made.append(shown(text.plain[begin:end]), style=styles[-1] if styles else None)
    return made
