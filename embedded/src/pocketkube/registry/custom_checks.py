"""What is wrong with a CustomResourceDefinition, as far as it could not be served.

In: a definition with its defaults. Out: causes. Called by ``custom``. Source: answers of a real API
server 1.36 to wrong definitions. Not checked: rules in CEL, list types and keys, paths, what stands
in allOf and its like, and what else a real server says of a definition that can be served.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import forbidden, invalid, required, unsupported
from pocketkube.errors import Cause
from pocketkube.names import dns_1035_label, dns_subdomain
from pocketkube.objects import Object, name_of
from pocketkube.schema.custom.crd_checks import value_causes

Fields = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def definition_causes(definition: Object) -> list[Cause]:
    """Return what is wrong with a definition."""
    spec: Fields = definition.get("spec") or {}
    names: Fields = spec.get("names") or {}
    versions: list[Fields] = spec.get("versions") or []
    group = spec.get("group", "")
    found: list[Cause] = []
    wanted = f"{names.get('plural', '')}.{group}"
    if name_of(definition) and name_of(definition) != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(invalid("metadata.name", name_of(definition), why))
    found += _group_causes(group)
    if not spec.get("scope"):
        found.append(required("spec.scope"))
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        found.append(unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    for key in ("plural", "singular", "kind", "listKind"):
        found += _name_causes(f"spec.names.{key}", names.get(key, ""), is_kind="ind" in key)
    stored = [version for version in versions if version.get("storage")]
    if len(stored) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", versions, why))
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        for why in dns_1035_label(version.get("name", "")):
            found.append(invalid(f"{path}.name", version.get("name", ""), why))
        found += _schema_causes(version, path, versions)
    return found


def _group_causes(group: str) -> list[Cause]:
    if not group:
        return [required("spec.group")]
    wrong = dns_subdomain(group)
    if not wrong and "." not in group:
        wrong = ("should be a domain with at least one dot",)
    return [invalid("spec.group", group, "".join(wrong))] if wrong else []


def _name_causes(field: str, name: str, *, is_kind: bool) -> list[Cause]:
    if not name:
        return [required(field)]
    wrong = dns_1035_label(name.lower() if is_kind else name)
    head = "may have mixed case, but should otherwise match: " if is_kind else ""
    return [invalid(field, name, head + ",".join(wrong))] if wrong else []


def _schema_causes(version: Fields, path: str, versions: list[Fields]) -> list[Cause]:
    """Check a version's schema; one that all versions share has a path of its own, and is first."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        return [required(f"{path}.schema.openAPIV3Schema")]
    if all(one.get("schema") == version.get("schema") for one in versions):
        if version is not versions[0]:
            return []
        path = "spec.validation.openAPIV3Schema"
    else:
        path = f"{path}.schema.openAPIV3Schema"
    if not schema.get("type"):
        return [required(f"{path}.type", "must not be empty at the root")]
    if schema["type"] != "object":
        return [invalid(f"{path}.type", schema["type"], "must be object at the root")]
    return _structure_causes(schema, path)


def _structure_causes(schema: Fields, path: str) -> list[Cause]:
    found = [forbidden(f"{path}.$ref", "$ref is not supported")] if "$ref" in schema else []
    if schema.get("default") is not None:
        # The path of a default is empty, so that the real server's sentence starts with a space.
        wrong = value_causes(schema["default"], schema, "")
        found += [cause._replace(field=f"{path}.default") for cause in wrong]
    if isinstance(schema.get("items"), list):
        why = "items must be a schema object and not an array"
        return [*found, forbidden(f"{path}.items", why)]
    if schema.get("type") == "array" and schema.get("items") is None:
        found.append(required(f"{path}.items", "must be specified"))
    inner = {f"{path}.properties[{k}]": v for k, v in (schema.get("properties") or {}).items()}
    inner |= {f"{path}.{key}": schema.get(key) for key in ("additionalProperties", "items")}
    for where, one in inner.items():
        if isinstance(one, dict):
            found += _type_causes(one, where) + _structure_causes(one, where)
    return found


def _type_causes(schema: Fields, path: str) -> list[Cause]:
    given = schema.get("type")
    if given:
        return [] if given in _TYPES else [unsupported(f"{path}.type", given, _TYPES)]
    if schema.get("x-kubernetes-int-or-string") or schema.get(_PRESERVE) or "$ref" in schema:
        return []
    what = "array items" if path.endswith(".items") else "object fields"
    return [required(f"{path}.type", f"must not be empty for specified {what}")]
