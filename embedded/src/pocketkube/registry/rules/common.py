"""What a kind may say about its own objects (``Rules``), and what rules of several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pocketkube import errors
from pocketkube.causes import forbidden, invalid, required
from pocketkube.errors import Cause
from pocketkube.names import (
    invalid_text,
    label_causes,
    label_key,
    label_value,
)
from pocketkube.objects import Object, at

_WITH_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


def label_selector_causes(selector: Mapping[str, Any] | None, field: str) -> list[Cause]:
    """Check a LabelSelector; None is fine."""
    if not selector:
        return []
    causes = label_causes(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = f"{field}.matchExpressions[{index}]"
        operator, values = requirement.get("operator", ""), requirement.get("values") or ()
        if operator not in _WITH_VALUES:
            causes.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
        elif _WITH_VALUES[operator] and not values:
            why = "must be specified when `operator` is 'In' or 'NotIn'"
            causes.append(required(f"{where}.values", why))
        elif values and not _WITH_VALUES[operator]:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(forbidden(f"{where}.values", why))
        causes += invalid_text(f"{where}.key", requirement.get("key", ""), label_key)
        for number, value in enumerate(values):
            causes += invalid_text(f"{where}.values[{number}]", value, label_value)
    return causes


class Surroundings(Protocol):
    """What a hook may look at besides the object."""

    def now_s(self) -> float:
        """Return the seconds since 1970."""

    def suffix(self) -> str:
        """Return five random letters, as generated names end."""

    def find(self, bucket: str, namespace: str, name: str) -> Object | None:
        """Return a stored object; buckets are named ``pods``, ``deployments.apps``."""

    def find_all(self, bucket: str, namespace: str = "") -> list[Object]:
        """Return the stored objects of a bucket, of one namespace or of all."""


def _nothing(*_: Any) -> None:
    return None


def _no_causes(*_: Any) -> list[Cause]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Hooks of one resource.

    On create, in this order: defaults, prepare_create, validate, validate_create. On update:
    defaults(new), prepare_update(new, old), validate(new), validate_update(new, old). On a write to
    ``status``: prepare_status(new, old). All change the new object in
    place. The prepare hooks may raise ApiError (403), as admission plugins do. What all kinds share
    (name, uid, resourceVersion, creationTimestamp, metadata checks, keeping status out of writes to
    the main resource and spec out of writes to the status) is done by ``api``, not here.
    """

    defaults: Callable[[Object], None] = _nothing
    prepare_create: Callable[[Object, Surroundings], None] = _nothing
    prepare_update: Callable[[Object, Object, Surroundings], None] = _nothing
    prepare_status: Callable[[Object, Object], None] = _nothing
    validate: Callable[[Object], list[Cause]] = _no_causes
    validate_create: Callable[[Object], list[Cause]] = _no_causes
    """Checks that only a create has, after those of ``validate``."""
    validate_update: Callable[[Object, Object], list[Cause]] = _no_causes
    has_generation: bool = False
    """metadata.generation is kept: 1 at first, one more with each change of the spec."""
    counts_annotations: bool = False
    """metadata.generation grows with changed annotations too, as it does for Deployments."""
    keeps_status: bool = False
    """A create may set the status, as it may for nodes; otherwise it is dropped."""
    selectable: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """Field selectors besides metadata.name and metadata.namespace, such as spec.nodeName."""
    name_is: str = "dns-subdomain"
    """Form of metadata.name: dns-subdomain, dns-label, dns-1035-label, path-segment (RBAC)."""


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
    where = ".".join(path)

    def read(obj: Object) -> str:
        value = at(obj, where)
        return (
            str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
        )

    return read


def number_of(*path: str) -> Callable[[Object], str]:
    """Return how to read a number for a field selector; 0 when it is absent."""
    read = text_of(*path)
    return lambda obj: read(obj) or "0"
