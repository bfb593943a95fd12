"""The OpenAPI components of a CRD's kinds."""

from __future__ import annotations

from typing import Any

from pocketkube.schema.document import GVK
from pocketkube.schema.resource import Resource

_META = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1"
_TEXT = {"type": "string"}
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def custom_schemas(resource: Resource) -> dict[str, dict[str, Any]]:
    """Return the components of a CRD's kind and of its list; the kind's is the first."""
    reversed_group = ".".join(reversed(resource.group.split(".")))
    name = f"{reversed_group}.{resource.version}.{resource.kind}"
    schema = dict(resource.shape.schema or _ANYTHING)
    if schema.get("type") == "object":
        own = schema.get("properties", {})
        metadata = {"allOf": [{"$ref": f"{_META}.ObjectMeta"}]}
        schema["properties"] = {**own, "apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata}
    kind = {"group": resource.group, "version": resource.version}
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}
    listed = {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _TEXT,
            "items": items,
            "kind": _TEXT,
            "metadata": {"allOf": [{"$ref": f"{_META}.ListMeta"}]},
        },
        GVK: [{**kind, "kind": resource.list_kind or f"{resource.kind}List"}],
    }
    return {name: {**schema, GVK: [{**kind, "kind": resource.kind}]}, f"{name}List": listed}
