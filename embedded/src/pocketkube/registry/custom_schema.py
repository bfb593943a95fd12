"""Whether an openAPIV3Schema is structural, as every CustomResourceDefinition's has to be.

In: a schema. Out: causes. Called by ``custom_checks``. Source: Kubernetes' documentation of
structural schemas, and answers of a real API server 1.36.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pocketkube.causes import forbidden, invalid, required, unsupported
from pocketkube.errors import Cause
from pocketkube.schema.custom.crd_checks import value_causes

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_LIST_TYPE = "x-kubernetes-list-type"
_LIST_KEYS = "x-kubernetes-list-map-keys"
_LOGICAL = ("allOf", "anyOf", "oneOf")
_NOT_INSIDE = ("type", "default", "additionalProperties", "nullable", "description", "title")


def schema_causes(schema: Schema, path: str) -> list[Cause]:
    """Return everything that is wrong with the schema of a kind."""
    if not schema.get("type"):
        return [required(f"{path}.type", "must not be empty at the root")]
    if schema["type"] != "object":
        return [invalid(f"{path}.type", schema["type"], "must be object at the root")]
    return _metadata_causes(schema, path) + _causes(schema, path)


def _metadata_causes(schema: Schema, path: str) -> list[Cause]:
    """Fields that every object has may be repeated, but say nothing new."""
    found: list[Cause] = []
    properties = schema.get("properties") or {}
    for key, wanted in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        given = (properties.get(key) or {}).get("type")
        if key in properties and given != wanted:
            found.append(invalid(f"{path}.properties[{key}].type", given, f"must be {wanted}"))
    inner = (properties.get("metadata") or {}).get("properties") or {}
    if set(inner) - {"name", "generateName"}:
        why = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        found.append(forbidden(f"{path}.properties[metadata]", why))
    return found


def _causes(schema: Schema, path: str) -> list[Cause]:
    found = _own_causes(schema, path) + _list_causes(schema, path) + _logical_causes(schema, path)
    for key, inner in (schema.get("properties") or {}).items():
        where = f"{path}.properties[{key}]"
        if isinstance(inner, dict):
            found += _type_causes(inner, where, "must not be empty for specified object fields")
            found += _causes(inner, where)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        where = f"{path}.additionalProperties"
        found += _type_causes(others, where, "must not be empty for specified object fields")
        found += _causes(others, where)
    items = schema.get("items")
    if isinstance(items, dict):
        found += _type_causes(items, f"{path}.items", "must not be empty for specified array items")
        found += _causes(items, f"{path}.items")
    return found


def _type_causes(schema: Schema, path: str, why: str) -> list[Cause]:
    given = schema.get("type")
    if given:
        return [] if given in _TYPES else [unsupported(f"{path}.type", given, _TYPES)]
    is_free = schema.get("x-kubernetes-int-or-string") or schema.get(_PRESERVE)
    return [] if is_free or "$ref" in schema else [required(f"{path}.type", why)]


def _own_causes(schema: Schema, path: str) -> list[Cause]:
    found = [
        forbidden(f"{path}.{key}", f"{key} is not supported")
        for key in ("$ref", "definitions", "dependencies", "patternProperties", "id", "deprecated")
        if key in schema
    ]
    if schema.get("properties") and schema.get("additionalProperties"):
        why = "additionalProperties and properties are mutual exclusive"
        found.append(forbidden(f"{path}.additionalProperties", why))
    if schema.get(_PRESERVE) is False:
        found.append(invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined"))
    if schema.get(_EMBEDDED) and not (schema.get("properties") or schema.get(_PRESERVE)):
        why = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        found.append(required(f"{path}.properties", why))
    if schema.get("default") is not None:
        # The path of a default is empty, so that the real server's sentence starts with a space.
        wrong = value_causes(schema["default"], schema, "")
        found += [cause._replace(field=f"{path}.default") for cause in wrong]
        if _pruned(copy.deepcopy(schema["default"]), schema) != schema["default"]:
            why = "must not have unknown fields"
            found.append(invalid(f"{path}.default", schema["default"], why))
    return found


def _pruned(value: Any, schema: Schema) -> Any:
    """Return a default without the fields that its schema does not name."""
    others = schema.get("additionalProperties")
    if isinstance(value, dict) and others is None and schema.get("type") == "object":
        named = schema.get("properties") or {}
        kept = (
            value if schema.get(_PRESERVE) else {key: value[key] for key in value if key in named}
        )
        return {key: _pruned(one, named.get(key) or {}) for key, one in kept.items()}
    if isinstance(value, dict) and isinstance(others, dict):
        return {key: _pruned(one, others) for key, one in value.items()}
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [_pruned(one, schema["items"]) for one in value]
    return value


def _list_causes(schema: Schema, path: str) -> list[Cause]:
    found: list[Cause] = []
    items = schema.get("items")
    if schema.get("type") == "array" and items is None:
        found.append(required(f"{path}.items", "must be specified"))
    if isinstance(items, list):
        why = "items must be a schema object and not an array"
        found.append(forbidden(f"{path}.items", why))
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(forbidden(f"{path}.uniqueItems", why))
    kind = schema.get(_LIST_TYPE)
    if kind is not None and kind not in ("atomic", "set", "map"):
        found.append(unsupported(f"{path}.{_LIST_TYPE}", kind, ("atomic", "set", "map")))
    inner: Schema = items if isinstance(items, dict) else {}
    if kind == "set" and inner.get("type") in ("object", "array"):
        what = "map" if inner["type"] == "object" else "list"
        if inner.get(f"x-kubernetes-{what}-type") != "atomic":
            why = f"must be atomic as item of a list with {_LIST_TYPE}=set"
            given = inner.get(f"x-kubernetes-{what}-type")
            found.append(invalid(f"{path}.items.x-kubernetes-{what}-type", given, why))
    return found + (_key_causes(schema, inner, path) if kind == "map" else [])


def _key_causes(schema: Schema, items: Schema, path: str) -> list[Cause]:
    keys = schema.get(_LIST_KEYS) or []
    properties = items.get("properties") or {}
    if not keys:
        return [required(f"{path}.{_LIST_KEYS}", f"must not be empty if {_LIST_TYPE} is map")]
    if not set(keys) <= set(properties):
        why = "entries must all be names of item properties"
        return [invalid(f"{path}.{_LIST_KEYS}", keys, why)]
    why = f"this property is in {_LIST_KEYS}, so it must have a default or be a required property"
    return [
        required(f"{path}.items.properties[{key}].default", why)
        for key in keys
        if key not in (items.get("required") or ()) and "default" not in properties[key]
    ]


def _logical_causes(schema: Schema, path: str) -> list[Cause]:
    """Inside allOf and its like nothing may be said that makes structure."""
    found: list[Cause] = []
    parts = [(f"{path}.{key}[{i}]", one) for key in _LOGICAL for i, one in _numbered(schema, key)]
    if isinstance(schema.get("not"), dict):
        parts.append((f"{path}.not", schema["not"]))
    for where, inner in parts:
        if schema.get("x-kubernetes-int-or-string") and inner in (
            {"type": "integer"},
            {"type": "string"},
        ):
            continue  # how such a value was always described
        found += [
            forbidden(f"{where}.{key}", "must be empty to be structural")
            for key in _NOT_INSIDE
            if inner.get(key)
        ]
    return found


def _numbered(schema: Schema, key: str) -> list[tuple[int, Any]]:
    return list(enumerate(schema.get(key) or ()))
