"""Requests that write: create, update, patch, delete, and what webhooks make of them.

In: requests whose user may do it. Out: answers, or ApiError. Called by ``handler``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from aiohttp import web

from pocketkube import errors
from pocketkube.api.admission.policies import Write
from pocketkube.api.api import Api
from pocketkube.api.binding import bind
from pocketkube.api.checking import checked
from pocketkube.api.rights import rbac, reviews
from pocketkube.api.rights.tokens import Tokens
from pocketkube.api.scale import scale_of, scale_resource
from pocketkube.api.writing import Deleting, Patch, User, Writing
from pocketkube.objects import Object
from pocketkube.server import answers, options, reading
from pocketkube.server.requests import Target
from pocketkube.server.selecting import selection_of
from pocketkube.server.writing import bodies, subresources
from pocketkube.webhooks.reviewing import Finish, Reviews

_TRIES = 5
"""How often a patch that webhooks changed is tried when others write in between, as upstream."""
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
    """Answers requests that write. ``close`` ends its connections to webhooks."""

    def __init__(self, api: Api, tokens: Tokens, authorizer: rbac.Authorizer) -> None:
        self._api = api
        self._tokens = tokens
        self._authorizer = authorizer
        self._reviews = Reviews(api.store, api.uid)

    async def close(self) -> None:
        """End all connections to webhooks."""
        await self._reviews.close()

    async def create(self, call: Call, how: Writing) -> web.Response:
        """Answer a POST. Raises ApiError."""
        target, resource = call.target, call.target.resource
        body, json = bodies.object_of(call.raw, call.request.content_type)
        if target.subresource:
            await self._reviewed("CREATE", target, how, _dict(body), None, None)
            return subresources.create(self._api, self._tokens, target, _dict(body), how)
        if resource.bucket in reviews.REVIEWS:
            asked = (self._authorizer, self._tokens, how.user, _dict(body), target.namespace)
            answer = reviews.reviewed(resource.bucket, reviews.Asked(*asked))
            return answers.response(201, answers.encode(answer))
        if resource.bucket == "bindings":
            name = str((_dict(body).get("metadata") or {}).get("name", ""))
            of_pod = dataclasses.replace(target, name=name)
            await self._reviewed("CREATE", of_pod, how, _dict(body), None, None)
            bind(self._api, target.namespace, name, _dict(body), how)
            return answers.success(code=201)
        obj = checked(body, resource, how, json)

        def finish(sent: Object) -> Object:
            return self._api.create(resource, target.namespace, sent, _only_tried(how))

        changed = await self._reviewed("CREATE", target, how, obj, None, finish)
        done = self._api.create(resource, target.namespace, changed or obj, how)
        return self._written(call, done, 201)

    async def update(self, call: Call, how: Writing) -> web.Response:
        """Answer a PUT. Raises ApiError."""
        target, resource = call.target, call.target.resource
        body, json = bodies.object_of(call.raw, call.request.content_type)
        is_scale = target.subresource == "scale"
        obj = checked(body, scale_resource(resource) if is_scale else resource, how, json)
        old = self._there(target)
        finish = None if is_scale else self._updating(target, _only_tried(how))
        operation: Literal["CREATE", "UPDATE"] = "CREATE" if old is None else "UPDATE"
        changed = await self._reviewed(operation, target, how, obj, old, finish)
        done = self._updating(target, how)(changed or obj)
        return self._written(call, done, 200 if old is not None else 201)

    async def patch(self, call: Call, how: Writing) -> web.Response:
        """Answer a PATCH. Raises ApiError."""
        target, patch = call.target, bodies.patch_of(call.raw, call.request.content_type)
        there = self._there(target) is not None
        if not self._reviews.any or target.subresource == "scale":
            done = self._patching(target, patch, how)
            return self._written(call, done, 200 if there else 201)
        for tried in range(_TRIES):
            old = self._there(target)
            sent = self._patching(target, patch, _only_tried(how))
            operation: Literal["CREATE", "UPDATE"] = "CREATE" if old is None else "UPDATE"
            finish = self._updating(target, _only_tried(how)) if old is not None else None
            try:
                changed = await self._reviewed(operation, target, how, sent, old, finish)
                if changed is None:
                    done = self._patching(target, patch, how)
                elif old is None:
                    done = self._api.create(target.resource, target.namespace, changed, how)
                else:
                    done = self._updating(target, how)(changed)
                break
            except errors.ApiError as error:
                if error.reason != "Conflict" or tried + 1 == _TRIES:
                    raise
        return self._written(call, done, 200 if there else 201)

    async def delete(self, call: Call, user: User, warn: Callable[[str], None]) -> web.Response:
        """Answer a DELETE of one object or of many. Raises ApiError."""
        target, resource, request = call.target, call.target.resource, call.request
        deleting = options.deleting_of(call.raw, request.query, request.content_type)
        how = Writing(user=user, dry_run=deleting.dry_run, warn=warn)
        if not target.name:
            return await self._delete_collection(call, deleting, how)
        await self._reviewed("DELETE", target, how, None, self._there(target), None)
        last = self._api.delete(resource, target.namespace, target.name, deleting)
        gone = "deletionTimestamp" not in last["metadata"]
        if gone and resource.bucket not in _RETURN_DELETED:
            uid = last["metadata"]["uid"]
            details = {"name": target.name, "group": resource.group, "kind": resource.plural}
            details["uid"] = uid
            return answers.success({key: value for key, value in details.items() if value})
        return self._written(call, last, 200)

    async def _delete_collection(
        self, call: Call, deleting: Deleting, how: Writing
    ) -> web.Response:
        target, resource, query = call.target, call.target.resource, call.request.query
        selection = selection_of(resource, target.namespace, query)
        entries, metadata = reading.page_of(self._api.store, resource, selection, query)
        for entry in entries:
            one = dataclasses.replace(target, namespace=entry.namespace, name=entry.name)
            old = self._there(one)
            if old is not None:
                await self._reviewed("DELETE", one, how, None, old, None)
            if self._there(one) is not None:
                self._api.delete(resource, entry.namespace, entry.name, deleting)
        body = answers.many(resource, entries, metadata, call.wanted, self._api.now_s())
        return answers.response(200, body, call.wanted)

    # Inside

    def _there(self, target: Target) -> Object | None:
        return self._api.find(target.resource.bucket, target.namespace, target.name)

    def _updating(self, target: Target, how: Writing) -> Finish:
        key = (target.resource, target.namespace, target.name)
        return lambda obj: self._api.update(*key, obj, how, subresource=target.subresource)

    def _patching(self, target: Target, patch: Patch, how: Writing) -> Object:
        key = (target.resource, target.namespace, target.name)
        return self._api.patch(*key, patch, how, subresource=target.subresource)

    async def _reviewed(
        self,
        operation: Literal["CREATE", "UPDATE", "DELETE"],
        target: Target,
        how: Writing,
        obj: Object | None,
        old: Object | None,
        finish: Finish | None,
    ) -> Object | None:
        """Have webhooks look at a write; return what they made of the object, None: nothing."""
        if not self._reviews.any:
            return None
        about = (target.resource, target.subresource, target.namespace, target.name)
        write = Write(operation, *about, obj, old, how.user, how.warn)
        if not self._reviews.concerned(write):
            return None
        return await self._reviews.reviewed(write, finish, dry_run=how.dry_run)

    def _written(self, call: Call, obj: Object, code: int) -> web.Response:
        target, wanted = call.target, call.wanted
        if target.subresource == "scale":
            body = answers.scale(scale_of(target.resource, obj), wanted)
            return answers.response(code, body, wanted)
        body = answers.one(target.resource, obj, wanted, self._api.now_s())
        return answers.response(code, body, wanted)


def _only_tried(how: Writing) -> Writing:
    """Return how to see what a write would store, without writing or warning."""
    return dataclasses.replace(how, dry_run=True, warn=lambda _text: None)


def _dict(body: Any) -> Object:
    if not isinstance(body, dict):
        raise errors.bad_request("the body of the request has to be an object")
    return body
