"""One request: who asks, what for, may they, do it, answer.

In: HTTP requests. Out: answers, or watch streams. Every refusal is a Status object; a defect of our
own is one too (500), and is logged with its cause.
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from aiohttp import web

from pocketkube import errors
from pocketkube.api.api import Api
from pocketkube.api.binding import bind
from pocketkube.api.checking import checked
from pocketkube.api.rights import rbac, reviews
from pocketkube.api.rights.tokens import Tokens
from pocketkube.api.scale import scale_of, scale_resource
from pocketkube.api.writing import Deleting, User, Writing
from pocketkube.objects import Object
from pocketkube.server import answers, bodies, impersonation, options, reading, subresources
from pocketkube.server.documents import pages
from pocketkube.server.requests import Target, target_of
from pocketkube.server.selecting import selection_of
from pocketkube.server.watches import Watch

log = structlog.get_logger(__name__)

_ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


class Handler:
    """Answers requests. ``stop_watches`` ends every watch, for when the server stops."""

    def __init__(
        self,
        api: Api,
        tokens: Tokens,
        authorizer: rbac.Authorizer,
        static: pages.Pages,
    ) -> None:
        self._api = api
        self._tokens = tokens
        self._authorizer = authorizer
        self._pages = static
        self._stopping = False
        self._watches: set[Watch] = set()
        api.registry.listen(self._end_watches_of)

    def stop_watches(self) -> None:
        """End every watch that is open."""
        self._stopping = True
        for watch in self._watches:
            watch.end()

    def _end_watches_of(self, crd: str) -> None:
        """A definition has changed, or is gone: whoever watches its objects has to ask anew."""
        for watch in self._watches:
            if watch.resource.crd == crd:
                watch.end()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        warnings: list[str] = []
        try:
            answer = await self._answer(request, warnings)
        except errors.ApiError as error:
            answer = answers.refusal(error)
        except web.HTTPRequestEntityTooLarge:
            text = f"Request entity too large: limit is {bodies.BODY_BYTES_MAX}"
            answer = answers.refusal(errors.ApiError(413, "RequestEntityTooLarge", text))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            log.exception("a request failed", method=request.method, path=request.path)
            text = f"Internal error occurred: {type(error).__name__}: {error}"
            answer = answers.refusal(errors.ApiError(500, "InternalError", text))
        if not answer.prepared:
            for text in warnings:
                quoted = text.replace("\\", "\\\\").replace('"', '\\"')
                answer.headers.add("Warning", f'299 - "{quoted}"')
        return answer

    async def _answer(self, request: web.BaseRequest, warnings: list[str]) -> web.StreamResponse:
        user = self._user_of(request)
        target = target_of(
            self._api.registry, request.method, request.rel_url.raw_path, request.query
        )
        user = self._in_whose_name(user, request, target)
        if target is None:
            self._authorize_path(user, request)
            return self._pages.answer(request)
        self._authorize(user, target)
        _check_subresource(target)
        wanted = _negotiated(request, target)
        self._refuse_containers(target)
        if request.method in ("GET", "HEAD"):
            return await self._read(request, target, wanted)
        raw = await request.read()
        if request.method == "DELETE":
            return self._delete(request, target, raw, wanted)
        how = options.writing_of(
            request.query,
            user,
            request.headers.get("User-Agent", ""),
            warnings.append,
            method=request.method,
            is_apply=request.content_type == bodies.APPLY,
        )
        if request.method == "POST":
            return self._create(request, target, raw, how, wanted)
        if request.method == "PUT":
            return self._update(request, target, raw, how, wanted)
        return self._patch(request, target, raw, how, wanted)

    # Who

    def _user_of(self, request: web.BaseRequest) -> User:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if not token:
            return _ANONYMOUS
        user = self._tokens.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise errors.unauthorized()
        return user

    def _in_whose_name(self, user: User, request: web.BaseRequest, target: Target | None) -> User:
        wanted = impersonation.wanted_of(request.headers)
        if wanted is None:
            return user
        if impersonation.allowed(user, wanted, request.headers, self._authorizer):
            return wanted
        if target is None:
            verb = impersonation.refused_verb(wanted, request.method.lower())
            why = rbac.refusal_of_path(user, verb, request.path)
            raise errors.ApiError(403, "Forbidden", f"forbidden: {why}")
        resource = target.resource
        verb = impersonation.refused_verb(wanted, target.verb)
        asked = (verb, resource.group, resource.plural, target.subresource, target.namespace)
        why = rbac.refusal(user, *asked)
        raise errors.forbidden(resource.group, resource.plural, target.name, why)

    def _authorize(self, user: User, target: Target) -> None:
        resource = target.resource
        asked = (target.verb, resource.group, resource.plural, target.subresource)
        if self._authorizer.allowed(user, *asked, target.namespace, target.name):
            return
        why = rbac.refusal(user, *asked, target.namespace)
        raise errors.forbidden(resource.group, resource.plural, target.name, why)

    def _authorize_path(self, user: User, request: web.BaseRequest) -> None:
        verb = "get" if request.method == "HEAD" else request.method.lower()
        if not self._authorizer.allowed_path(user, verb, request.path):
            why = rbac.refusal_of_path(user, verb, request.path)
            raise errors.ApiError(403, "Forbidden", f"forbidden: {why}")

    # What

    def _refuse_containers(self, target: Target) -> None:
        if target.subresource:
            bucket = target.resource.bucket
            there = self._api.store.get(bucket, target.namespace, target.name) is not None
            subresources.refuse_containers(target, there)

    async def _read(
        self, request: web.BaseRequest, target: Target, wanted: answers.Wanted
    ) -> web.StreamResponse:
        resource, query = target.resource, request.query
        now_s = self._api.now_s()
        if target.verb == "watch":
            return await self._watch(request, target, wanted)
        if target.subresource:
            found = subresources.read(self._api, target)
            if target.subresource != "scale":
                return answers.response(200, answers.one(resource, found, wanted, now_s), wanted)
            return answers.response(200, answers.scale(found, wanted), wanted)
        if target.name:
            found = self._api.get(resource, target.namespace, target.name)
            return answers.response(200, answers.one(resource, found, wanted, now_s), wanted)
        selection = selection_of(resource, target.namespace, query)
        entries, metadata = reading.page_of(self._api.store, resource, selection, query)
        body = answers.many(resource, entries, metadata, wanted, now_s)
        return answers.response(200, body, wanted)

    async def _watch(
        self, request: web.BaseRequest, target: Target, wanted: answers.Wanted
    ) -> web.StreamResponse:
        selection = selection_of(target.resource, target.namespace, request.query)
        watch = Watch(self._api.store, target.resource, selection, wanted, self._api.now_s())
        self._watches.add(watch)
        if self._stopping:
            watch.end()
        try:
            return await watch.serve(request)
        finally:
            self._watches.discard(watch)

    def _create(
        self,
        request: web.BaseRequest,
        target: Target,
        raw: bytes,
        how: Writing,
        wanted: answers.Wanted,
    ) -> web.Response:
        resource = target.resource
        body, json = bodies.object_of(raw, request.content_type)
        if target.subresource:
            return subresources.create(self._api, self._tokens, target, _dict(body), how)
        if resource.bucket in reviews.REVIEWS:
            asked = (self._authorizer, self._tokens, how.user, _dict(body), target.namespace)
            answer = reviews.reviewed(resource.bucket, reviews.Asked(*asked))
            return answers.response(201, answers.encode(answer))
        if resource.bucket == "bindings":
            name = str((_dict(body).get("metadata") or {}).get("name", ""))
            bind(self._api, target.namespace, name, _dict(body), how)
            return answers.success(code=201)
        obj = checked(body, resource, how, json)
        done = self._api.create(resource, target.namespace, obj, how)
        return self._written(target, done, 201, wanted)

    def _update(
        self,
        request: web.BaseRequest,
        target: Target,
        raw: bytes,
        how: Writing,
        wanted: answers.Wanted,
    ) -> web.Response:
        resource = target.resource
        body, json = bodies.object_of(raw, request.content_type)
        if target.subresource == "scale":
            obj = checked(body, scale_resource(resource), how)
        else:
            obj = checked(body, resource, how, json)
        there = self._is_there(target)
        done = self._api.update(
            resource, target.namespace, target.name, obj, how, subresource=target.subresource
        )
        return self._written(target, done, 200 if there else 201, wanted)

    def _is_there(self, target: Target) -> bool:
        bucket = target.resource.bucket
        return self._api.store.get(bucket, target.namespace, target.name) is not None

    def _patch(
        self,
        request: web.BaseRequest,
        target: Target,
        raw: bytes,
        how: Writing,
        wanted: answers.Wanted,
    ) -> web.Response:
        resource = target.resource
        patch = bodies.patch_of(raw, request.content_type)
        there = self._is_there(target)
        done = self._api.patch(
            resource, target.namespace, target.name, patch, how, subresource=target.subresource
        )
        return self._written(target, done, 200 if there else 201, wanted)

    def _delete(
        self, request: web.BaseRequest, target: Target, raw: bytes, wanted: answers.Wanted
    ) -> web.Response:
        resource = target.resource
        deleting = options.deleting_of(raw, request.query, request.content_type)
        if not target.name:
            return self._delete_collection(request, target, deleting, wanted)
        last = self._api.delete(resource, target.namespace, target.name, deleting)
        gone = "deletionTimestamp" not in last["metadata"]
        if gone and resource.bucket not in _RETURN_DELETED:
            uid = last["metadata"]["uid"]
            details = {"name": target.name, "group": resource.group, "kind": resource.plural}
            details["uid"] = uid
            return answers.success({key: value for key, value in details.items() if value})
        return self._written(target, last, 200, wanted)

    def _delete_collection(
        self,
        request: web.BaseRequest,
        target: Target,
        deleting: Deleting,
        wanted: answers.Wanted,
    ) -> web.Response:
        resource = target.resource
        selection = selection_of(resource, target.namespace, request.query)
        entries, metadata = reading.page_of(self._api.store, resource, selection, request.query)
        for entry in entries:
            if self._api.store.get(resource.bucket, entry.namespace, entry.name) is not None:
                self._api.delete(resource, entry.namespace, entry.name, deleting)
        return answers.response(
            200, answers.many(resource, entries, metadata, wanted, self._api.now_s()), wanted
        )

    def _written(
        self, target: Target, obj: Object, code: int, wanted: answers.Wanted
    ) -> web.Response:
        if target.subresource == "scale":
            body = answers.scale(scale_of(target.resource, obj), wanted)
            return answers.response(code, body, wanted)
        body = answers.one(target.resource, obj, wanted, self._api.now_s())
        return answers.response(code, body, wanted)


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


def _check_subresource(target: Target) -> None:
    """Refuse subresources (404) and verbs (405) that are not served."""
    resource = target.resource
    if target.subresource and target.subresource not in resource.subresources:
        if resource.crd:
            raise errors.not_found(resource.group, resource.plural, target.name)
        raise errors.no_such_path()
    if resource.crd and not target.subresource:
        if target.verb in ("update", "patch") and not target.name:
            raise errors.bad_request("name must be provided")
        return
    on_object = target.verb in ("get", "update", "patch", "delete")
    on_collection = target.verb in ("list", "deletecollection")
    misplaced = on_collection if target.name else on_object
    if target.verb == "create" and not target.subresource:
        misplaced = bool(target.name)
    served = resource.subresources[target.subresource] if target.subresource else resource
    if misplaced or target.verb not in served.verbs:
        raise errors.no_such_method()


def _negotiated(request: web.BaseRequest, target: Target) -> answers.Wanted:
    """Return what the client wants; refuse what cannot be written (406) and a patch's type (415).

    For built-in resources that comes before all else, because the paths are routed by it.
    """
    if request.method == "PATCH":
        type_ = bodies.patch_type_of(request.content_type)
        if type_ == "strategic" and target.resource.crd:
            raise errors.unsupported_media_type(bodies.CUSTOM_PATCH_TYPES)
    accept, include = request.headers.get("Accept", ""), request.query.get("includeObject", "")
    return answers.wanted_of(accept, include)


def _dict(body: Any) -> Object:
    if not isinstance(body, dict):
        raise errors.bad_request("the body of the request has to be an object")
    return body
