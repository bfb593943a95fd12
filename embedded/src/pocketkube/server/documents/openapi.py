"""The OpenAPI documents: version 3 by group and version, and an empty version 2.

In: what is registered, the recorded schemas, the CRDs' schemas. Out: documents with the structure
that kubectl looks at (explain, apply, dry runs): components of kinds, and paths to read and patch
them. Not what else a generator of code needs; no prose, except that of CRDs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from pocketkube.registry.resources import Registry
from pocketkube.schema.document import GVK, Document
from pocketkube.schema.resource import Resource
from pocketkube.server.documents import discovery

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
        listed = component if resource.crd else f"{component}List"
        item = {"get": _operation(resource, "list", listed), "parameters": parameters}
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


_META = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1"
_TEXT = {"type": "string"}
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def custom_schemas(resource: Resource) -> dict[str, dict[str, Any]]:
    """Return the component of a CRD's kind, by its name."""
    reversed_group = ".".join(reversed(resource.group.split(".")))
    name = f"{reversed_group}.{resource.version}.{resource.kind}"
    schema = dict(resource.shape.schema or _ANYTHING)
    if schema.get("type") == "object":
        own = schema.get("properties", {})
        metadata = {"allOf": [{"$ref": f"{_META}.ObjectMeta"}]}
        schema["properties"] = {**own, "apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata}
    kind = {"group": resource.group, "version": resource.version}
    return {name: {**schema, GVK: [{**kind, "kind": resource.kind}]}}


_JSON = "application/json"
_INDEX = "/openapi/v3"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PROTOBUF_ACCEPTED = "application/com.github.proto-openapi.spec.v2"


def page(
    path: str, accept: str, registry: Registry, document: Document
) -> tuple[str, bytes] | None:
    """Return content type and body of an OpenAPI page; None when there is none."""
    body: dict[str, Any] | None = None
    if path in (_INDEX, "/openapi/v2") or path.startswith(f"{_INDEX}/"):
        groups = discovery.groups_of(registry.all(), document)
        if path == _INDEX:
            return _JSON, msgspec.json.encode(index(groups, document))
        if path == "/openapi/v2" and _PROTOBUF_ACCEPTED in accept:
            return _PROTOBUF, empty_version_2(document)
        if path == "/openapi/v2":
            info = {"title": "Kubernetes", "version": f"v{_short_version(document)}"}
            body = {"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}
        else:
            body = version_3(path.removeprefix(f"{_INDEX}/"), groups, document)
    return None if body is None else (_JSON, msgspec.json.encode(body))


def index(groups: discovery.Groups, document: Document) -> dict[str, Any]:
    """Return the paths of all documents. A changed hash tells clients to read one anew."""
    entries = {}
    for path in _versions(groups):
        custom = _custom_resources(path, groups)
        schemas = [custom_schemas(resource) for resource in custom]
        told = msgspec.json.encode([path, document.version["gitVersion"], schemas], order="sorted")
        digest = hashlib.sha512(told).hexdigest().upper()
        entries[path] = {"serverRelativeURL": f"{_INDEX}/{path}?hash={digest}"}
    return {"paths": dict(sorted(entries.items()))}


def _versions(groups: discovery.Groups) -> list[str]:
    return [
        f"apis/{name}/{version}" if name else f"api/{version}"
        for name, versions in groups.items()
        for version in versions
    ]


def _resources(path: str, groups: discovery.Groups) -> list[Resource]:
    name, _, version = path.removeprefix("apis/").partition("/")
    if path.startswith("api/"):
        name, version = "", path.removeprefix("api/")
    return groups.get(name, {}).get(version, [])


def _custom_resources(path: str, groups: discovery.Groups) -> list[Resource]:
    return [resource for resource in _resources(path, groups) if resource.crd]


def version_3(path: str, groups: discovery.Groups, document: Document) -> dict[str, Any] | None:
    """Return the document of a group's version, ``apis/apps/v1`` or ``api/v1``; None: none such."""
    resources = _resources(path, groups)
    if not resources:
        return None
    paths = {url: item for resource in resources for url, item in _paths(resource, document)}
    schemas = _with_custom(resources, document)
    used = {name: schemas[name] for name in _reach(paths, schemas)}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": f"v{_short_version(document)}"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": used},
    }


def _short_version(document: Document) -> str:
    return f"{document.version['major']}.{document.version['minor']}"


def _paths(resource: Resource, document: Document) -> Iterable[tuple[str, dict[str, Any]]]:
    if resource.crd:
        return paths_of(resource, next(iter(custom_schemas(resource))))
    own = document.schema_name(resource.group, resource.version, resource.kind)
    return paths_of(resource, own)


def _with_custom(resources: Iterable[Resource], document: Document) -> Mapping[str, Any]:
    custom: dict[str, Any] = {}
    for resource in resources:
        if resource.crd:
            custom |= custom_schemas(resource)
    return {**document.schemas, **custom} if custom else document.schemas


def _reach(paths: Any, schemas: Mapping[str, Any]) -> list[str]:
    """Return the names of all components that the paths refer to, directly or not."""
    found: set[str] = set()
    waiting = list(_references(paths))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(schemas[name])
    return sorted(found)


def _references(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_REF)
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def empty_version_2(document: Document) -> bytes:
    """Return, in protobuf, a document of version 2 that defines no kind.

    kubectl asks for it when version 3 does not know a kind, as of ``kind: List`` and of kinds that
    are not installed; it then leaves the checks to the server. Source: Document of gnostic's
    ``openapiv2/OpenAPIv2.proto``, fields swagger (1), info (2: title 1, version 2) and paths (8).
    """

    def field(number: int, value: bytes) -> bytes:
        assert len(value) < 128, "a length of one byte"
        return bytes((number << 3 | 2, len(value))) + value

    version = f"v{_short_version(document)}".encode()
    info = field(1, b"Kubernetes") + field(2, version)
    return field(1, b"2.0") + field(2, info) + field(8, b"")
