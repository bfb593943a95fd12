"""What is wrong with a CustomResourceDefinition.

In: a definition with its defaults. Out: causes. Called by ``custom``. Source: answers of a real API
server 1.36 to wrong definitions. Not checked: rules in CEL, paths of selectableFields, and whether
allOf and its like name only fields of the structural part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pocketkube.causes import invalid, required, unsupported
from pocketkube.errors import Cause
from pocketkube.names import dns_1035_label, dns_subdomain
from pocketkube.objects import Object, annotations_of, name_of
from pocketkube.registry.custom_schema import schema_causes

Fields = Mapping[str, Any]

APPROVED = "api-approved.kubernetes.io"
_PULL = "see https://github.com/kubernetes/enhancements/pull/1111"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def definition_causes(definition: Object) -> list[Cause]:
    """Return everything that is wrong with a definition."""
    spec: Fields = definition.get("spec") or {}
    names: Fields = spec.get("names") or {}
    versions: list[Fields] = spec.get("versions") or []
    group = spec.get("group", "")
    found: list[Cause] = []
    wanted = f"{names.get('plural', '')}.{group}"
    if name_of(definition) and name_of(definition) != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(invalid("metadata.name", name_of(definition), why))
    base = definition["metadata"].get("generateName")
    if base and base != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(invalid("metadata.generateName", base, why))
    found += _group_causes(group)
    if not spec.get("scope"):
        found.append(required("spec.scope"))
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        found.append(unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    found += _version_causes(spec.get("versions"))
    found += _names_causes(names)
    found += _conversion_causes(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        found.append(invalid("spec.preserveUnknownFields", True, why))
    found += _parts_causes(versions)
    found += _approval_causes(definition, group)
    if not any(version.get("storage") for version in versions):
        why = "must have at least one stored version"
        found.append(invalid("status.storedVersions", None, why))
    return found


def _group_causes(group: str) -> list[Cause]:
    if not group:
        return [required("spec.group")]
    wrong = dns_subdomain(group)
    if wrong:
        return [invalid("spec.group", group, "".join(wrong))]
    if "." not in group:
        return [invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _version_causes(versions: list[Fields] | None) -> list[Cause]:
    found: list[Cause] = []
    for i, version in enumerate(versions or []):
        name = version.get("name", "")
        for why in dns_1035_label(name):
            found.append(invalid(f"spec.versions[{i}].name", name, why))
            if i == 0 and name:
                found.append(invalid("spec.version", name, why))
        if version.get("deprecationWarning") is not None and not version.get("deprecated"):
            field = f"spec.versions[{i}].deprecationWarning"
            why = "can only be set for deprecated versions"
            found.append(invalid(field, version["deprecationWarning"], why))
    shown = versions if not versions else [_as_go(version) for version in versions]
    names = [version.get("name") for version in versions or []]
    if len(set(names)) < len(names):
        found.append(invalid("spec.versions", shown, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions or []) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", shown, why))
    return found


def _as_go(version: Fields) -> dict[str, Any]:
    """Write a version as the real server's message has it: Go's names, without what is shared."""
    return {
        "Name": version.get("name", ""),
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None,
        "Subresources": None,
        "AdditionalPrinterColumns": None,
        "SelectableFields": None,
    }


def _names_causes(names: Fields) -> list[Cause]:
    found: list[Cause] = []
    for key in ("plural", "singular"):
        found += _name_causes(f"spec.names.{key}", names.get(key, ""))
    for key in ("kind", "listKind"):
        found += _kind_causes(f"spec.names.{key}", names.get(key, ""))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        why = "kind and listKind may not be the same"
        found.append(invalid("spec.names.listKind", names["listKind"], why))
    for key in ("shortNames", "categories"):
        for i, name in enumerate(names.get(key) or []):
            found += [invalid(f"spec.names.{key}[{i}]", name, why) for why in dns_1035_label(name)]
    return found


def _name_causes(field: str, name: str) -> list[Cause]:
    if not name:
        return [required(field)]
    wrong = dns_1035_label(name)
    return [invalid(field, name, ",".join(wrong))] if wrong else []


def _kind_causes(field: str, name: str) -> list[Cause]:
    if not name:
        return [required(field)]
    wrong = dns_1035_label(name.lower())
    head = "may have mixed case, but should otherwise match: "
    return [invalid(field, name, head + ",".join(wrong))] if wrong else []


def _conversion_causes(conversion: Fields) -> list[Cause]:
    strategy = conversion.get("strategy", "None")
    if strategy not in ("None", "Webhook"):
        return [unsupported("spec.conversion.strategy", strategy, ("None", "Webhook"))]
    if strategy == "None" or (conversion.get("webhook") or {}).get("clientConfig"):
        return []
    return [
        required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook"),
        required("spec.conversion.conversionReviewVersions"),
    ]


def is_protected(group: str) -> bool:
    """Tell whether an API group is one of the Kubernetes project."""
    return re.search(r"(^|\.)(k8s|kubernetes)\.io$", group) is not None


def _approval_causes(definition: Object, group: str) -> list[Cause]:
    """Groups of the Kubernetes project need its consent, or a word that there is none."""
    if not is_protected(group):
        return []
    field = f"metadata.annotations[{APPROVED}]"
    given = annotations_of(definition).get(APPROVED, "")
    head = f'protected groups must have approval annotation "{APPROVED}"'
    if not given:
        return [required(field, f"{head}, {_PULL}")]
    if given.startswith("unapproved") or re.match(r"https?://[^/]+", given):
        return []
    why = f'{head} with either a URL or a reason starting with "unapproved", {_PULL}'
    return [invalid(field, given, why)]


def _parts_causes(versions: list[Fields]) -> list[Cause]:
    """Check schemas, subresources and columns; what all versions share has a path of its own."""
    found: list[Cause] = []
    for i, version in enumerate(versions):
        one = f"spec.versions[{i}]"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            found.append(required(f"{one}.schema.openAPIV3Schema"))
        elif i == 0 or not _shared(versions, "schema"):
            where = "spec.validation" if _shared(versions, "schema") else f"{one}.schema"
            found += schema_causes(schema, f"{where}.openAPIV3Schema")
        if i == 0 or not _shared(versions, "subresources"):
            where = "spec" if _shared(versions, "subresources") else one
            found += _scale_causes(version, f"{where}.subresources.scale")
        if i == 0 or not _shared(versions, "additionalPrinterColumns"):
            where = "spec" if _shared(versions, "additionalPrinterColumns") else one
            for j, column in enumerate(version.get("additionalPrinterColumns") or []):
                found += _column_causes(column, f"{where}.additionalPrinterColumns[{j}]")
    return found


def _shared(versions: list[Fields], key: str) -> bool:
    return all(version.get(key) == versions[0].get(key) for version in versions)


def _scale_causes(version: Fields, path: str) -> list[Cause]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return []
    found: list[Cause] = []
    for key, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value = scale.get(key, "")
        if not value:
            found.append(required(f"{path}.{key}"))
        elif not value.startswith("."):
            found.append(_no_path(f"{path}.{key}", value))
        elif not value.startswith(root):
            why = f"should be a json path under {root[:-1]}"
            found.append(invalid(f"{path}.{key}", value, why))
    return found


def _no_path(field: str, value: str) -> Cause:
    return invalid(field, value, "must be a simple json path starting with .")


def _column_causes(column: Fields, path: str) -> list[Cause]:
    found: list[Cause] = []
    if not column.get("name"):
        found.append(required(f"{path}.name"))
    kind, form = column.get("type", ""), column.get("format", "")
    if not kind:
        why = f"must be one of {','.join(_COLUMN_TYPES)}"
        found.append(required(f"{path}.type", why))
    elif kind not in _COLUMN_TYPES:
        found.append(invalid(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}"))
    if form and form not in _COLUMN_FORMATS:
        why = f"must be one of {','.join(_COLUMN_FORMATS)}"
        found.append(invalid(f"{path}.format", form, why))
    source = column.get("jsonPath", "")
    if not source:
        found.append(required(f"{path}.JSONPath"))
    elif not source.startswith("."):
        found.append(_no_path(f"{path}.JSONPath", source))
    return found
