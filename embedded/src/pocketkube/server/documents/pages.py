"""Paths that are no resources: health, version, discovery, OpenAPI."""

from __future__ import annotations

from aiohttp import web

from pocketkube import errors
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.server import answers
from pocketkube.server.documents import discovery, openapi

_HEALTH = ("/healthz", "/livez", "/readyz")


class Pages:
    """Answers what does not change but by CRDs."""

    def __init__(self, registry: Registry, document: Document) -> None:
        self._registry = registry
        self._document = document

    def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a GET. Raises ApiError (404, 405)."""
        path = request.path.rstrip("/") or "/"
        if request.method not in ("GET", "HEAD"):
            raise errors.ApiError(405, "MethodNotAllowed", "the server does not allow this method")
        if path in _HEALTH or path.startswith(tuple(f"{page}/" for page in _HEALTH)):
            return web.Response(text="ok")
        if path == "/version":
            return answers.response(200, answers.encode(self._document.version))
        accept = request.headers.get("Accept", "")
        found = discovery.page(path, accept, self._registry, self._document)
        if found is None and path.startswith("/openapi"):
            found = openapi.page(path, accept, self._registry, self._document)
        if found is None:
            raise errors.no_such_path()
        content_type, body = found
        return web.Response(body=body, headers={"Content-Type": content_type})
