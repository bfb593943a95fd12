"""What is wrong with an object that somebody applies, before anything is merged.

The texts are those of sigs.k8s.io/structured-merge-diff v6, ``typed/validate.go``, which prints Go
values as they are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from pocketkube.patch.apply.field_paths import field, text_of_element
from pocketkube.patch.apply.structure import (
    MismatchError,
    Parts,
    allows_field,
    field_shape,
    item_element,
    item_shape,
    parts,
)
from pocketkube.patch.values import Json, go_text, go_type
from pocketkube.schema.shape import Shape, Type


def mismatch_of(value: Json, shape: Shape) -> str:
    """Return what is wrong with ``value``, in upstream's words; empty when it is of its shape."""
    found = list(_mismatches(value, shape, ""))
    if len(found) == 1:
        return found[0]
    return "\n  ".join(["errors:", *found]) if found else ""


def _mismatches(value: Json, shape: Shape, where: str) -> Iterator[str]:
    prefix = f"{where}: " if where else ""
    if value is None or shape.type is Type.ANY:
        return
    if shape.type in (Type.OBJECT, Type.MAP):
        if isinstance(value, dict):
            yield from _in_fields(value, shape, where)
        else:
            yield f"{prefix}expected map, got &{{{go_text(value)}}}"
    elif shape.type is Type.LIST:
        if isinstance(value, list):
            yield from _in_items(value, shape, where)
        else:
            yield f"{prefix}expected list, got &{{{go_text(value)}}}"
    else:
        wrong = _wrong_scalar(value, shape)
        if wrong:
            yield prefix + wrong


def _in_fields(value: dict[str, Json], shape: Shape, where: str) -> Iterator[str]:
    for name, inner in value.items():
        below = where + text_of_element(field(name))
        if allows_field(shape, name):
            yield from _mismatches(inner, field_shape(shape, name), below)
        else:
            yield f"{below}: field not declared in schema"


def _in_items(value: list[Json], shape: Shape, where: str) -> Iterator[str]:
    prefix = f"{where}: " if where else ""
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if parts(shape) is Parts.ITEMS:
            try:
                element = item_element(shape, item)
            except MismatchError as error:
                yield f"{prefix}element {index}: {error}"
                return
            if element in seen:
                yield f"{prefix}duplicate entries for key {text_of_element(element)}"
            seen.add(element)
        yield from _mismatches(item, item_shape(shape), where + text_of_element(element))


def _wrong_scalar(value: Json, shape: Shape) -> str:
    is_bool, is_container = isinstance(value, bool), isinstance(value, dict | list)
    if shape.type in (Type.INTEGER, Type.NUMBER):
        right = isinstance(value, int | float) and not is_bool
        return "" if right else f"expected numeric (int or float), got {go_type(value)}"
    if shape.type is Type.BOOLEAN:
        return "" if is_bool else f"expected boolean, got &{{{go_text(value)}}}"
    if shape.type is Type.STRING and shape.format in ("", "byte"):
        text = f"&value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        return "" if isinstance(value, str) else f"expected string, got {text}"
    return f"expected any scalar, got &{{{go_text(value)}}}" if is_container else ""


def _go_syntax(value: Json) -> str:
    """Return a value as ``%#v`` prints it."""
    if isinstance(value, dict):
        inner = ", ".join(f'"{name}":{_go_syntax(value[name])}' for name in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return f'"{value}"' if isinstance(value, str) else go_text(value)
