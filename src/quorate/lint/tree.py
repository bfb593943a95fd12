"""YAML and JSON text as documents that know on which line each field stands.

In: text that anybody may have written. Out: values as kubectl would send them, or ``TextError``.
YAML is built from the parser's events, not from PyYAML's nodes: its composer overflows the stack on
text that is nested deeply, and resolves dates and base-60 numbers, which Kubernetes' does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import yaml
from yaml import events

Path = tuple[str | int, ...]

DEPTH_MAX = 200
SIZE_MAX = 1_000_000
"""Values in one document, each alias counted in full: a small file can stand for a huge value."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y")
_FALSE = ("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,30}|0x[0-9a-fA-F]{1,16}|0o?[0-7]{1,21}|0b[01]{1,64})")
_BASES = {"0x": 16, "0o": 8, "0b": 2}
_FRACTION = re.compile(
    r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,30}(?:\.[0-9]{0,30})?)(?:[eE][-+]?[0-9]{1,3})?"
)
_EXACT_MAX = 2**53
_ALLOW = re.compile(r"(?:^|\s)#[ \t]*quorate lint:[ \t]*allow[ \t]+([a-z0-9 ,-]+)", re.MULTILINE)


class TextError(ValueError):
    """Text that is neither YAML nor JSON; ``line`` is where, from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class Branch:
    """One value, the lines of the fields below it, and those fields."""

    __slots__ = ("below", "is_open", "line", "lines", "size", "value")

    def __init__(self, value: object, line: int) -> None:
        self.value: Any = value
        self.line = line
        self.below: dict[str | int, Branch] = {}
        self.lines: dict[str | int, int] = {}
        self.size = 1
        self.is_open = False


class Document(NamedTuple):
    """One document of a file. ``allowed`` are the rules that a comment in it silences."""

    number: int
    value: Any
    line: int
    branch: Branch | None = None
    twice: tuple[tuple[Path, int, int], ...] = ()
    """Keys that one mapping has twice, with the lines of both."""
    allowed: frozenset[str] = frozenset()

    def line_of(self, path: Path) -> int:
        """Return the line of the field, or of the nearest one around it."""
        branch, line = self.branch, self.line
        for part in path:
            if branch is None or part not in branch.lines:
                break
            line = branch.lines[part]
            branch = branch.below.get(part)
        return line


def documents(text: str) -> list[Document]:
    """Return the documents that are not empty. Raises ``TextError``."""
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] != "{":
        return _yaml_documents(text)
    try:
        return _json_documents(text)
    except TextError as error:
        try:  # YAML may begin with a brace as well
            return _yaml_documents(text)
        except TextError:
            raise error from None


def _yaml_documents(text: str) -> list[Document]:
    builder = _Builder(text)
    return [document for document in builder.documents() if document.value is not None]


class _Builder:
    """Builds values from the events of one text."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[events.Event] = yaml.parse(text, Loader=_LOADER)
        self._allowed = sorted(
            (text.count("\n", 0, found.start(1)), found.group(1)) for found in _ALLOW.finditer(text)
        )
        self._anchors: dict[str, Branch] = {}
        self._twice: list[tuple[Path, int, int]] = []
        self._line = 1

    def documents(self) -> Iterator[Document]:
        index, first_line = 0, 0
        for event in self._each():
            if isinstance(event, events.DocumentStartEvent):
                self._anchors, self._twice = {}, []
                branch = self._value(self._next(), ())
                end = _line(self._next())
                yield Document(
                    index,
                    branch.value,
                    branch.line,
                    branch,
                    tuple(self._twice),
                    self._allowed_in(first_line, end),
                )
                index, first_line = index + 1, end

    def _allowed_in(self, first: int, last: int) -> frozenset[str]:
        """Return the rules that comments from ``first`` to before ``last`` allow."""
        texts = [names for line, names in self._allowed if first <= line < max(last, first + 1)]
        return frozenset(name for names in texts for name in re.split(r"[ ,]+", names) if name)

    def _each(self) -> Iterator[events.Event]:
        while True:
            event = self._next()
            yield event
            if isinstance(event, events.StreamEndEvent):
                return

    def _next(self) -> events.Event:
        try:
            event = next(self._events)
        except yaml.YAMLError as error:
            self._refuse(error)
        except (UnicodeError, RecursionError) as error:
            raise TextError(str(error), self._line) from error
        self._line = _line(event) + 1
        return event

    def _refuse(self, error: yaml.YAMLError) -> NoReturn:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise TextError(
            " ".join(str(what).split()), mark.line + 1 if mark else self._line
        ) from error

    def _value(self, event: events.Event, path: Path) -> Branch:
        if len(path) > DEPTH_MAX:
            raise TextError(f"nested more than {DEPTH_MAX} levels deep", self._line)
        if isinstance(event, events.AliasEvent):
            known = self._anchors.get(event.anchor or "")
            if known is None or known.is_open:
                what = "is not defined" if known is None else "refers to itself"
                raise TextError(f"alias *{event.anchor} {what}", self._line)
            return known
        branch = Branch(None, _line(event) + 1)
        if anchor := getattr(event, "anchor", None):
            self._anchors[anchor] = branch
        branch.is_open = True
        if isinstance(event, events.ScalarEvent):
            branch.value = _scalar(event)
        elif isinstance(event, events.SequenceStartEvent):
            self._fill_list(branch, path)
        elif isinstance(event, events.MappingStartEvent):
            self._fill_mapping(branch, path)
        branch.is_open = False
        if branch.size > SIZE_MAX:
            raise TextError(f"more than {SIZE_MAX:,} values, aliases counted", self._line)
        return branch

    def _fill_list(self, branch: Branch, path: Path) -> None:
        items: list[Any] = []
        branch.value = items
        while not isinstance(event := self._next(), events.SequenceEndEvent):
            index = len(items)
            below = self._value(event, (*path, index))
            items.append(below.value)
            self._put(branch, index, below, _line(event) + 1)

    def _fill_mapping(self, branch: Branch, path: Path) -> None:
        own: set[str] = set()
        merged: list[Branch] = []
        branch.value = {}
        while not isinstance(event := self._next(), events.MappingEndEvent):
            line = self._line
            key = self._key(event)
            below = self._value(self._next(), (*path, key))
            if key == "<<" and isinstance(event, events.ScalarEvent) and event.implicit[0]:
                merged.append(below)
                continue
            if key in own:
                self._twice.append(((*path, key), branch.lines[key], line))
            own.add(key)
            branch.value[key] = below.value
            self._put(branch, key, below, line)
        for below in merged:
            self._merge(branch, below)

    def _key(self, event: events.Event) -> str:
        if isinstance(event, events.AliasEvent):
            value = self._value(event, ()).value
        elif isinstance(event, events.ScalarEvent):
            value = event.value
            if event.anchor:
                self._anchors[event.anchor] = Branch(value, self._line)
        else:
            value = None
        if not isinstance(value, str):
            raise TextError("a key is not a plain text", self._line)
        return value

    def _merge(self, branch: Branch, found: Branch) -> None:
        """Take over what a merge key (``<<``) names, unless the mapping says it itself."""
        parts = list(found.below.values()) if isinstance(found.value, list) else [found]
        for part in parts:
            if not isinstance(part.value, dict):
                raise TextError("<< must name a mapping", self._line)
            for key, below in part.below.items():
                if key not in branch.value:
                    branch.value[key] = below.value
                    self._put(branch, key, below, part.lines[key])

    def _put(self, branch: Branch, key: str | int, below: Branch, line: int) -> None:
        branch.below[key] = below
        branch.lines[key] = line
        branch.size += below.size
        if branch.size > SIZE_MAX:
            raise TextError(f"more than {SIZE_MAX:,} values, aliases counted", self._line)


def _line(event: events.Event) -> int:
    """Return the line that an event begins on, from 0."""
    return event.start_mark.line if event.start_mark else 0


def _scalar(event: events.ScalarEvent) -> str | float | bool | None:
    """Return the value of a scalar as kubectl 1.36 sends it.

    Plain text is null, a boolean, a number, or else a string; dates are strings, 1.0 is 1.
    """
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _WHOLE.fullmatch(text):
        return _whole(text)
    if not _FRACTION.fullmatch(text):
        return text
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _EXACT_MAX else number


def _whole(text: str) -> int:
    digits = text.replace("_", "").lstrip("+-")
    octal = digits[0] == "0" and len(digits) > 1
    base = _BASES.get(digits[:2], 8 if octal else 10)
    return int(digits, base) * (-1 if text[0] == "-" else 1)


def _json_documents(text: str) -> list[Document]:
    """Return the objects of a stream of JSON; their lines come from YAML, of which it is a part."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    found: list[Document] = []
    start = 0
    while True:
        start = _skip(text, start)
        if start >= len(text):
            return found
        line = text.count("\n", 0, start) + 1
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise TextError(f"not JSON: {error.msg}", error.lineno) from error
        except (ValueError, RecursionError) as error:
            raise TextError(f"not JSON: {error}", line) from error
        # Lines before count as well; a tab may only stand between tokens, where YAML wants spaces.
        shown = "\n" * (line - 1) + text[start:end].replace("\t", " ")
        document = Document(len(found), value, line)
        try:
            read = next(_Builder(shown).documents())
            document = document._replace(branch=read.branch, twice=read.twice)
        except TextError as error:
            if "nested" in error.message:
                raise
        found.append(document)
        start = end


def _skip(text: str, start: int) -> int:
    """Return where the next value starts; ``---`` between values is let pass."""
    while start < len(text):
        if text[start].isspace():
            start += 1
        elif text.startswith("---", start):
            start += 3
        else:
            break
    return start


def _refuse_constant(written: str) -> NoReturn:
    raise ValueError(f"{written} is no number of JSON")
