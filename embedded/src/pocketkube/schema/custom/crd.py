"""Custom resources' types: a CRD's openAPIV3Schema as a shape, and what the server does with it.

In: schemas and decoded objects. Out: shapes, pruned and defaulted objects, causes of a 422. Source:
Kubernetes' documentation of structural schemas, and answers of a real API server 1.36.
``x-kubernetes-validations`` (CEL) are accepted and not evaluated: no CRD that quorate ships or
tests with has any. Values are checked by ``fastjsonschema``, which compiles a schema to Python;
formats that it does not know, and patterns that only Go understands, are not judged.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fastjsonschema

from pocketkube.causes import invalid, required, shown, unsupported
from pocketkube.errors import Cause
from pocketkube.schema.shape import Merge, Shape, Type

Schema = Mapping[str, Any]

_STRING = Shape(type=Type.STRING)
_SCALARS = {
    "string": Type.STRING,
    "integer": Type.INTEGER,
    "number": Type.NUMBER,
    "boolean": Type.BOOLEAN,
}


def shape_of(schema: Schema | None, metadata: Shape) -> Shape:
    """Return the shape of a kind's objects; ``metadata`` is the shape of ObjectMeta.

    Without a schema, or with ``x-kubernetes-preserve-unknown-fields``, other fields are kept.
    """
    shape = _shape({"type": "object", **(schema or {})}, metadata)
    shape.fields = {**shape.fields, **_embedded_fields(metadata)}
    shape.preserve_unknown = shape.preserve_unknown or schema is None
    shape.check = None if schema is None else check_of(schema)
    return shape


def _embedded_fields(metadata: Shape) -> dict[str, Shape]:
    return {"apiVersion": _STRING, "kind": _STRING, "metadata": metadata}


def _shape(schema: Schema, metadata: Shape) -> Shape:
    shape = Shape(type=_type(schema), format=schema.get("format", ""), schema=schema)
    shape.default = schema.get("default")
    shape.has_default = shape.default is not None
    shape.nullable = bool(schema.get("nullable"))
    shape.preserve_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if shape.type is Type.OBJECT:
        properties = schema.get("properties") or {}
        shape.fields = {key: _shape(one, metadata) for key, one in properties.items()}
        shape.merge = _map_merge(schema)
        if schema.get("x-kubernetes-embedded-resource"):
            shape.embedded = True
            shape.fields = {**shape.fields, **_embedded_fields(metadata)}
    elif shape.type is Type.MAP:
        values = schema["additionalProperties"]
        shape.item = _shape(values, metadata) if isinstance(values, dict) else None
        shape.merge = _map_merge(schema)
    elif shape.type is Type.LIST:
        items = schema.get("items")
        shape.item = _shape(items, metadata) if isinstance(items, dict) else None
        shape.merge = Merge(schema.get("x-kubernetes-list-type") or Merge.ATOMIC)
        shape.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    return shape


def _type(schema: Schema) -> Type:
    if schema.get("x-kubernetes-int-or-string"):
        return Type.INT_OR_STRING
    name = schema.get("type", "")
    if name == "object":
        # Structural schemas have either properties or additionalProperties.
        return Type.MAP if schema.get("additionalProperties") else Type.OBJECT
    return Type.LIST if name == "array" else _SCALARS.get(name, Type.ANY)


def _map_merge(schema: Schema) -> Merge:
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    return Merge.ATOMIC if atomic else Merge.GRANULAR


def pruned(value: Any, shape: Shape) -> Any:
    """Drop, in place, fields that the schema does not name; return the value."""
    if isinstance(value, dict) and shape.type is Type.OBJECT:
        for key in list(value):
            field = shape.fields.get(key)
            if field is not None:
                pruned(value[key], field)
            elif not shape.preserve_unknown:
                del value[key]
    elif shape.item is not None:
        for _, one in _items(value, shape):
            pruned(one, shape.item)
    return value


def with_defaults(value: Any, shape: Shape) -> Any:
    """Set defaults and drop nulls that may not be, both in place; return the value.

    A null that is not nullable becomes the default, or goes; in a list it stays, for ``causes``.
    Whole numbers lose their fraction (2.0 is 2), as they do when the real server writes JSON.
    """
    if isinstance(value, dict) and shape.type is Type.OBJECT:
        _set_fields(value, shape)
    elif shape.item is not None:
        _set_items(value, shape, shape.item)
    elif isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _set_fields(value: dict[str, Any], shape: Shape) -> None:
    for key, field in shape.fields.items():
        if field.has_default and _is_missing(value, key, field):
            value[key] = copy.deepcopy(field.default)
        elif key in value and value[key] is None and _drops_null(field):
            del value[key]
        if key in value:
            value[key] = with_defaults(value[key], field)


def _set_items(value: Any, shape: Shape, item: Shape) -> None:
    for key, one in list(_items(value, shape)):
        if one is None and item.has_default and not item.nullable:
            value[key] = copy.deepcopy(item.default)
        elif one is None and isinstance(value, dict) and _drops_null(item):
            del value[key]
        else:
            value[key] = with_defaults(one, item)


def _is_missing(value: Mapping[str, Any], key: str, field: Shape) -> bool:
    return key not in value or (value[key] is None and not field.nullable)


def _drops_null(field: Shape) -> bool:
    # Shapes of the document, as metadata's, are not the CRD's: their nulls are not judged here.
    return not field.nullable and field.schema is not None


def _items(value: Any, shape: Shape) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict) and shape.type is Type.MAP:
        yield from value.items()
    elif isinstance(value, list) and shape.type is Type.LIST:
        yield from enumerate(value)


def causes(value: Any, shape: Shape) -> list[Cause]:
    """Return what is wrong with an object, pruned and defaulted before."""
    return shape.check(value) if shape.check else []


Check = Callable[[Any], list[Cause]]

_FORMATS = ("date", "date-time", "ipv4", "ipv6")
_BITS = {"int32": 31, "int64": 63}
_KEPT = (
    *("minLength", "maxLength", "minimum", "maximum", "multipleOf", "minItems", "maxItems"),
    *("minProperties", "maxProperties", "required"),
)


def check_of(schema: Schema) -> Check:
    """Return a function that gives what is wrong with a value."""
    validate: Callable[[Any], Any] | None = None

    def check(value: Any) -> list[Cause]:
        nonlocal validate
        if validate is None:  # compiling takes milliseconds, and many kinds are never used
            validate = fastjsonschema.compile(_standard(schema), use_default=False)
        try:
            validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            return _causes(error)
        return []

    return check


def _causes(error: fastjsonschema.JsonSchemaValueException) -> list[Cause]:
    path = re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", ".".join(map(str, error.path[1:])))
    why = error.message.replace(error.name or "", path, 1)
    if error.rule == "required":
        dot = f"{path}." if path else ""
        return [required(f"{dot}{key}") for key in error.rule_definition if key not in error.value]
    if error.rule == "enum":
        return [unsupported(path, error.value, map(str, error.rule_definition))]
    if error.rule == "type":
        message = f"Invalid value: {shown(error.value)}: {why}"
        return [Cause("FieldValueTypeInvalid", message, path)]
    return [invalid(path, error.value, why)]


def _standard(schema: Schema) -> dict[str, Any]:
    """Return a schema of JSON Schema's draft 7 that means what this one does."""
    result: dict[str, Any] = {key: schema[key] for key in _KEPT if schema.get(key) is not None}
    types = [schema["type"]] if schema.get("type") else []
    if schema.get("x-kubernetes-int-or-string"):
        types = ["integer", "string"]
    if types:
        result["type"] = [*types, "null"] if schema.get("nullable") else types
    if schema.get("enum"):
        result["enum"] = [*schema["enum"], *([None] if schema.get("nullable") else [])]
    for bound in ("Minimum", "Maximum"):
        if schema.get(f"exclusive{bound}") and bound.lower() in result:
            result[f"exclusive{bound}"] = result.pop(bound.lower())
    bits = _BITS.get(schema.get("format", ""))
    if bits and types == ["integer"]:
        result.setdefault("minimum", -(2**bits))
        result.setdefault("maximum", 2**bits - 1)
    if schema.get("format") in _FORMATS and types == ["string"]:
        result["format"] = schema["format"]
    if schema.get("pattern") and _is_readable(schema["pattern"]):
        result["pattern"] = schema["pattern"]
    for key in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            result[key] = _standard(schema[key])
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            result[key] = [_standard(inner) for inner in schema[key]]
    if schema.get("properties"):
        result["properties"] = {k: _standard(v) for k, v in schema["properties"].items()}
    return result


def _is_readable(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
