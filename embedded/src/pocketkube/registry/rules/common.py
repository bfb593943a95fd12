"""Small things that the rules of several kinds share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pocketkube import errors
from pocketkube.causes import invalid, negative
from pocketkube.errors import Cause
from pocketkube.objects import Object
from pocketkube.registry.rules.base import Surroundings

_PERCENT = re.compile("[0-9]+%").fullmatch
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)

Number = int | str | None


def spec_of(obj: Object) -> dict[str, Any]:
    """Return the spec, an empty one that belongs to the object when there was none."""
    spec: dict[str, Any] | None = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    return spec


def set_default(target: dict[str, Any], field: str, value: object) -> None:
    """Set a field that is absent or null."""
    if target.get(field) is None:
        target[field] = value


def with_status(status: Mapping[str, Any]) -> Callable[[Object, Surroundings], None]:
    """Return a hook that gives a new object this status; Go writes it even when it is empty."""

    def prepare(obj: Object, _around: Surroundings) -> None:
        obj["status"] = dict(status)

    return prepare


def percent_causes(value: Number, field: str) -> list[Cause]:
    """Check a number that may be a percentage."""
    if isinstance(value, str):
        return [] if _PERCENT(value) else [invalid(field, value, _PERCENT_TEXT)]
    return negative(field, value)


def at_most_all(value: Number, field: str) -> list[Cause]:
    """Refuse more than 100 %."""
    if isinstance(value, str) and _PERCENT(value) and int(value[:-1]) > 100:
        return [invalid(field, value, "must not be greater than 100%")]
    return []


def needs_version(group: str, plural: str) -> Callable[..., None]:
    """Return a hook that refuses updates without resourceVersion, for kinds that accept none.

    Source: AllowUnconditionalUpdate of the strategies in kubernetes ``pkg/registry``.
    """

    def prepare(obj: Object, old: Object, _around: object = None) -> None:
        if obj["metadata"].get("resourceVersion") in (None, "", "0"):
            why = "must be specified for an update"
            causes = [invalid("metadata.resourceVersion", 0, why)]
            raise errors.invalid(group, plural, old["metadata"]["name"], causes)

    return prepare


def text_of(*path: str) -> Callable[[Object], str]:
    """Return how to read a field for a field selector; empty when it is absent."""

    def read(obj: Object) -> str:
        found: Any = obj
        for key in path:
            found = (found or {}).get(key)
        return "" if found is None else str(found)

    return read


def number_of(*path: str) -> Callable[[Object], str]:
    """Return how to read a number for a field selector; 0 when it is absent."""
    read = text_of(*path)
    return lambda obj: read(obj) or "0"
