"""Read a YAML mapping by a table of fields, and collect every mistake with its line.

In: text and a table of ``Field``. Out: a dict of the valid values, and problems. Called by
``config``. It walks PyYAML's nodes, which have line numbers and keep duplicate keys; PyYAML never
constructs Python objects from the text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

_TAG = "tag:yaml.org,2002:"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")
_SHOWN_CHARACTERS_MAX = 60
DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
FILE_BYTES_MAX = 1 << 20


class Problem(NamedTuple):
    """One mistake: ``line`` counts from 1, 0 means the whole file; ``field`` is a path of keys."""

    line: int
    field: str
    what: str
    hint: str


class ConfigError(ValueError):
    """The configuration file is wrong; the text lists every problem, one to a line."""

    def __init__(self, source: str, problems: tuple[Problem, ...]) -> None:
        self.source = source
        self.problems = problems
        super().__init__("\n".join(self._line(problem) for problem in problems))

    def _line(self, problem: Problem) -> str:
        place = f"{self.source}:{problem.line}" if problem.line else self.source
        field = f"{problem.field}: " if problem.field else ""
        return f"{place}: {field}{problem.what}. {problem.hint}"


class BadValueError(Exception):
    """A value is wrong: has what is wrong and a hint. Raised by the readers of fields."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


ReadValue = Callable[["Reader", yaml.Node, str], object]


class Field(NamedTuple):
    """A row of a table: the value's Python name, and its reader.

    ``required`` is the example value in the error about a file without this field.
    """

    name: str
    read: ReadValue
    required: str = ""


Fields = Mapping[str, Field]


def read_text(path: Path, option: str) -> str:
    """Return a file's text; ``option`` has named it. Raises ConfigError if it cannot be read."""
    source = str(path)

    def refused(what: str, hint: str, line: int = 0) -> ConfigError:
        return ConfigError(source, (Problem(line, "", what, hint),))

    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        what = f"the configuration file cannot be read: {reason}"
        raise refused(what, f"Check {option} and the file's mode.") from error
    if len(data) > FILE_BYTES_MAX:
        what = f"the file is larger than {FILE_BYTES_MAX >> 20} MiB"
        raise refused(what, f"This is hardly a configuration: check {option}.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise refused("this is not UTF-8 text", "Save the file as UTF-8.", line) from error


class Reader:
    """Walks one document; keeps its problems and the line of every field."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._problems: list[Problem] = []
        self._line_of: dict[str, int] = {}
        self._wrong: set[str] = set()

    def compose(self, document: str, *, hint: str) -> yaml.MappingNode:
        """Return the document's mapping; raise ConfigError when there is none."""
        try:
            root = yaml.compose(document, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = ", ".join(part for part in (error.context, error.problem) if part)
            self._stop(mark.line + 1 if mark else 0, what)
        except yaml.reader.ReaderError as error:
            line = document.count("\n", 0, error.position) + 1
            sign = error.character  # PyYAML's stubs say a number; on some paths it is text
            code = sign if isinstance(sign, int) else ord(sign)
            self._stop(line, f"the character U+{code:04X} is not allowed")
        except RecursionError:
            self._stop(0, "brackets are nested too deeply")
        if root is None:
            raise ConfigError(self._source, (Problem(0, "", "the file is empty", hint),))
        if not isinstance(root, yaml.MappingNode):
            what = f"this is {_kind(root)}, not fields with values"
            raise ConfigError(self._source, (Problem(_line(root), "", what, hint),))
        return root

    def read(self, node: yaml.MappingNode, fields: Fields, prefix: str = "") -> dict[str, Any]:
        """Return the valid values of a mapping, by Python name; record the others as problems."""
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None or key not in fields:
                self._unknown(key_node, key, fields, prefix)
                continue
            path, line = prefix + key, _line(key_node)
            if path in self._line_of:
                what = f"the field is set twice; the other is in line {self._line_of[path]}"
                self._note(line, path, what, "Remove one of the two.")
                continue
            self._line_of[path] = line
            field = fields[key]
            try:
                values[field.name] = _read_value(self, field, value_node, path)
            except BadValueError as bad:
                self._note(_line(value_node), path, bad.what, bad.hint)
        for key, field in fields.items():
            if field.required and prefix + key not in self._line_of:
                hint = f"Add the line: {key}: {field.required}"
                self._note(_line(node), prefix + key, "the field is missing", hint)
        return values

    def expect(self, holds: bool, paths: tuple[str, ...], what: str, hint: str) -> None:
        """Unless ``holds``, record a problem at the first of these fields that the file sets."""
        if holds or any(path in self._wrong for path in paths):
            return
        set_here = [path for path in paths if path in self._line_of]
        path = set_here[0] if set_here else paths[0]
        self._note(self._line_of.get(path, 0), path, what, hint)

    def raise_problems(self) -> None:
        """Raise ConfigError with all problems, sorted by line, if there are any."""
        if self._problems:
            raise ConfigError(self._source, tuple(sorted(self._problems)))

    def _unknown(self, node: yaml.Node, key: str | None, fields: Fields, prefix: str) -> None:
        if key is None:
            self._note(_line(node), prefix.rstrip("."), "a key is no plain text", "Remove it.")
            return
        close = difflib.get_close_matches(key.lower(), [f.lower() for f in fields], n=1)
        known = [f for f in fields if f.lower() in close]
        hint = f"Did you mean {known[0]}?" if known else f"The fields here are {', '.join(fields)}."
        what = "there is no such field"
        self._note(_line(node), prefix + _shown(key), what, hint)

    def _note(self, line: int, path: str, what: str, hint: str) -> None:
        self._wrong.add(path)
        self._problems.append(Problem(line, path, what, hint))

    def _stop(self, line: int, what: str) -> NoReturn:
        hint = "This is not valid YAML: check indentation, quotes and brackets."
        raise ConfigError(self._source, (Problem(line, "", what, hint),)) from None


# Readers by type of value. Each raises BadValueError for a wrong value.


def boolean(_reader: Reader, node: yaml.Node, _path: str) -> bool:
    """Read true or false; YAML's yes and on are refused, as in Kubernetes."""
    value = node.value if node.tag == _TAG + "bool" else None
    if value not in {"true", "false"}:
        raise BadValueError(f"{_describe(node)} is neither true nor false", "Write true or false.")
    return bool(value == "true")


def number(least: float, most: float) -> ReadValue:
    """Make a reader of numbers in a range."""

    def read(_reader: Reader, node: yaml.Node, _path: str) -> float:
        value = _to_number(node, f"Write a number from {least:g} to {most:g}.")
        if not least <= value <= most:
            raise BadValueError(
                f"{_describe(node)} is out of range", f"Write a number from {least:g} to {most:g}."
            )
        return value

    return read


def whole_number(least: int, most: int) -> ReadValue:
    """Make a reader of whole numbers in a range."""

    def read(_reader: Reader, node: yaml.Node, _path: str) -> int:
        hint = f"Write a whole number from {least} to {most}."
        value = _to_number(node, hint)
        if value != int(value):
            raise BadValueError(f"{_describe(node)} is not a whole number", hint)
        if not least <= value <= most:
            raise BadValueError(f"{_describe(node)} is out of range", hint)
        return int(value)

    return read


def text(convert: Callable[[str], object]) -> ReadValue:
    """Make a reader of text; ``convert`` raises BadValueError with what follows the value."""

    def read(_reader: Reader, node: yaml.Node, _path: str) -> object:
        try:
            value = convert(_scalar(node))
        except BadValueError as bad:
            raise BadValueError(f"{_describe(node)} {bad.what}", bad.hint) from None
        _expect_text(node)
        return value

    return read


def texts(convert: Callable[[str], object]) -> ReadValue:
    """Make a reader of a list of different texts, at least one."""
    read_one = text(convert)

    def read(reader: Reader, node: yaml.Node, path: str) -> tuple[object, ...]:
        if not isinstance(node, yaml.SequenceNode):
            hint = f"Write [{_shown(_scalar(node)) or 'quorate'}]."
            raise BadValueError(f"{_describe(node)} is not a list", hint)
        if not node.value:
            raise BadValueError("the list is empty", "Name at least one, or remove the field.")
        values = tuple(read_one(reader, item, path) for item in node.value)
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise BadValueError(
                f'"{_shown(str(twice))}" is in the list twice', "Remove one of the two."
            )
        return values

    return read


def items(read_one: ReadValue) -> ReadValue:
    """Make a reader of a list, each item by ``read_one``; problems name the item by its number."""

    def read(reader: Reader, node: yaml.Node, path: str) -> list[Any]:
        if not isinstance(node, yaml.SequenceNode):
            raise BadValueError(f"{_describe(node)} is not a list", "Begin each item with a dash.")
        return [read_one(reader, item, f"{path}[{i}]") for i, item in enumerate(node.value)]

    return read


def matching(
    pattern: re.Pattern[str], length_max: int, what: str, hint: str
) -> Callable[[str], str]:
    """Make a check for ``text`` and ``texts``: all of the value has to be as the pattern says."""

    def convert(value: str) -> str:
        if len(value) > length_max or not pattern.fullmatch(value):
            raise BadValueError(what, hint)
        return value

    return convert


name = matching(
    re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?"),
    302,
    "is no name of a resource or label",
    "Write one such as cpu.",
)


LABEL_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
label_key = matching(
    re.compile(rf"({DNS_NAME.pattern}/)?{LABEL_NAME}"),
    253,
    "is no key of a label",
    "Write one such as example.com/reserved.",
)
"""A value that passes cannot end a text of CEL, or of YAML, that it is put into."""


def choice(values: Mapping[str, str]) -> ReadValue:
    """Make a reader of one word out of several."""

    def read(_reader: Reader, node: yaml.Node, _path: str) -> str:
        value = _scalar(node)
        if value in values:
            _expect_text(node)
            return values[value]
        close = difflib.get_close_matches(value, values, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"Write {' or '.join(values)}."
        raise BadValueError(f"{_describe(node)} is not known", hint)

    return read


def constant(value: str) -> ReadValue:
    """Make a reader of a field that has one possible value."""

    def read(_reader: Reader, node: yaml.Node, _path: str) -> str:
        if _scalar(node) != value:
            what = f"{_describe(node)} is not what this version of quorate reads"
            raise BadValueError(what, f"Write {value}.")
        return value

    return read


def section(fields: Fields) -> ReadValue:
    """Make a reader of a mapping with a table of its own."""

    def read(reader: Reader, node: yaml.Node, path: str) -> dict[str, Any]:
        if not isinstance(node, yaml.MappingNode):
            some = next(iter(fields))
            raise BadValueError(
                f"{_describe(node)} holds no fields", f"Write fields below it, such as {some}."
            )
        return reader.read(node, fields, f"{path}.")

    return read


def _read_value(reader: Reader, field: Field, node: yaml.Node, path: str) -> object:
    if node.tag == _TAG + "null":
        raise BadValueError(
            "the field has no value", "Give it one, or remove the line for the default."
        )
    return field.read(reader, node, path)


def _to_number(node: yaml.Node, hint: str) -> float:
    if node.tag not in {_TAG + "int", _TAG + "float"} or not _NUMBER.fullmatch(node.value):
        if isinstance(node, yaml.ScalarNode) and re.fullmatch(r"[0-9.]+ ?[smh]", node.value):
            hint += " Durations are in seconds, without a unit."
        raise BadValueError(f"{_describe(node)} is not a plain number", hint)
    return float(node.value)


def _scalar(node: yaml.Node) -> str:
    """Return the characters of a single value, "" where there is a list or a mapping."""
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _expect_text(node: yaml.Node) -> None:
    if node.tag != _TAG + "str":
        raise BadValueError(
            f"{_describe(node)} is not text", f'Put it in quotes: "{_shown(_scalar(node))}".'
        )


def _describe(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return f'"{_shown(node.value)}"' if node.tag == _TAG + "str" else _shown(node.value)
    return _kind(node)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"


def _shown(value: str) -> str:
    """Shorten a value to one line, because the file may contain anything."""
    printable = "".join(c if c.isprintable() else "?" for c in value)
    cut = printable[:_SHOWN_CHARACTERS_MAX]
    return cut if cut == printable else cut + "..."


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
