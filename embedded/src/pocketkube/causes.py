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


def forbidden(field: str, why: str) -> Cause:
    """A field may not be set, or not be changed, now."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def too_long(field: str, bytes_max: int) -> Cause:
    """A text has too many bytes."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {bytes_max} bytes", field)


def negative(field: str, value: Any) -> list[Cause]:
    """Refuse a number below zero; None is fine."""
    return [invalid(field, value, NEGATIVE)] if value is not None and value < 0 else []


def immutable(field: str, new: object, old: object) -> list[Cause]:
    """Refuse any change of a field."""
    return [] if new == old else [invalid(field, new, IMMUTABLE)]


def shown(value: object) -> str:
    """Write a value as messages quote it: text in quotes, the rest as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
