"""CustomResourceDefinitions: their defaults, checks and status, and the resources that they define.

In: definitions as plain objects. Out: resources for the registry, and the rules of the kind itself.
Source: k8s.io/apiextensions-apiserver of 1.36, and answers of a real API
server. Unlike there, names are accepted at once: what is created is established.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import invalid, required, unsupported
from pocketkube.errors import Cause
from pocketkube.objects import Object, name_of, rfc3339
from pocketkube.registry.rules.common import Rules, Surroundings
from pocketkube.schema.custom.crd import shape_of
from pocketkube.schema.document import Document
from pocketkube.schema.resource import Resource, Subresource, version_rank

Fields = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def validate_definition(definition: Object) -> list[Cause]:
    """Return what is wrong with a definition that has its defaults.

    Only that without which its kind cannot be served: names, one stored version, and schemas.
    """
    spec: Fields = definition.get("spec") or {}
    names: Fields = spec.get("names") or {}
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    causes: list[Cause] = []
    if name_of(definition) and name_of(definition) != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        causes.append(invalid("metadata.name", name_of(definition), why))
    causes += [required(f"spec.{field}") for field in ("group", "scope") if not spec.get(field)]
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            causes.append(required(f"spec.names.{field}"))
    versions: list[Fields] = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        causes.append(invalid("spec.versions", versions, why))
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        causes += [required(path)] if schema is None else _schema_causes(schema, path)
    return causes


def _schema_causes(schema: Fields, path: str) -> list[Cause]:
    """Check that each value of a schema has a type that is known."""
    causes: list[Cause] = []
    untyped = schema.get("x-kubernetes-int-or-string") or schema.get(_PRESERVE)
    if not schema.get("type") and not untyped:
        causes.append(required(f"{path}.type", "must not be empty"))
    elif schema.get("type") not in (None, *_TYPES):
        causes.append(unsupported(f"{path}.type", schema["type"], _TYPES))
    inner = {f"{path}.properties[{k}]": v for k, v in (schema.get("properties") or {}).items()}
    inner |= {f"{path}.{key}": schema.get(key) for key in ("additionalProperties", "items")}
    for where, value in inner.items():
        if isinstance(value, dict):
            causes += _schema_causes(value, where)
    return causes


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


def resources_of(definition: Object) -> list[Resource]:
    """Return a resource for each served version, the preferred one first."""
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


def established_status(definition: Object, now_s: float) -> dict[str, Any]:
    """Return the status that the real server's controllers give a definition.

    Conditions that do not change keep their time.
    """
    names = definition["spec"]["names"]
    before = definition.get("status") or {}
    accepted = {key: names[key] for key in _NAMES if names.get(key)}
    named = ("True", "NoConflicts", "no conflicts found")
    served = ("True", "InitialNamesAccepted", "the initial names have been accepted")
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


FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a definition until its objects are gone."""


def _prepare_create(definition: Object, around: Surroundings) -> None:
    definition.pop("status", None)
    definition["metadata"].setdefault("finalizers", []).append(FINALIZER)
    _set_status(definition, around)


def _prepare_update(definition: Object, old: Object, around: Surroundings) -> None:
    definition["status"] = old.get("status") or {}
    _set_status(definition, around)


def _set_status(definition: Object, around: Surroundings) -> None:
    if not validate_definition(definition):
        definition["status"] = established_status(definition, around.now_s())


RULES = Rules(
    defaults=set_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate=validate_definition,
    has_generation=True,
)
