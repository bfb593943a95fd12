"""CustomResourceDefinitions: their defaults, checks and status, and the resources that they define.

In: definitions as plain objects. Out: resources for the registry. The hooks of the kind itself are
in ``rules.definitions``. Source: k8s.io/apiextensions-apiserver of 1.36, and answers of a real API
server. Unlike there, names are accepted at once: what is created is established.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.errors import Cause
from pocketkube.objects import Object, name_of, rfc3339
from pocketkube.registry.custom_checks import definition_causes
from pocketkube.schema.custom.crd import shape_of
from pocketkube.schema.document import Document
from pocketkube.schema.resource import Resource, Subresource, version_rank

BUCKET = "customresourcedefinitions.apiextensions.k8s.io"

_VERBS = frozenset(
    {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
)
_STATUS_VERBS = frozenset({"get", "patch", "update"})
_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_NAME = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
_AGE = {
    "name": "Age",
    "type": "date",
    "format": "",
    "description": "",
    "priority": 0,
    "jsonPath": ".metadata.creationTimestamp",
}


def set_defaults(definition: Object) -> None:
    """Fill in, in place, what a definition leaves out: singular, listKind, conversion."""
    spec = definition.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    conversion = spec.setdefault("conversion", {})
    conversion.setdefault("strategy", "None")
    if spec.get("preserveUnknownFields") is False:  # its default, which is not written
        del spec["preserveUnknownFields"]


def validate_definition(definition: Object) -> list[Cause]:
    """Return what is wrong with a definition that has its defaults."""
    return definition_causes(definition)


def resources_of(definition: Object) -> list[Resource]:
    """Return a resource for each served version, the preferred one first.

    None while the names are not accepted, because another definition of the group has them.
    """
    if _condition(definition, "Established") == "False":
        return []
    spec = definition["spec"]
    versions = [version for version in spec["versions"] if version.get("served")]
    versions.sort(key=lambda version: version_rank(version["name"]), reverse=True)
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return [_resource(definition, version, stored) for version in versions]


def _resource(definition: Object, version: Mapping[str, Any], stored: str) -> Resource:
    spec, names = definition["spec"], definition["spec"]["names"]
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    subresources = version.get("subresources") or {}
    columns = version.get("additionalPrinterColumns") or []
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        singular=names["singular"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        verbs=_VERBS,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources={
            name: _subresource(name, spec["group"], version["name"], names["kind"])
            for name in ("scale", "status")
            if name in subresources
        },
        shape=shape_of(schema, Document.load().shape(_METADATA)),
        bucket=f"{names['plural']}.{spec['group']}",
        list_kind=names["listKind"],
        crd=name_of(definition),
        storage_version=stored,
        columns=(_NAME, *([_column(one) for one in columns] or [_AGE])),
        extras={
            "scale": subresources.get("scale") or {},
            "selectableFields": version.get("selectableFields") or [],
        },
    )


def _subresource(name: str, group: str, version: str, kind: str) -> Subresource:
    if name == "scale":
        kind, group, version = "Scale", "autoscaling", "v1"
    return Subresource(name=name, verbs=_STATUS_VERBS, kind=kind, group=group, version=version)


def _column(column: Mapping[str, Any]) -> dict[str, Any]:
    """Return a columnDefinition of a Table, and the path of its cells."""
    return {
        "name": column["name"],
        "type": column["type"],
        "format": column.get("format", ""),
        "description": column.get("description", ""),
        "priority": column.get("priority", 0),
        "jsonPath": column["jsonPath"],
    }


def established_status(
    definition: Object, now_s: float, others: list[Object] | None = None
) -> dict[str, Any]:
    """Return the status that the real server's controllers give a definition.

    ``others`` are the definitions that there are; names that one of its group has already are not
    accepted. Conditions that do not change keep their time.
    """
    names = definition["spec"]["names"]
    before = definition.get("status") or {}
    conflict = _conflict(definition, others or [])
    if conflict is None:
        accepted = {key: names[key] for key in _NAMES if names.get(key)}
        named = ("True", "NoConflicts", "no conflicts found")
        served = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        accepted = before.get("acceptedNames") or {"plural": "", "kind": ""}
        named = ("False", *conflict)
        served = ("False", "NotAccepted", "not all names are accepted")
    stored = list(before.get("storedVersions") or [])
    for version in definition["spec"]["versions"]:
        if version.get("storage") and version["name"] not in stored:
            stored.append(version["name"])
    conditions = [
        _new_condition(definition, kind, *values, now_s)
        for kind, values in (("NamesAccepted", named), ("Established", served))
    ]
    return {"conditions": conditions, "acceptedNames": accepted, "storedVersions": stored}


_NAMES = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def _new_condition(
    definition: Object, kind: str, status: str, reason: str, message: str, now_s: float
) -> dict[str, Any]:
    known = (definition.get("status") or {}).get("conditions") or []
    old: Mapping[str, Any] = next((one for one in known if one.get("type") == kind), {})
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": since or rfc3339(now_s),
        "reason": reason,
        "message": message,
    }


def _condition(definition: Object, kind: str) -> str:
    conditions = (definition.get("status") or {}).get("conditions") or []
    return next((str(one.get("status")) for one in conditions if one.get("type") == kind), "")


def _conflict(definition: Object, others: list[Object]) -> tuple[str, str] | None:
    """Return reason and message of the first name that another definition of the group has."""
    spec = definition["spec"]
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if name_of(other) == name_of(definition) or other["spec"]["group"] != spec["group"]:
            continue
        taken = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {taken.get("plural", ""), taken.get("singular", "")}
        resources |= set(taken.get("shortNames") or ())
        kinds |= {taken.get("kind", ""), taken.get("listKind", "")}
    names = spec["names"]
    for key, reason, known in (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        if names.get(key) and names[key] in known:
            return reason, f'"{names[key]}" is already in use'
    for name in names.get("shortNames") or ():
        if name in resources:
            return "ShortNamesConflict", f'"{name}" is already in use'
    return None
