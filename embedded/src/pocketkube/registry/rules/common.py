"""Small things that the rules of several kinds share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pocketkube import errors
from pocketkube.causes import duplicate, invalid, negative, required, unsupported
from pocketkube.errors import Cause
from pocketkube.names import invalid_text, label_key
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


def is_zero(value: Number) -> bool:
    """Tell whether a number or percentage is none at all."""
    if isinstance(value, str):
        return not _PERCENT(value) or int(value[:-1]) == 0
    return not value


def condition_causes(conditions: list[dict[str, Any]], field: str) -> list[Cause]:
    """Check conditions of the common form (metav1.Condition), as kinds do that have only these.

    Source: k8s.io/apimachinery ``apis/meta/v1/validation``.
    """
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, one in enumerate(conditions):
        at, kind, reason = f"{field}[{index}]", one.get("type", ""), one.get("reason", "")
        if kind in seen:
            causes.append(duplicate(f"{at}.type", kind))
        seen.add(kind)
        causes += invalid_text(f"{at}.type", kind, label_key)
        status, generation = one.get("status", ""), one.get("observedGeneration", 0)
        if status not in _STATUSES:
            causes.append(unsupported(f"{at}.status", status, _STATUSES))
        if generation < 0:
            why = "must be greater than or equal to zero"
            causes.append(invalid(f"{at}.observedGeneration", generation, why))
        if not one.get("lastTransitionTime"):
            causes.append(required(f"{at}.lastTransitionTime"))
        if not reason:
            causes.append(required(f"{at}.reason"))
        elif not _REASON(reason):
            causes.append(invalid(f"{at}.reason", reason, _REASON_TEXT))
    return causes


_STATUSES = ("False", "True", "Unknown")
_REASON = re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?").fullmatch
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' "
    "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    "regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)


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
