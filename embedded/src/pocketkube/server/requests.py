"""What a URL asks for: the resource, namespace, name, subresource and verb.

Source: ``RequestInfo`` of k8s.io/apiserver.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from multidict import MultiMapping

from pocketkube import errors
from pocketkube.registry.resources import Registry
from pocketkube.schema.resource import Resource
from pocketkube.server.options import is_true

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get", "HEAD": "get"}


class Asked(NamedTuple):
    """What a path names, whether or not there is such a resource."""

    verb: str  # as RBAC names it: get, list, watch, create, update, patch, delete, deletecollection
    group: str
    version: str
    plural: str
    namespace: str
    name: str
    subresource: str


class Target(NamedTuple):
    """What one request is about: as ``Asked``, of a resource that there is."""

    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str


def asked_of(method: str, path: str, query: MultiMapping[str]) -> Asked | None:
    """Return what the path names; None for a path that has not the form of a resource's.

    Raises ApiError (404): the path is too long for one.
    """
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        raise errors.no_such_path()
    plural, name, subresource = (*rest, "", "")[:3]
    verb = _verb(method, name, query)
    return Asked(verb, group, version, plural, namespace, name, subresource)


def resolved(registry: Registry, asked: Asked, method: str) -> Target:
    """Return the resource that is asked for. Raises ApiError (404, 405): there is none such."""
    namespace, name = asked.namespace, asked.name
    resource = registry.resource(asked.group, asked.version, asked.plural)
    if bool(namespace) != resource.namespaced and (namespace or name):
        raise errors.no_such_path()
    if resource.namespaced and not namespace and method not in ("GET", "HEAD"):
        raise errors.no_such_method()
    return Target(asked.verb, resource, namespace, name, asked.subresource)


def _verb(method: str, name: str, query: MultiMapping[str]) -> str:
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    verb = _VERBS.get(method, method.lower())
    if verb != "get":
        return verb
    if name:  # one object is never watched by its path: RBAC would be asked for another verb
        return "get"
    return "watch" if is_true(query.get("watch")) else "list"
