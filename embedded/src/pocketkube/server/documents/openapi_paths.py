"""The paths of an OpenAPI document: of each resource what kubectl looks for, to read and to patch.

``explain`` finds a kind by the path of its resource; before an apply or a dry run kubectl asks
whether a PATCH takes ``fieldValidation`` and ``dryRun``, and whether strategic patches are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pocketkube.schema.resource import Resource

_REF = "#/components/schemas/"
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC = "application/strategic-merge-patch+json"
_PATCHING = ("dryRun", "fieldManager", "fieldValidation", "force")


def paths_of(resource: Resource, component: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the paths of a resource's collection and of one object; ``component`` is its kind's."""
    namespace = "{namespace}" if resource.namespaced else ""
    parameters = [_parameter("namespace", "path")] if namespace else []
    if "list" in resource.verbs:
        item = {"get": _operation(resource, "list", f"{component}List"), "parameters": parameters}
        yield resource.path(namespace), item
    elif "create" in resource.verbs:  # a review, of which there is no list
        yield resource.path(namespace), {"post": _operation(resource, "post", component)}
    one: dict[str, Any] = {}
    if "get" in resource.verbs:
        one["get"] = _operation(resource, "get", component)
    if "patch" in resource.verbs:
        forms = _PATCHES if resource.crd else (*_PATCHES, _STRATEGIC)
        one["patch"] = {
            **_operation(resource, "patch", component),
            "parameters": [_parameter(name, "query") for name in _PATCHING],
            "requestBody": {"content": {form: {} for form in forms}, "required": True},
        }
    if one:
        one["parameters"] = [_parameter("name", "path"), *parameters]
        yield resource.path(namespace, "{name}"), one


def _operation(resource: Resource, action: str, component: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"{_REF}{component}"}}}
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
    }


def _parameter(name: str, where: str) -> dict[str, Any]:
    schema = {"type": "boolean" if name == "force" else "string", "uniqueItems": True}
    return {"name": name, "in": where, "schema": schema, "required": where == "path"}
