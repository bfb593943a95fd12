"""Fields that have to be given, where the real server says no more than that.

The document calls more fields required than the server refuses to do without: some it sets, some
it lets be empty, of some it says something else (that a port is not between 1 and 65535). The
table ``required.txt`` is what a real server 1.36 answered when each required field was left out of
a valid object; whatever depends on other fields is left to the rules of the kind.
"""

from __future__ import annotations

from importlib import resources
from typing import Any, NamedTuple

from pocketkube.errors import Cause
from pocketkube.schema.shape import Shape, Type

_ROOT = "io.k8s.api."
_OTHER_ROOTS = {"apiextensions.v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"}


class _Wanted(NamedTuple):
    """What one shape requires, and the fields below which something may be required."""

    messages: dict[str, str]  # by field
    below: dict[str, bool]  # whether the field is a struct that is there even if it was not given


def _tables() -> dict[str, dict[str, str]]:
    text = resources.files(__package__).joinpath("required.txt").read_text("utf-8")
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        path, has_reason, reason = line.partition(" | ")
        struct, _, fields = path.partition(": ")
        if line.startswith("#"):
            continue
        if has_reason:
            struct, _, fields = path.rpartition(".")
        message = f"Required value: {reason}" if has_reason else "Required value"
        found.setdefault(_full(struct), {}).update(dict.fromkeys(fields.split(), message))
    return found


def _full(struct: str) -> str:
    package, _, name = struct.rpartition(".")
    return f"{_OTHER_ROOTS[package]}.{name}" if package in _OTHER_ROOTS else f"{_ROOT}{struct}"


_REQUIRED = _tables()
_wanted: dict[Shape, _Wanted] = {}  # of the document's shapes, which live as long as the process


def required_causes(value: Any, shape: Shape) -> list[Cause]:
    """Return a cause for each field that is missing or, which is the same for Go, empty.

    The value has to match its shape. A struct that was not given is looked into like an empty one,
    as Go does: a pod without a spec lacks ``spec.containers``.
    """
    causes: list[Cause] = []
    _collect(value, shape, "", causes)
    return causes


def _collect(value: Any, shape: Shape, path: str, causes: list[Cause]) -> None:
    if shape.type is Type.OBJECT:
        wanted = _wanted.get(shape) or _learn(shape)
        given = value if isinstance(value, dict) else {}
        for field, message in wanted.messages.items():
            if not given.get(field):
                causes.append(Cause("FieldValueRequired", message, f"{path}{field}"))
        for field, always in wanted.below.items():
            inner = given.get(field)
            if inner is not None or (always and field not in wanted.messages):
                _collect(inner, shape.fields[field], f"{path}{field}.", causes)
    elif shape.item is not None and isinstance(value, list):
        for index, inner in enumerate(value):
            _collect(inner, shape.item, f"{path.removesuffix('.')}[{index}].", causes)


def _learn(shape: Shape) -> _Wanted:
    """Look once at a shape; ``status`` is the server's own, and nothing in it is asked for."""
    messages = _REQUIRED.get(shape.name, {})
    below = {
        field: shape.fills.get(field) == {}
        for field, inner in shape.fields.items()
        if field != "status" and _leads_on(inner)
    }
    wanted = _Wanted(messages, below)
    if shape.name:
        _wanted[shape] = wanted
    return wanted


def _leads_on(shape: Shape) -> bool:
    """Tell whether a field may lead to another struct; maps lead to none that is in the tables."""
    inner = shape.item if shape.type is Type.LIST else shape
    return inner is not None and inner.type is Type.OBJECT
