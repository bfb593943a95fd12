"""Whether a value fits its shape, and what the real server says if it does not.

In: decoded JSON and a shape. Out: wrong types and unknown fields, in the order of the document. The
words are like those of Go's decoder (sigs.k8s.io/json of 1.36), but without Go's names of types.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pocketkube.objects import json_type
from pocketkube.schema.quantities import quantity
from pocketkube.schema.roundtrip import text
from pocketkube.schema.shape import Shape, Type

_INT32 = 2**31
_INT64 = 2**63
_EMBEDDED = frozenset({"apiVersion", "kind", "metadata"})


class Mismatch(NamedTuple):
    """A value of the wrong type."""

    path: str  # such as spec.containers[0].ports
    expected: str  # the type, or the format of a number or text, such as list or int32
    got: str  # string, number, bool, array, object
    words: str  # what is wrong with the form of a text, such as of a quantity


@dataclass(slots=True)
class Findings:
    """What is wrong with a value; both lists are in the order of the document."""

    mismatches: list[Mismatch] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # paths, such as spec.containers[0].foo


class _Step(NamedTuple):
    """One step on the way to a value; a linked list, so that nothing is copied while walking."""

    before: _Step | None
    key: str | int


def findings(value: Any, shape: Shape) -> Findings:
    """Compare a value with its shape. Null fits everything, as it does for Go."""
    found = Findings()
    _walk(value, shape, None, found)
    return found


def decode_error(mismatch: Mismatch) -> str:
    """Return the end of the 400's message: what follows ``cannot be handled as a Pod: ``."""
    if mismatch.words:
        return mismatch.words
    where = f"field {mismatch.path}" if mismatch.path else "an object"
    return f"json: cannot unmarshal {mismatch.got} into {where} of type {mismatch.expected}"


def _walk(value: Any, shape: Shape, step: _Step | None, found: Findings) -> None:
    if value is None or shape.type is Type.ANY:
        return
    if shape.type is Type.OBJECT and isinstance(value, dict):
        _walk_object(value, shape, step, found)
    elif shape.type is Type.MAP and isinstance(value, dict):
        _walk_items(value.items(), shape, step, found)
    elif shape.type is Type.LIST and isinstance(value, list):
        _walk_items(enumerate(value), shape, step, found)
    else:
        fits = _fits(value, shape)
        words = _form_words(value, shape) if fits else ""
        if words or not fits:
            expected = shape.format or shape.type.value
            found.mismatches.append(Mismatch(_path(step), expected, json_type(value), words))


def _walk_items(
    items: Iterable[tuple[str | int, Any]], shape: Shape, step: _Step | None, found: Findings
) -> None:
    if shape.item is not None:
        for key, inner in items:
            _walk(inner, shape.item, _Step(step, key), found)


def _walk_object(value: dict[str, Any], shape: Shape, step: _Step | None, found: Findings) -> None:
    fields = shape.fields
    for key, inner in value.items():
        known = fields.get(key)
        if known is not None:
            _walk(inner, known, _Step(step, key), found)
        elif not (shape.preserve_unknown or (shape.embedded and key in _EMBEDDED)):
            found.unknown.append(_path(_Step(step, key)))


def _fits(value: Any, shape: Shape) -> bool:
    """Tell whether a value that is not walked into is of its type."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match shape.type:
        case Type.STRING:
            return isinstance(value, str)
        case Type.BOOLEAN:
            return isinstance(value, bool)
        case Type.NUMBER:
            return number
        case Type.INTEGER:
            return _is_integer(value, _INT32 if shape.format == "int32" else _INT64)
        case Type.INT_OR_STRING:
            return isinstance(value, str) or _is_integer(value, _INT32)
        case Type.QUANTITY:
            return number or isinstance(value, str)
    return False


def _is_integer(value: Any, bound: int) -> bool:
    return type(value) is int and -bound <= value < bound


def _form_words(value: Any, shape: Shape) -> str:
    """Return what is wrong with the form of a text: a quantity, a time, bytes."""
    try:
        if shape.type is Type.QUANTITY:
            quantity(value if isinstance(value, str) else repr(value))
        elif shape.format and isinstance(value, str):
            text(value, shape)
    except ValueError as error:
        return str(error)
    return ""


def _path(step: _Step | None) -> str:
    parts: list[str] = []
    while step is not None:
        parts.append(f"[{step.key}]" if isinstance(step.key, int) else f".{step.key}")
        step = step.before
    return "".join(reversed(parts)).removeprefix(".")
