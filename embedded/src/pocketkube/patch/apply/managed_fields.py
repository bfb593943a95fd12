"""Who owns which fields: ``metadata.managedFields``, and what an update does to them.

Fields are tracked from the first apply to an object on; until then nobody pays for it. The real
server tracks from the creation on, which differs only in what ``--show-managed-fields`` prints and
in that the fields of that time belong to one manager, ``before-first-apply``.
Source of the rules: k8s.io/apimachinery ``pkg/util/managedfields`` of 1.36.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pocketkube.objects import Object, meta, parsed_time_s
from pocketkube.patch.apply.field_paths import (
    NOTHING,
    Fields,
    Path,
    named,
    read_fields,
    without_trees,
    write_fields,
)
from pocketkube.patch.apply.structure import Difference, difference
from pocketkube.patch.values import Json
from pocketkube.schema.shape import Shape

APPLY = "Apply"
UPDATE = "Update"
BEFORE_FIRST_APPLY = "before-first-apply"

Ignored = tuple[Path, ...]
"""Fields that a kind of write cannot change, and nobody owns by it: ``(named("status"),)``."""

NEVER_OWNED: Fields = frozenset(
    [named("apiVersion"), named("kind"), named("metadata")]
    + [
        named("metadata", name)
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ]
)


class Manager(NamedTuple):
    """Who writes, and how; appliers are the same in all versions of the API."""

    name: str
    operation: str
    subresource: str = ""
    api_version: str = ""  # of an update


@dataclass(frozen=True, slots=True)
class Owned:
    """What a manager owns, since when."""

    fields: Fields
    api_version: str
    time: str = ""


Managers = dict[Manager, Owned]


def manager_of(name: str, operation: str, api_version: str, subresource: str) -> Manager:
    """Return who writes; a writer without a name is called unknown."""
    version = api_version if operation == UPDATE else ""
    return Manager(name or "unknown", operation, subresource, version)


def read_managers(entries: Json) -> Managers:
    """Read ``metadata.managedFields``. Raises ValueError for what the real server cannot read."""
    managers: Managers = {}
    if not isinstance(entries, list | None):
        raise ValueError("no list of managers")
    for entry in entries or []:
        if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
            raise ValueError("neither Apply nor Update")
        if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
            raise ValueError("no apiVersion, or fields that are not FieldsV1")
        operation, version = entry["operation"], entry["apiVersion"]
        owned = Owned(read_fields(entry.get("fieldsV1")), version, entry.get("time") or "")
        _since_s(owned)  # a time that cannot be read is refused here, not when it is compared
        name, subresource = entry.get("manager", ""), entry.get("subresource", "")
        managers[Manager(name, operation, subresource, version * (operation == UPDATE))] = owned
    return managers


def write_managers(managers: Managers) -> list[dict[str, Any]]:
    """Write ``metadata.managedFields``: appliers first, then by time and name."""
    return [
        {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": owned.api_version,
            **({"time": owned.time} if owned.time else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": write_fields(owned.fields),
            **({"subresource": manager.subresource} if manager.subresource else {}),
        }
        for manager, owned in sorted(managers.items(), key=_place)
    ]


def _place(entry: tuple[Manager, Owned]) -> tuple[str, float, str, str, str]:
    manager, owned = entry
    version = owned.api_version
    return (manager.operation, _since_s(owned), manager.name, version, manager.subresource)


def _since_s(owned: Owned) -> float:
    return parsed_time_s(owned.time) if owned.time else 0.0


def managers_of(obj: Object | None) -> Managers:
    """Return the managers of a stored object; none when they cannot be read."""
    try:
        return read_managers(meta(obj or {}).get("managedFields"))
    except ValueError:
        return {}


def with_managers(obj: Object, managers: Managers) -> Object:
    """Return the object with these as its managedFields; without any it has no such field."""
    if not managers and "managedFields" not in meta(obj):
        return obj
    metadata = {name: value for name, value in meta(obj).items() if name != "managedFields"}
    if managers:
        metadata["managedFields"] = write_managers(managers)
    return {**obj, "metadata": metadata}


def track_update(
    before: Object | None,
    after: Object,
    shape: Shape,
    *,
    manager: str,
    api_version: str,
    now: str,
    subresource: str = "",
    ignored: Ignored = (),
) -> Object:
    """Return ``after`` with managedFields that say who wrote what: any write but an apply.

    In: the stored object, or None on a create; the object to be stored, with the managedFields
    that the client sent; who writes, and when (RFC 3339). A client may set managedFields, and reset
    them by ``[]`` or ``[{}]``; what cannot be read is as if it had not been sent. Objects without
    managedFields are returned as they are.
    """
    managers = _sent_or_stored(before, after, subresource)
    if not managers:
        return with_managers(after, {})
    old, new = with_managers(before or {}, {}), with_managers(after, {})
    who = manager_of(manager, UPDATE, api_version, subresource)
    return with_managers(new, updated(managers, old, new, shape, who, api_version, now, ignored))


def _sent_or_stored(before: Object | None, after: Object, subresource: str) -> Managers:
    sent = meta(after).get("managedFields")
    if subresource or sent is None:
        return managers_of(before)
    if sent in ([], [{}]):
        return {}
    return managers_of(after) or managers_of(before)


def updated(
    managers: Managers,
    old: Object,
    new: Object,
    shape: Shape,
    who: Manager,
    api_version: str,
    now: str,
    ignored: Ignored,
) -> Managers:
    """Return the managers after ``who`` has replaced ``old`` by ``new``."""
    change = without_ignored(difference(old, new, shape), ignored)
    left = without_lost(managers, change.written | change.removed)
    mine = change.written - NEVER_OWNED
    if mine:
        had = left[who].fields if who in left else NOTHING
        left[who] = Owned(mine | had, api_version, now)
    return left


def without_ignored(change: Difference, ignored: Ignored) -> Difference:
    """Return a difference less what this kind of write cannot change."""
    return Difference(*(without_trees(fields, ignored) for fields in change))


def without_lost(managers: Managers, lost: Fields) -> Managers:
    """Take fields from all managers; who owns nothing any more is no manager."""
    left = {who: replace(owned, fields=owned.fields - lost) for who, owned in managers.items()}
    return {who: owned for who, owned in left.items() if owned.fields}
