"""Requests that write: create, update, patch, delete.

In: requests whose user may do it. Out: answers, or ApiError. Called by ``handler``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from aiohttp import web

from pocketkube import errors
from pocketkube.api.api import Api
from pocketkube.api.binding import bind
from pocketkube.api.checking import checked
from pocketkube.api.rights import rbac, reviews
from pocketkube.api.rights.tokens import Tokens
from pocketkube.api.scale import scale_of, scale_resource
from pocketkube.api.writing import Deleting, Writing
from pocketkube.objects import Object
from pocketkube.server import answers, options, reading
from pocketkube.server.requests import Target
from pocketkube.server.selecting import selection_of
from pocketkube.server.writing import bodies, subresources

_RETURN_DELETED = frozenset(
    {
        "pods",
        "podtemplates",
        "services",
        "serviceaccounts",
        "resourcequotas",
        "persistentvolumes",
        "persistentvolumeclaims",
    }
)
"""Kinds whose deletion answers with the object; others answer with a Status."""


class Call(NamedTuple):
    """One request that writes: what it is about, its body, and how the answer is to be."""

    request: web.BaseRequest
    target: Target
    raw: bytes
    wanted: answers.Wanted


class Writes:
    """Answers requests that write."""

    def __init__(self, api: Api, tokens: Tokens, authorizer: rbac.Authorizer) -> None:
        self._api = api
        self._tokens = tokens
        self._authorizer = authorizer

    def create(self, call: Call, how: Writing) -> web.Response:
        """Answer a POST. Raises ApiError."""
        target, resource = call.target, call.target.resource
        body, json = bodies.object_of(call.raw, call.request.content_type)
        if target.subresource:
            return subresources.create(self._api, self._tokens, target, _dict(body), how)
        if resource.bucket in reviews.REVIEWS:
            asked = (self._authorizer, self._tokens, how.user, _dict(body))
            answer = reviews.reviewed(resource.bucket, reviews.Asked(*asked))
            return answers.response(201, answers.encode(answer))
        if resource.bucket == "bindings":
            name = str((_dict(body).get("metadata") or {}).get("name", ""))
            bind(self._api, target.namespace, name, _dict(body), how)
            return answers.success(code=201)
        obj = checked(body, resource, how, json)
        return self._written(call, self._api.create(resource, target.namespace, obj, how), 201)

    def update(self, call: Call, how: Writing) -> web.Response:
        """Answer a PUT. Raises ApiError."""
        target, resource = call.target, call.target.resource
        body, json = bodies.object_of(call.raw, call.request.content_type)
        is_scale = target.subresource == "scale"
        obj = checked(body, scale_resource(resource) if is_scale else resource, how, json)
        code = 200 if self._is_there(target) else 201
        key = (resource, target.namespace, target.name)
        done = self._api.update(*key, obj, how, subresource=target.subresource)
        return self._written(call, done, code)

    def patch(self, call: Call, how: Writing) -> web.Response:
        """Answer a PATCH. Raises ApiError."""
        target, patch = call.target, bodies.patch_of(call.raw, call.request.content_type)
        code = 200 if self._is_there(target) else 201
        key = (target.resource, target.namespace, target.name)
        done = self._api.patch(*key, patch, how, subresource=target.subresource)
        return self._written(call, done, code)

    def delete(self, call: Call) -> web.Response:
        """Answer a DELETE of one object or of many. Raises ApiError."""
        target, resource, request = call.target, call.target.resource, call.request
        deleting = options.deleting_of(call.raw, request.query, request.content_type)
        if not target.name:
            return self._delete_collection(call, deleting)
        last = self._api.delete(resource, target.namespace, target.name, deleting)
        gone = "deletionTimestamp" not in last["metadata"]
        if gone and resource.bucket not in _RETURN_DELETED:
            uid = last["metadata"]["uid"]
            details = {"name": target.name, "group": resource.group, "kind": resource.plural}
            details["uid"] = uid
            return answers.success({key: value for key, value in details.items() if value})
        return self._written(call, last, 200)

    def _delete_collection(self, call: Call, deleting: Deleting) -> web.Response:
        target, resource, query = call.target, call.target.resource, call.request.query
        selection = selection_of(resource, target.namespace, query)
        entries, metadata = reading.page_of(self._api.store, resource, selection, query)
        for entry in entries:
            if self._api.store.get(resource.bucket, entry.namespace, entry.name) is not None:
                self._api.delete(resource, entry.namespace, entry.name, deleting)
        body = answers.many(resource, entries, metadata, call.wanted, self._api.now_s())
        return answers.response(200, body, call.wanted)

    # Inside

    def _is_there(self, target: Target) -> bool:
        bucket = target.resource.bucket
        return self._api.store.get(bucket, target.namespace, target.name) is not None

    def _written(self, call: Call, obj: Object, code: int) -> web.Response:
        target, wanted = call.target, call.wanted
        if target.subresource == "scale":
            body = answers.scale(scale_of(target.resource, obj), wanted)
            return answers.response(code, body, wanted)
        body = answers.one(target.resource, obj, wanted, self._api.now_s())
        return answers.response(code, body, wanted)


def _dict(body: Any) -> Object:
    if not isinstance(body, dict):
        raise errors.bad_request("the body of the request has to be an object")
    return body
