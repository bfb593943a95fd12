"""Texts that differ from node to node: ``dh1-r{rack:03}`` is ``dh1-r007`` in the eighth rack.

In: a text with fields in braces, and the numbers of one node. Out: a text. Called by ``shape_file``
for names and labels. A field is a number's name and, after a colon, how it is written: ``03`` (with
zeros up to three digits), ``x`` (hexadecimal), ``hash8`` (eight hexadecimal digits that look drawn
at random but are always the same, and never the same for two numbers), ``uuid`` (likewise).
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping

_FIELD = re.compile(r"\{([^{}]*)\}")
_INSIDE = re.compile(r"([a-z][a-z0-9-]*(?:\.position)?)(?::(0[1-9]|x|hash(?:[1-9]|1[0-9])|uuid))?")


class PatternError(ValueError):
    """A pattern cannot be filled in; the text says why."""


def fill(pattern: str, numbers: Mapping[str, int]) -> str:
    """Return the text for a node with these numbers. Raises PatternError."""
    if "{" not in pattern and "}" not in pattern:
        return pattern
    filled = _FIELD.sub(lambda match: _written(match[1], numbers), pattern)
    rest = _FIELD.sub("", pattern)
    if "{" in rest or "}" in rest:
        raise PatternError(f"{pattern!r} has a brace without its partner")
    return filled


def _written(field: str, numbers: Mapping[str, int]) -> str:
    match = _INSIDE.fullmatch(field)
    if match is None:
        raise PatternError(
            f"{{{field}}} is no field: write {{index}}, {{index:03}}, {{index:x}}, {{index:hash8}} "
            "or {index:uuid}"
        )
    name, form = match[1], match[2] or ""
    if name not in numbers:
        raise PatternError(f"there is no number {name!r}; there are {', '.join(sorted(numbers))}")
    number = numbers[name]
    if form == "x":
        return f"{number:x}"
    if form == "uuid":
        return _uuid(name, number)
    if form.startswith("hash"):
        return _scrambled(name, number, int(form.removeprefix("hash")))
    return f"{number:{form}d}"


def _scrambled(name: str, number: int, digits: int) -> str:
    """Map numbers below 16**digits one to one onto texts of that many hexadecimal digits."""
    factor, offset = _constants(name, digits)
    # An odd factor has an inverse modulo a power of two, so no two numbers meet.
    return f"{(number * factor + offset) % 16**digits:0{digits}x}"


@functools.cache
def _constants(name: str, digits: int) -> tuple[int, int]:
    drawn = int.from_bytes(hashlib.sha256(f"{name}/{digits}".encode()).digest())
    return (drawn >> 128) | 1, drawn & (2**128 - 1)


def _uuid(name: str, number: int) -> str:
    text = hashlib.sha256(f"{name}/{number}".encode()).hexdigest()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:32]}"
