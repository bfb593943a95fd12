"""What is left of an object after Go has read and written it.

The rule, as recorded with the document from Go's own types (``tools/openapi/gotypes``) and checked
against a real server:

- a field that the type does not have goes; so does null, except that in a list or a map it becomes
  the zero value of its type;
- empty lists and maps go everywhere (protobuf cannot hold them); an empty text, 0 and false go when
  the field is no pointer and has omitempty (``Shape.drops``);
- pointers stay as given, empty ones too: ``emptyDir: {}``, ``replicas: 0``;
- what has no omitempty, and every struct that is no pointer, is written even if it was not given
  (``Shape.fills``): ``resources: {}``, ``status: {}``, ``name: ""``, ``lastProbeTime: null``;
- quantities, times and base64 are written anew, as Go's ``time.Parse`` and ``base64`` read them.
"""

from __future__ import annotations

import base64
import datetime
import re
from typing import Any

from pocketkube.schema.quantities import quantity
from pocketkube.schema.shape import Shape, Type

_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T)([0-9]{1,2})(:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)


def time(text: str, *, micro: bool = False) -> str:
    """Return a time in UTC, as metav1.Time or MicroTime writes it. Raises ValueError."""
    match = _TIME.fullmatch(text)
    if match is None or (micro and len(match[4] or "") != 6):
        form = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
        raise ValueError(f'parsing time "{text}" as "{form}": it has another form')
    day, hour, rest, fraction, zone = match.groups()
    written = f"{day}{hour:0>2}{rest}.{(fraction or '0')[:6]:0<6}{zone}"
    try:
        when = datetime.datetime.fromisoformat(written).astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f'parsing time "{text}": {error}') from error
    form = when.replace(tzinfo=None).isoformat(timespec="microseconds" if micro else "seconds")
    return f"{form}Z"


def encoded_bytes(text: str) -> str:
    """Return base64 as Go writes it, which ignores line ends. Raises ValueError."""
    bare = text.replace("\r", "").replace("\n", "")
    try:
        return base64.b64encode(base64.b64decode(bare, validate=True)).decode()
    except ValueError as error:
        raise ValueError(f"illegal base64 data: {error}") from error


_ZERO: dict[Type, Any] = {
    Type.STRING: "",
    Type.INTEGER: 0,
    Type.NUMBER: 0,
    Type.BOOLEAN: False,
    Type.INT_OR_STRING: 0,
    Type.QUANTITY: "0",
}


def pruned(value: Any, shape: Shape) -> Any:
    """Return a copy of the value without what Go drops. The value has to match its shape."""
    kind = shape.type
    if kind is Type.OBJECT and isinstance(value, dict):
        return _pruned_object(value, shape)
    if kind is Type.LIST and isinstance(value, list) and shape.item is not None:
        return [_element(inner, shape.item) for inner in value]
    if kind is Type.MAP and isinstance(value, dict) and shape.item is not None:
        return {key: _element(inner, shape.item) for key, inner in value.items()}
    if kind is Type.QUANTITY:
        return quantity(value if isinstance(value, str) else repr(value))
    if kind is Type.STRING and shape.format and value:
        return text(value, shape)
    return value


def _pruned_object(value: dict[str, Any], shape: Shape) -> dict[str, Any]:
    result = {}
    fields, drops = shape.fields, shape.drops
    for key, inner in value.items():
        field = fields.get(key)
        if field is None:
            if shape.preserve_unknown:
                result[key] = inner
            continue
        if inner is None and not field.nullable:
            continue
        kept = pruned(inner, field)
        if kept or key not in drops:
            result[key] = kept
    return result


def _element(value: Any, shape: Shape) -> Any:
    if value is not None or shape.nullable:
        return pruned(value, shape)
    return {} if shape.type is Type.OBJECT else _ZERO.get(shape.type)


def text(value: str, shape: Shape) -> str:
    """Return a string of a format as Go writes it. Raises ValueError with Go's words."""
    if shape.format == "date-time":
        return time(value, micro=shape.name.endswith("MicroTime"))
    if shape.format == "byte":
        return encoded_bytes(value)
    return value


def filled(value: Any, shape: Shape) -> Any:
    """Add, in place, what Go writes for fields that were not given; return the same value."""
    if shape.type is Type.OBJECT and isinstance(value, dict):
        for key, zero in shape.fills.items():
            if value.get(key) is None:
                value[key] = {} if zero == {} else zero
        for key, inner in value.items():
            if isinstance(inner, dict | list) and key in shape.fields:
                filled(inner, shape.fields[key])
    elif shape.item is not None and shape.item.type not in _ZERO:
        inner_values = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            for inner in inner_values:
                filled(inner, shape.item)
    return value
