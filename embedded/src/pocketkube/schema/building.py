"""From the recorded document's schemas to shapes, each built once and only when asked for."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pocketkube.schema.shape import Merge, Shape, Type

_REF = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg"
_JSON = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
_ANYTHING = frozenset(
    {
        f"{_META}.apis.meta.v1.FieldsV1",
        f"{_META}.apis.meta.v1.Patch",
        f"{_META}.runtime.RawExtension",
        _JSON,
        f"{_JSON}SchemaPropsOrArray",
        f"{_JSON}SchemaPropsOrBool",
        f"{_JSON}SchemaPropsOrStringArray",
    }
)
_SPECIAL = {
    f"{_META}.api.resource.Quantity": Type.QUANTITY,
    f"{_META}.util.intstr.IntOrString": Type.INT_OR_STRING,
}
_TYPES = {
    "array": Type.LIST,
    "boolean": Type.BOOLEAN,
    "integer": Type.INTEGER,
    "number": Type.NUMBER,
    "string": Type.STRING,
}


class ShapeBuilder:
    """Builds shapes by name; a type that contains itself gives a shape that contains itself."""

    def __init__(
        self, schemas: Mapping[str, Mapping[str, Any]], go: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._schemas = schemas
        self._go = go
        self._named: dict[str, Shape] = {}

    def named(self, name: str) -> Shape:
        """Return the shape of a component. Raises KeyError."""
        found = self._named.get(name)
        if found is not None:
            return found
        schema = self._schemas[name]
        if name in _ANYTHING:
            shape = Shape(type=Type.ANY, name=name, merge=Merge.GRANULAR, preserve_unknown=True)
        elif name in _SPECIAL:
            shape = Shape(type=_SPECIAL[name], name=name)
        elif schema["type"] == "object":
            return self._object(name, schema)
        else:
            shape = self._inline(schema)
            shape.name = name
        self._named[name] = shape
        return shape

    def _object(self, name: str, schema: Mapping[str, Any]) -> Shape:
        fields: dict[str, Shape] = {}
        properties = schema.get("properties", {})
        go = self._go.get(name, {})
        shape = Shape(
            type=Type.OBJECT,
            name=name,
            fields=fields,
            # Protobuf, the form at rest, knows no empty lists and maps: they never come back.
            drops=frozenset(go.get("drops", ()))
            | {p for p in properties if _is_many(properties[p])},
            fills=go.get("fills", {}),
            merge=_map_merge(schema),
        )
        self._named[name] = shape  # before its fields are built, which may lead back here
        for field, inner in properties.items():
            fields[field] = self._inline(inner)
        return shape

    def _inline(self, schema: Mapping[str, Any]) -> Shape:
        """Build the shape of a property or an item: a reference, or a type written in place."""
        reference = schema.get("$ref") or _all_of(schema)
        if reference:
            shape = self._referred(reference.removeprefix(_REF), schema)
        elif schema.get("type", "object") == "object":
            values = schema.get("additionalProperties")
            item = self._inline(values) if isinstance(values, Mapping) else None
            shape = Shape(type=Type.MAP, item=item, merge=_map_merge(schema))
        elif schema["type"] == "array":
            shape = Shape(
                type=Type.LIST,
                item=self._inline(schema["items"]),
                merge=Merge(schema.get("x-kubernetes-list-type", "atomic")),
                keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
                patch_merge_key=schema.get("x-kubernetes-patch-merge-key", ""),
                patch_strategies=_strategies(schema),
            )
        else:
            shape = Shape(type=_TYPES[schema["type"]], format=schema.get("format", ""))
        if schema.get("default") not in (None, {}):
            shape = copy.copy(shape)
            shape.default, shape.has_default = schema["default"], True
        return shape

    def _referred(self, name: str, schema: Mapping[str, Any]) -> Shape:
        """Return the component itself, or a copy where the property says how to merge it.

        A copy shares the fields of the original, which may be filled only later.
        """
        shape = self.named(name)
        strategies = _strategies(schema)
        map_type = schema.get("x-kubernetes-map-type")
        if strategies or map_type:
            shape = copy.copy(shape)
            shape.patch_strategies = strategies
            shape.merge = Merge(map_type) if map_type else shape.merge
        return shape


def _all_of(schema: Mapping[str, Any]) -> str:
    """A property with a default refers by ``allOf``, because nothing may stand beside ``$ref``."""
    inner = schema.get("allOf")
    return str(inner[0]["$ref"]) if inner else ""


def _is_many(schema: Mapping[str, Any]) -> bool:
    """Tell whether a property written in place is a list or a map; bytes are a string here."""
    return schema.get("type") in ("array", "object")


def _map_merge(schema: Mapping[str, Any]) -> Merge:
    return Merge(schema.get("x-kubernetes-map-type", "granular"))


def _strategies(schema: Mapping[str, Any]) -> frozenset[str]:
    text = schema.get("x-kubernetes-patch-strategy", "")
    return frozenset(text.split(",")) if text else frozenset()
