"""The paths of an OpenAPI document, made from what a resource can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pocketkube.schema.resource import Resource, Subresource

_REF = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_FORMS = ("application/json", "application/yaml")
_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json")
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_WRITING = ("dryRun", "fieldManager", "fieldValidation")
_DELETING = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_LISTING = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_TYPES = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_METHODS = {
    # verb: method, x-kubernetes-action, query parameters, on the collection
    "list": ("get", "list", _LISTING, True),
    "create": ("post", "post", _WRITING, True),
    "deletecollection": ("delete", "deletecollection", (*_LISTING, *_DELETING), True),
    "get": ("get", "get", (), False),
    "update": ("put", "put", _WRITING, False),
    "patch": ("patch", "patch", (*_WRITING, "force"), False),
    "delete": ("delete", "delete", _DELETING, False),
}
_CONNECTING = frozenset({"attach", "exec", "portforward", "proxy"})
DISCOVERY_KINDS = {
    "api": f"{_META}.APIVersions",
    "apis": f"{_META}.APIGroupList",
    "version": "io.k8s.apimachinery.pkg.version.Info",
}

NameOf = Callable[[str, str, str], str]
"""Gives the component of a kind, by its group, version and name; empty when there is none."""


def paths_of(
    resource: Resource, component: str, name_of: NameOf
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the paths of a resource and its subresources, with what is done there."""
    namespaces = ["{namespace}"] if resource.namespaced else [""]
    if resource.namespaced and "list" in resource.verbs:
        yield resource.path(), _item(resource, component, ["list"], collection=True)
    for namespace in namespaces:
        verbs = sorted(resource.verbs)
        collection = _item(resource, component, verbs, collection=True)
        one = _item(resource, component, verbs, collection=False)
        if any(verb in collection for verb in ("get", "post", "delete")):
            yield resource.path(namespace), _with_parameters(collection, namespace, name=False)
        path = resource.path(namespace, "{name}")
        if any(verb in one for verb in ("get", "put", "patch", "delete")):
            yield path, _with_parameters(one, namespace, name=True)
        for sub in resource.subresources.values():
            item = _subresource(resource, sub, component, name_of)
            yield f"{path}/{sub.name}", _with_parameters(item, namespace, name=True)


def discovery_path(path: str) -> dict[str, Any]:
    """Return the one path of ``api``, ``apis``, ``apis/apps``, ``api/v1`` or ``apis/apps/v1``."""
    of_version = path.startswith("api/") or path.count("/") == 2
    kind = DISCOVERY_KINDS.get(path, f"{_META}.{'APIResourceList' if of_version else 'APIGroup'}")
    return {f"/{path}/": {"get": {"responses": _responses(kind)}}}


def _item(
    resource: Resource, component: str, verbs: list[str], *, collection: bool
) -> dict[str, Any]:
    item: dict[str, Any] = {}
    for verb in verbs:
        known = _METHODS.get(verb)
        if known is None or known[3] != collection:
            continue
        method, action, parameters, _ = known
        answer = f"{component}List" if verb == "list" else component
        if verb in ("delete", "deletecollection"):
            answer = f"{_META}.Status"
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        strategic = not resource.crd
        item[method] = _operation(
            method, action, parameters, component, answer, kind, strategic=strategic
        )
    return item


def _subresource(
    resource: Resource, sub: Subresource, component: str, name_of: NameOf
) -> dict[str, Any]:
    own = sub.kind == resource.kind
    body = component if own else name_of(sub.group, sub.version, sub.kind)
    kind = {"group": sub.group, "version": sub.version, "kind": sub.kind}
    item = {}
    for verb in sorted(sub.verbs):
        method, action, parameters, _ = _METHODS[verb]
        action = "connect" if sub.name in _CONNECTING else action
        item[method] = _operation(
            method, action, parameters, body, body, kind, strategic=not resource.crd
        )
    return item


def _operation(
    method: str,
    action: str,
    parameters: tuple[str, ...],
    body: str,
    answer: str,
    kind: dict[str, str],
    *,
    strategic: bool,
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "parameters": [_parameter(name) for name in parameters],
        "responses": _responses(answer),
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
    }
    if method in ("post", "put") and body:
        operation["requestBody"] = {"content": _content(("*/*",), body), "required": True}
    elif method == "patch":
        forms = (*_PATCHES, _MERGE, *([_STRATEGIC] if strategic else ()))
        content = _content(forms, f"{_META}.Patch")
        operation["requestBody"] = {"content": content, "required": True}
    elif method == "delete":
        operation["requestBody"] = {"content": _content(("*/*",), f"{_META}.DeleteOptions")}
    return operation


def _responses(component: str) -> dict[str, Any]:
    # What exec, proxy and the like answer is no type of the document.
    content = _content(_FORMS, component) if component else {}
    return {"200": {"description": "OK", "content": content}}


def _content(forms: tuple[str, ...], component: str) -> dict[str, Any]:
    return {form: {"schema": {"$ref": f"{_REF}{component}"}} for form in forms}


def _parameter(name: str) -> dict[str, Any]:
    schema = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return {"name": name, "in": "query", "schema": schema}


def _with_parameters(item: dict[str, Any], namespace: str, *, name: bool) -> dict[str, Any]:
    names = [*(["name"] if name else []), *(["namespace"] if namespace else [])]
    schema = {"type": "string", "uniqueItems": True}
    parameters = [{"name": n, "in": "path", "required": True, "schema": schema} for n in names]
    return {**item, "parameters": parameters} if parameters else item
