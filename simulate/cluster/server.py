"""The API server without HTTP: paths and bodies in, bytes out, by the rules of ``pocketkube.api``.

Called by ``network``. A refusal is raised as the shell's ``ApiError``, made from the Status object
that a real server would answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from multidict import MultiDict

from pocketkube import errors
from pocketkube.api.api import Api
from pocketkube.api.binding import bind
from pocketkube.api.checking import checked
from pocketkube.api.eviction import evict
from pocketkube.api.writing import Writing
from pocketkube.objects import Object
from pocketkube.server import answers, options, reading
from pocketkube.server.requests import Target, asked_of, resolved
from pocketkube.server.selecting import selection_of
from pocketkube.server.watches import Watch
from pocketkube.server.writing import bodies
from quorate.shell.kube.errors import ApiError, error_from_response

_WANTED = answers.Wanted(answers.Form.OBJECT)
_DONE = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}'
_HOW = Writing()
_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


class Request(msgspec.Struct, frozen=True):
    """One request: ``kind`` is that of a patch."""

    method: str
    path: str
    params: Mapping[str, str | int]
    body: bytes = b""
    kind: str = ""

    @property
    def is_bind(self) -> bool:
        """Whether it gives a pod its node."""
        return self.method == "POST" and self.path.endswith("/binding")

    @property
    def is_eviction(self) -> bool:
        """Whether it evicts a pod."""
        return self.method == "POST" and self.path.endswith("/eviction")

    @property
    def is_lease(self) -> bool:
        """Whether it is about the Lease of the leader election."""
        return "/leases" in self.path


class Server:
    """Answers requests at once; the caller adds the delays."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def answer(self, request: Request) -> bytes:
        """Carry out a request other than a watch. Raises the shell's ApiError."""
        try:
            return self._answer(request)
        except errors.ApiError as error:
            raise refusal(error) from None

    def watch(self, path: str, params: Mapping[str, str | int]) -> Watch:
        """Return a watch of a collection, not yet begun. Raises the shell's ApiError."""
        query = query_of(params)
        try:
            target = self._target_of("GET", path, query)
            if target is None:
                raise errors.no_such_path()
            selection = selection_of(target.resource, target.namespace, query)
        except errors.ApiError as error:
            raise refusal(error) from None
        store, now_s = self.api.store, self.api.now_s()
        return Watch(store, target.resource, selection, _WANTED, now_s)

    def _answer(self, request: Request) -> bytes:
        query = query_of(request.params)
        target = self._target_of(request.method, request.path, query)
        if target is None:
            raise errors.no_such_path()
        match request.method:
            case "GET":
                return self._read(target, query)
            case "POST":
                return self._create(target, request.body)
            case "PUT":
                obj = checked(_decode(request.body), target.resource, _HOW, request.body)
                return self._written(
                    target,
                    self.api.update(
                        target.resource,
                        target.namespace,
                        target.name,
                        obj,
                        _HOW,
                        subresource=target.subresource,
                    ),
                )
            case "PATCH":
                return self._patch(target, request)
            case _:
                deleting = options.deleting_of(request.body, query, "application/json")
                last = self.api.delete(target.resource, target.namespace, target.name, deleting)
                return self._written(target, last)

    def _target_of(self, method: str, path: str, query: MultiDict[str]) -> Target | None:
        asked = asked_of(method, path, query)
        return None if asked is None else resolved(self.api.registry, asked, method)

    def _read(self, target: Target, query: MultiDict[str]) -> bytes:
        api, resource = self.api, target.resource
        if target.name:
            found = api.get(resource, target.namespace, target.name)
            return answers.one(resource, found, _WANTED, api.now_s())
        selection = selection_of(resource, target.namespace, query)
        entries, metadata = reading.page_of(api.store, resource, selection, query)
        return answers.many(resource, entries, metadata, _WANTED, api.now_s())

    def _create(self, target: Target, body: bytes) -> bytes:
        obj = _decode(body)
        if target.subresource == "binding":
            bind(self.api, target.namespace, target.name, obj, _HOW)
            return _DONE
        if target.subresource == "eviction":
            evict(self.api, target.namespace, target.name, obj, _HOW)
            return _DONE
        if target.subresource:
            raise errors.no_such_path()
        obj = checked(obj, target.resource, _HOW, body)
        return self._written(target, self.api.create(target.resource, target.namespace, obj, _HOW))

    def _patch(self, target: Target, request: Request) -> bytes:
        patch = bodies.patch_of(request.body, _PATCH_TYPES[request.kind])
        done = self.api.patch(
            target.resource,
            target.namespace,
            target.name,
            patch,
            _HOW,
            subresource=target.subresource,
        )
        return self._written(target, done)

    def _written(self, target: Target, obj: Object) -> bytes:
        return answers.one(target.resource, obj, _WANTED, self.api.now_s())


def refusal(error: errors.ApiError) -> ApiError:
    """Return the error that our client would make of a refusal."""
    return error_from_response(error.code, answers.encode(error.status()))


def _decode(body: bytes) -> Object:
    obj = bodies.decoded_json(body)
    if not isinstance(obj, dict):
        raise errors.bad_request("the body of the request has to be an object")
    return obj


def query_of(params: Mapping[str, str | int]) -> MultiDict[str]:
    """Return parameters as a server reads them."""
    return MultiDict({name: str(value) for name, value in params.items()})
