"""What POST, GET and PUT do below one object: binding, eviction, scale, token, log and the like."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from aiohttp import web

from pocketkube import errors
from pocketkube.api.api import Api
from pocketkube.api.binding import bind
from pocketkube.api.checking import checked
from pocketkube.api.eviction import evict
from pocketkube.api.rights.tokens import Tokens, requested
from pocketkube.api.scale import scale_of
from pocketkube.api.writing import Writing
from pocketkube.objects import Object
from pocketkube.schema.document import Document
from pocketkube.schema.resource import Resource
from pocketkube.server import answers
from pocketkube.server.requests import Target

Create = Callable[[Api, Tokens, Target, Object, Writing], web.Response]

_REFUSED = {
    "log": "no container runs in an embedded cluster, so there is no log",
    "exec": "no container runs in an embedded cluster, so nothing can be executed in it",
    "attach": "no container runs in an embedded cluster, so nothing can be attached to it",
    "portforward": "no container runs in an embedded cluster, so it has no ports",
    "proxy": "no container runs in an embedded cluster, so nothing can be reached through a proxy",
}


def refuse_containers(target: Target, store_has: bool) -> None:
    """Refuse, politely, what needs a container. Raises ApiError (400, 404)."""
    why = _REFUSED.get(target.subresource)
    if why is None:
        return
    resource = target.resource
    if not store_has:
        raise errors.not_found(resource.group, resource.plural, target.name)
    raise errors.bad_request(why)


def read(api: Api, target: Target) -> Object:
    """Return what a GET of a subresource gives. Raises ApiError (404, 405)."""
    resource = target.resource
    obj = api.get(resource, target.namespace, target.name)
    if target.subresource == "scale":
        return scale_of(resource, obj)
    subresource = resource.subresources[target.subresource]
    if "get" not in subresource.verbs:
        raise errors.method_not_allowed(resource.group, resource.plural, "get")
    return obj


def create(api: Api, tokens: Tokens, target: Target, body: Object, how: Writing) -> web.Response:
    """Do what a POST to a subresource asks for. Raises ApiError."""
    bucket = target.resource.bucket
    action = _CREATES.get((bucket, target.subresource))
    if action is None:
        raise errors.method_not_allowed(target.resource.group, target.resource.plural, "create")
    return action(api, tokens, target, checked(body, _resource_of(target), how), how)


def _resource_of(target: Target) -> Resource:
    """Return what is sent to a subresource, such as a Binding, as a resource of its own."""
    sent = target.resource.subresources[target.subresource]
    group = (sent.group or "core").partition(".")[0]
    shape = Document.load().shape(f"io.k8s.api.{group}.{sent.version}.{sent.kind}")
    return dataclasses.replace(
        target.resource, group=sent.group, version=sent.version, kind=sent.kind, shape=shape
    )


def _bind(api: Api, _: Tokens, target: Target, body: Object, how: Writing) -> web.Response:
    bind(api, target.namespace, target.name, body, how)
    return answers.success(code=201)


def _evict(api: Api, _: Tokens, target: Target, body: Object, how: Writing) -> web.Response:
    evict(api, target.namespace, target.name, body, how)
    return answers.success(code=201)


def _token(api: Api, tokens: Tokens, target: Target, body: Object, _: Writing) -> web.Response:
    account = api.get(target.resource, target.namespace, target.name)
    answer = requested(tokens, account, body, api.now_s())
    return answers.response(201, answers.encode(answer))


_CREATES: dict[tuple[str, str], Create] = {
    ("pods", "binding"): _bind,
    ("pods", "eviction"): _evict,
    ("serviceaccounts", "token"): _token,
}
