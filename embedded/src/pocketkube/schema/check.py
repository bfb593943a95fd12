"""Whether a value fits its shape, and what the real server says if it does not.

In: decoded JSON and a shape. Out: wrong types and unknown fields, in the order of the document, in
the words of Go's decoder (sigs.k8s.io/json of 1.36; checked against a real server).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pocketkube.schema import canonical
from pocketkube.schema.document import Document
from pocketkube.schema.roundtrip import text
from pocketkube.schema.shape import Shape, Type

_INT32 = 2**31
_INT64 = 2**63
_OWN_DECODERS = (Type.QUANTITY, Type.INT_OR_STRING)
_EMBEDDED = frozenset({"apiVersion", "kind", "metadata"})


class Mismatch(NamedTuple):
    """A value of the wrong type."""

    path: str  # such as spec.containers[0].ports
    expected: str  # Go's name of the type, such as []v1.ContainerPort
    got: str  # string, number, bool, array, object
    words: str  # what Go's decoder says
    stops: bool  # Go reads no further: the type has a decoder of its own


@dataclass(slots=True)
class Findings:
    """What is wrong with a value; both lists are in the order of the document.

    But the mismatch that Go reports comes first: the first that stops it, else the first of all.
    """

    mismatches: list[Mismatch] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # paths, such as spec.containers[0].foo


class _Step(NamedTuple):
    """One step on the way to a value; a linked list, so that nothing is copied while walking."""

    before: _Step | None
    owner: str  # the name of the shape that has the field; empty for an index and a map's key
    key: str | int


def findings(value: Any, shape: Shape) -> Findings:
    """Compare a value with its shape. Null fits everything, as it does for Go."""
    found = Findings()
    _walk(value, shape, None, found)
    found.mismatches.sort(key=lambda mismatch: not mismatch.stops)
    return found


def decode_error(mismatch: Mismatch, kind: str) -> str:
    """Return the end of the 400's message: what follows ``cannot be handled as a Pod: ``."""
    return mismatch.words or f"json: cannot unmarshal {mismatch.got} into Go value of type {kind}"


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
        words = _scalar_words(value, shape, step)
        if words:
            found.mismatches.append(_mismatch(value, shape, step, words))


def _walk_items(
    items: Iterable[tuple[str | int, Any]], shape: Shape, step: _Step | None, found: Findings
) -> None:
    if shape.item is not None:
        for key, inner in items:
            _walk(inner, shape.item, _Step(step, "", key), found)


def _walk_object(value: dict[str, Any], shape: Shape, step: _Step | None, found: Findings) -> None:
    fields = shape.fields
    for key, inner in value.items():
        known = fields.get(key)
        if known is not None:
            _walk(inner, known, _Step(step, shape.name or "struct", key), found)
        elif not (shape.preserve_unknown or (shape.embedded and key in _EMBEDDED)):
            found.unknown.append(_path(_Step(step, "struct", key)))


def _scalar_words(value: Any, shape: Shape, step: _Step | None) -> str:
    """Return what is wrong with a value that is not walked into; empty when it is right."""
    fits = False
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match shape.type:
        case Type.STRING:
            fits = isinstance(value, str)
        case Type.BOOLEAN:
            fits = isinstance(value, bool)
        case Type.NUMBER:
            fits = number
        case Type.INTEGER:
            fits = _is_integer(value, _INT32 if shape.format == "int32" else _INT64)
        case Type.INT_OR_STRING:
            fits = isinstance(value, str) or _is_integer(value, _INT32)
        case Type.QUANTITY:
            if not number and not isinstance(value, str):
                return canonical.BAD_QUANTITY
            fits = True
    return _form_words(value, shape) if fits else _cannot_unmarshal(value, shape, step)


def _is_integer(value: Any, bound: int) -> bool:
    return type(value) is int and -bound <= value < bound


def _form_words(value: Any, shape: Shape) -> str:
    """Return what is wrong with the form of a text: a quantity, a time, bytes."""
    try:
        if shape.type is Type.QUANTITY:
            canonical.quantity(value if isinstance(value, str) else repr(value))
        elif shape.format and isinstance(value, str):
            text(value, shape)
    except ValueError as error:
        return str(error)
    return ""


def _mismatch(value: Any, shape: Shape, step: _Step | None, words: str) -> Mismatch:
    own_decoder = shape.type in _OWN_DECODERS or shape.format == "date-time"
    return Mismatch(_path(step), _go_type(shape, step), _got(value), words, own_decoder)


def _cannot_unmarshal(value: Any, shape: Shape, step: _Step | None) -> str:
    wanted = _go_type(shape, step)
    got = _got(value)
    if got == "number" and shape.type in (Type.INTEGER, Type.INT_OR_STRING):
        got = f"number {value!r}"
    field_step = _field_step(step)
    if field_step is None:
        return f"json: cannot unmarshal {got} into Go value of type {wanted}"
    struct = field_step.owner.rpartition(".")[2]
    where = f"{struct}.{_go_path(step)}"
    return f"json: cannot unmarshal {got} into Go struct field {where} of type {wanted}"


def _got(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _steps(step: _Step | None) -> list[_Step]:
    found = []
    while step is not None:
        found.append(step)
        step = step.before
    return found[::-1]


def _field_step(step: _Step | None) -> _Step | None:
    while step is not None and not step.owner:
        step = step.before
    return step


def _path(step: _Step | None) -> str:
    parts = [f"[{s.key}]" if isinstance(s.key, int) else f".{s.key}" for s in _steps(step)]
    return "".join(parts).removeprefix(".")


def _go_path(step: _Step | None) -> str:
    """Return fields only, and before each the name of the embedded struct that it belongs to."""
    parts: list[str] = []
    facts = Document.load().go
    for passed in _steps(step):
        if passed.owner:
            key = str(passed.key)
            embedded = facts.get(passed.owner, {}).get("embedded", {}).get(key)
            parts += [embedded, key] if embedded else [key]
    return ".".join(parts)


def _go_type(shape: Shape, step: _Step | None) -> str:
    named = _field_step(step)
    if named is not None:
        facts = Document.load().go.get(named.owner, {})
        written = _unwrapped(facts.get("types", {}).get(named.key, ""), step)
        if written:
            return written
    return _plain_go_type(shape)


def _unwrapped(written: str, step: _Step | None) -> str:
    """Return the type of an item of ``[]v1.Capability`` or of a value of ``map[string]v1.X``.

    Empty where the text does not tell: ``v1.ValidationRules`` is a list with a name of its own.
    """
    while step is not None and not step.owner:
        bracket = "[]" if isinstance(step.key, int) else "map["
        written = written.partition("]")[2] if written.startswith(bracket) else ""
        step = step.before
    return written


def _plain_go_type(shape: Shape) -> str:
    match shape.type:
        case Type.OBJECT:
            return ".".join(shape.name.split(".")[-2:])
        case Type.LIST:
            return f"[]{_plain_go_type(shape.item) if shape.item else 'interface {}'}"
        case Type.MAP:
            return f"map[string]{_plain_go_type(shape.item) if shape.item else 'interface {}'}"
        case Type.STRING:
            return "[]uint8" if shape.format == "byte" else "string"
        case Type.INTEGER:
            return shape.format or "int64"
        case Type.INT_OR_STRING:
            return "int32"
        case Type.NUMBER:
            return "float64"
        case Type.QUANTITY:
            return "resource.Quantity"
    return "bool" if shape.type is Type.BOOLEAN else "interface {}"
