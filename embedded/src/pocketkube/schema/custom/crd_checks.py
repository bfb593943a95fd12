"""Values against an openAPIV3Schema, in the words of the real server.

In: decoded JSON and a schema. Out: causes. Called by ``crd``. No library of JSON schemas is used:
their messages are others, and so is the order in which they find things. Source: answers of a real
API server 1.36; it checks the type, combinations, texts, formats, numbers, lists, enums and objects
of each value in this order, and does not stop at the first error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pocketkube.causes import invalid, required, too_long, too_many, unsupported
from pocketkube.errors import Cause
from pocketkube.schema.custom.crd_formats import FORMATS

Schema = Mapping[str, Any]

_NUMBERS = ("int32", "int64", "float", "double")
_INT64_MAX = 2**63 - 1


def value_causes(value: Any, schema: Schema, path: str) -> list[Cause]:
    """Return what is wrong with a value, each cause once; ``path`` is "" for a whole object."""
    found: list[Cause] = []
    for check in _CHECKS if value is not None else (_type_causes, _enum_causes):
        for cause in check(value, schema, path):
            if cause not in found:
                found.append(cause)
    return found


def _type_causes(value: Any, schema: Schema, path: str) -> list[Cause]:
    types = _types(schema)
    if value is None:
        is_wrong = bool(types) and not schema.get("nullable")
        return [_mistyped(path, ",".join(types), "null")] if is_wrong else []
    given, own_format = _go_type(value)
    wanted_format = _format(schema)
    fits = (
        given in types
        or (given == "number" and "integer" in types and _is_whole(value))
        or (given == "integer" and "number" in types)
    )
    if wanted_format and not isinstance(value, str | list):
        if not fits and wanted_format != own_format:
            return [_mistyped(path, wanted_format, own_format)]
    elif wanted_format and "number" not in types and "integer" not in types:
        return []  # the format's own check says more
    return [] if fits or not types else [_mistyped(path, ",".join(types), given)]


def _is_whole(value: float) -> bool:
    """Tell whether a number that is not an integer for Go is one for JSON, such as 2.0."""
    return float(value).is_integer() and abs(value) < 2**53


def _types(schema: Schema) -> list[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return ["integer", "string"]
    return [schema["type"]] if schema.get("type") else []


def _format(schema: Schema) -> str:
    """Return the format, if the server knows it for this type."""
    name: str = schema.get("format") or ""
    if schema.get("type") == "integer":
        return name if name in ("int32", "int64") else ""
    if schema.get("type") == "number":
        return name if name in ("float", "double") else ""
    return name if name.replace("-", "") in FORMATS else ""


def _go_type(value: Any) -> tuple[str, str]:
    """Return the JSON type, and what Go calls numbers of it."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, int) and -_INT64_MAX - 1 <= value <= _INT64_MAX:
        return "integer", "int64"
    if isinstance(value, int | float):
        return "number", "float64"
    if isinstance(value, str):
        return "string", ""
    return ("array" if isinstance(value, list) else "object"), ""


def _mistyped(path: str, wanted: str, given: str) -> Cause:
    text = json.dumps(given, ensure_ascii=False)
    message = f"Invalid value: {text}: {path} in body must be of type {wanted}: {text}"
    return Cause("FieldValueTypeInvalid", message, path)


def _combination_causes(value: Any, schema: Schema, path: str) -> list[Cause]:
    found: list[Cause] = []
    results = [value_causes(value, one, path) for one in schema.get("anyOf") or ()]
    if results and all(results):
        found += [_nowhere(f'"{path}" must validate at least one schema (anyOf)'), *results[0]]
    results = [value_causes(value, one, path) for one in schema.get("oneOf") or ()]
    right = results.count([])
    if results and right != 1:
        head = f'"{path}" must validate one and only one schema (oneOf).'
        tail = f"Found {right} valid alternatives" if right else "Found none valid"
        found += [_nowhere(f"{head} {tail}"), *([] if right else results[0])]
    results = [value_causes(value, one, path) for one in schema.get("allOf") or ()]
    if any(results):
        found += [cause for result in results for cause in result]
        tail = ". None validated" if all(results) else ""
        found.append(_nowhere(f'"{path}" must validate all the schemas (allOf){tail}'))
    if schema.get("not") is not None and not value_causes(value, schema["not"], path):
        found.append(_nowhere(f'"{path}" must not validate the schema (not)'))
    return found


def _nowhere(why: str) -> Cause:
    """The real server names no field here, and prints Go's nil."""
    return invalid("<nil>", "", why)


def _text_causes(value: Any, schema: Schema, path: str) -> list[Cause]:
    if not isinstance(value, str):
        return []
    most, least = schema.get("maxLength"), schema.get("minLength")
    if most is not None and len(value) > most:
        return [too_long(path, int(most))]
    if least is not None and len(value) < least:
        return [invalid(path, value, f"{path} in body should be at least {least} chars long")]
    pattern = schema.get("pattern")
    if pattern and not _matcher(pattern)(value):
        return [invalid(path, value, f"{path} in body should match '{pattern}'")]
    return []


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[str], object]:
    r"""Compile a pattern of Go's regexp: its $ and \z are the very end, its classes are ASCII."""
    ends = re.sub(r"\\.|\$", lambda m: r"\Z" if m[0] in ("$", r"\z") else m[0], pattern)
    try:
        return re.compile(ends, re.ASCII).search
    except re.error:  # what only Go understands is not judged
        return lambda _text: True


def _format_causes(value: Any, schema: Schema, path: str) -> list[Cause]:
    name = _format(schema)
    if not name or not isinstance(value, str) or name in _NUMBERS:
        return []
    return [] if FORMATS[name.replace("-", "")](value) else [_mistyped(path, name, value)]


def _number_causes(value: Any, schema: Schema, path: str) -> list[Cause]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    found = _range_causes(value, schema, path)
    step, least, most = (schema.get(key) for key in ("multipleOf", "minimum", "maximum"))
    if step is not None and not float(value / step).is_integer():
        found.append(invalid(path, value, f"{path} in body should be a multiple of {_go(step)}"))
    if least is not None:
        strict = bool(schema.get("exclusiveMinimum"))
        if value < least or (strict and value == least):
            words = "greater than" if strict else "greater than or equal to"
            found.append(invalid(path, value, f"{path} in body should be {words} {_go(least)}"))
    if most is not None:
        strict = bool(schema.get("exclusiveMaximum"))
        if value > most or (strict and value == most):
            words = "less than" if strict else "less than or equal to"
            found.append(invalid(path, value, f"{path} in body should be {words} {_go(most)}"))
    return found


def _range_causes(value: float, schema: Schema, path: str) -> list[Cause]:
    if schema.get("type") != "integer":
        return []
    name = _format(schema)
    bits = 31 if name == "int32" else 63
    if float(value).is_integer() and -(2**bits) <= value < 2**bits:
        return []
    kind = f"integer with format {name}" if name else "integer (default format)"
    return [_nowhere(f"Checked value must be of type {kind} in {path}")]


def _go(number: float) -> str:
    """Write a bound as Go does."""
    whole = isinstance(number, int) or float(number).is_integer()
    return str(int(number)) if whole else repr(number)


def _list_causes(value: Any, schema: Schema, path: str) -> list[Cause]:
    if not isinstance(value, list):
        return []
    found: list[Cause] = []
    items = schema.get("items")
    if isinstance(items, dict):
        for i, one in enumerate(value):
            found += value_causes(one, items, f"{path}[{i}]")
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        why = f"{path} in body should have at least {least} items"
        found.append(invalid(path, len(value), why))
    if most is not None and len(value) > most:
        found.append(too_many(path, len(value), most))
    return found


def _enum_causes(value: Any, schema: Schema, path: str) -> list[Cause]:
    enum = schema.get("enum")
    if not enum or any(type(one) is type(value) and one == value for one in enum):
        return []
    known = [one if isinstance(one, str) else json.dumps(one) for one in enum]
    return [unsupported(path, value, known)]


def _object_causes(value: Any, schema: Schema, path: str) -> list[Cause]:
    if not isinstance(value, dict):
        return []
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        why = f"{path} in body should have at least {least} properties"
        return [invalid(path, len(value), why)]
    if most is not None and len(value) > most:
        return [too_many(path, len(value), most)]
    found: list[Cause] = []
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    dot = f"{path}." if path else ""
    if isinstance(others, dict):
        for key, one in value.items():
            if key not in properties:
                found += value_causes(one, others, f"{dot}{key}")
    for key, inner in properties.items():
        if key in value:
            found += value_causes(value[key], inner, f"{dot}{key}")
    missing = [key for key in schema.get("required") or () if key not in value]
    return found + [required(f"{dot}{key}") for key in missing]


_CHECKS: tuple[Callable[[Any, Schema, str], list[Cause]], ...] = (
    _type_causes,
    _combination_causes,
    _text_causes,
    _format_causes,
    _number_causes,
    _list_causes,
    _enum_causes,
    _object_causes,
)
