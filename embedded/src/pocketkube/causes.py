"""The causes of a 422, worded as a real API server words them.

In: the path of a field, its value, what is wrong. Out: ``Cause``. Called by the rules of all kinds.
Source of the words: k8s.io/apimachinery ``util/validation/field`` of 1.36.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pocketkube.errors import Cause

NEGATIVE = "must be greater than or equal to 0"
NOT_INTEGER = "must be an integer"
IMMUTABLE = "field is immutable"
INT32_MAX = 2**31 - 1


def required(field: str, why: str = "") -> Cause:
    """A field that must be there is not."""
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", field)


def invalid(field: str, value: object, why: str) -> Cause:
    """A value breaks a rule."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {why}", field)


def unsupported(field: str, value: object, supported: Iterable[str]) -> Cause:
    """A value is none of those that are known."""
    known = ", ".join(f'"{one}"' for one in supported)
    message = f"Unsupported value: {shown(value)}: supported values: {known}"
    return Cause("FieldValueNotSupported", message, field)


def duplicate(field: str, value: object) -> Cause:
    """A value is there twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def not_found(field: str, value: object) -> Cause:
    """A value names something that is not there."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", field)


def forbidden(field: str, why: str) -> Cause:
    """A field may not be set, or not be changed, now."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def too_long(field: str, bytes_max: int) -> Cause:
    """A text has too many bytes."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {bytes_max} bytes", field)


def too_many(field: str, count: int, items_max: int) -> Cause:
    """A list has too many items."""
    what = "item" if items_max == 1 else "items"
    message = f"Too many: {count}: must have at most {items_max} {what}"
    return Cause("FieldValueTooMany", message, field)


def between(least: int, most: int) -> str:
    """Say in which range a number has to be."""
    return f"must be between {least} and {most}, inclusive"


def negative(field: str, value: Any) -> list[Cause]:
    """Refuse a number below zero; None is fine."""
    return [invalid(field, value, NEGATIVE)] if value is not None and value < 0 else []


def immutable(field: str, new: object, old: object) -> list[Cause]:
    """Refuse any change of a field."""
    return [] if new == old else [invalid(field, new, IMMUTABLE)]


def one_of(field: str, value: object, supported: tuple[str, ...]) -> list[Cause]:
    """Refuse an empty value (required) and one that is not among the supported ones."""
    if value in supported:
        return []
    return [unsupported(field, value, supported)] if value else [required(field)]


def shown(value: object) -> str:
    """Write a value as messages quote it: text in quotes, the rest as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
