"""One request: who asks, in whose name, what for, may they, do it, answer.

In: HTTP requests. Out: answers, or watch streams. Every refusal is a Status object; a defect of our
own is one too (500), and is logged with its cause.
"""

from __future__ import annotations

import asyncio

import structlog
from aiohttp import web
from multidict import MultiMapping

from pocketkube import errors
from pocketkube.api.api import Api
from pocketkube.api.rights import rbac
from pocketkube.api.rights.rbac import Authorizer
from pocketkube.api.rights.tokens import Tokens
from pocketkube.api.writing import User
from pocketkube.schema.document import Document
from pocketkube.server import answers, options, reading
from pocketkube.server.documents import discovery, openapi
from pocketkube.server.requests import Asked, Target, asked_of, resolved
from pocketkube.server.selecting import selection_of
from pocketkube.server.watches import Watch
from pocketkube.server.writing import bodies, subresources
from pocketkube.server.writing.writes import Call, Writes

_SERVICE_ACCOUNT = "system:serviceaccount:"
_NOT_IMPERSONATED = ("impersonate-extra-", "impersonate-uid")
_HEALTH = ("/healthz", "/livez", "/readyz")


def wanted_of(headers: MultiMapping[str]) -> User | None:
    """Return whom the request wants to be, None for most.

    Raises ApiError (400): no name is given, or more than name and groups.
    """
    name = headers.get("Impersonate-User", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    if any(header.lower().startswith(_NOT_IMPERSONATED) for header in headers):
        raise errors.bad_request("this cluster impersonates users and groups, no UIDs and extras")
    if name:
        return User(name, _completed(name, groups))
    if groups:
        raise errors.bad_request("requested groups without impersonating a user name")
    return None


def allowed(user: User, wanted: User, headers: MultiMapping[str], authorizer: Authorizer) -> bool:
    """Tell whether the user may act as the wanted one, in each thing that the headers name."""
    account = _service_account(wanted.name)
    kind, name = ("serviceaccounts", account) if account else ("users", ("", wanted.name))
    groups = headers.getall("Impersonate-Group", ())
    return authorizer.allowed(user, "impersonate", "", kind, "", *name) and all(
        authorizer.allowed(user, "impersonate", "", "groups", "", "", group) for group in groups
    )


def refused_verb(wanted: User, verb: str) -> str:
    """Return the verb that the sentence of a refusal names."""
    mode = "serviceaccount" if _service_account(wanted.name) else "user-info"
    return f"impersonate-on:{mode}:{verb}"


def _service_account(name: str) -> tuple[str, str] | None:
    """Return the namespace and name of ``system:serviceaccount:namespace:name``."""
    if not name.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, _, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return (namespace, account) if namespace and account else None


def _completed(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Add the groups that such a user would have after logging in."""
    account = _service_account(name)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    last = "system:unauthenticated" if name == "system:anonymous" else "system:authenticated"
    known = ("system:authenticated", "system:unauthenticated")
    return groups if any(one in groups for one in known) else (*groups, last)


log = structlog.get_logger(__name__)

_ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


class Handler:
    """Answers requests. ``stop`` ends every watch, for when the server stops."""

    def __init__(
        self,
        api: Api,
        tokens: Tokens,
        authorizer: rbac.Authorizer,
        document: Document,
    ) -> None:
        self._api = api
        self._writes = Writes(api, tokens, authorizer)
        self._tokens = tokens
        self._authorizer = authorizer
        self._document = document
        self._stopping = False
        self._watches: set[Watch] = set()
        api.registry.listen(self._end_watches_of)

    def stop(self) -> None:
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
        asked = asked_of(request.method, request.rel_url.raw_path, request.query)
        user = self._in_whose_name(user, request, asked)
        target = self._target_of(asked, user, request.method)
        if target is None:
            self._authorize_path(user, request)
            return self._page(request)
        self._authorize(user, target)
        _check_subresource(target)
        wanted = _negotiated(request, target)
        self._refuse_containers(target)
        if request.method in ("GET", "HEAD"):
            return await self._read(request, target, wanted)
        call = Call(request, target, await request.read(), wanted)
        if request.method == "DELETE":
            return self._writes.delete(call)
        how = options.writing_of(
            request.query,
            user,
            warnings.append,
            method=request.method,
            is_apply=request.content_type == bodies.APPLY,
        )
        if request.method == "POST":
            return self._writes.create(call, how)
        if request.method == "PUT":
            return self._writes.update(call, how)
        return self._writes.patch(call, how)

    # Who

    def _user_of(self, request: web.BaseRequest) -> User:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if not token:
            return _ANONYMOUS
        user = self._tokens.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise errors.unauthorized()
        return user

    def _in_whose_name(self, user: User, request: web.BaseRequest, asked: Asked | None) -> User:
        wanted = wanted_of(request.headers)
        if wanted is None:
            return user
        if allowed(user, wanted, request.headers, self._authorizer):
            return wanted
        if asked is None:
            verb = refused_verb(wanted, request.method.lower())
            why = rbac.refusal_of_path(user, verb, request.path)
            raise errors.ApiError(403, "Forbidden", f"forbidden: {why}")
        verb = refused_verb(wanted, asked.verb)
        why = rbac.refusal(
            user, verb, asked.group, asked.plural, asked.subresource, asked.namespace
        )
        raise errors.forbidden(asked.group, asked.plural, asked.name, why)

    def _target_of(self, asked: Asked | None, user: User, method: str) -> Target | None:
        """Return what is asked for. Who may not even ask learns that, not whether it is there."""
        if asked is None:
            return None
        try:
            return resolved(self._api.registry, asked, method)
        except errors.ApiError:
            about = (asked.verb, asked.group, asked.plural, asked.subresource, asked.namespace)
            if self._authorizer.allowed(user, *about, asked.name):
                raise
            why = rbac.refusal(user, *about)
            raise errors.forbidden(asked.group, asked.plural, asked.name, why) from None

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

    def _page(self, request: web.BaseRequest) -> web.Response:
        """Answer a path that is no resource: health, version, discovery, OpenAPI.

        Raises ApiError (404, 405).
        """
        path = request.path.rstrip("/")
        if request.method not in ("GET", "HEAD"):
            raise errors.ApiError(405, "MethodNotAllowed", "the server does not allow this method")
        if path.startswith(_HEALTH):
            return web.Response(text="ok")
        if path == "/version":
            return answers.response(200, answers.encode(self._document.version))
        page = discovery.page(path, self._api.registry, self._document)
        if page is None and path.startswith("/openapi"):
            accept = request.headers.get("Accept", "")
            page = openapi.page(path, accept, self._api.registry, self._document)
        if page is None:
            raise errors.no_such_path()
        return web.Response(body=page[1], headers={"Content-Type": page[0]})

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
