"""A proxy in front of the API server that spoils answers to some requests, in one way at a time.

What a fault spoils is chosen by ``Spoilt``: reads by the path of their kind, writes by what their
method and path look like. Everything else passes.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import web

from tests.e2e.harness.recording_proxy import Recording

_TAKEN_BACK_S = 0.05
HUGE_BYTES = 320 * 2**20
_JSON = {"Content-Type": "application/json"}


class Spoilt(NamedTuple):
    """What is spoilt, and how. ``fault`` is a key of ``FAULTS``."""

    chosen: Callable[[web.BaseRequest], bool]
    fault: str
    expires: Callable[[web.BaseRequest], bool] = lambda request: False
    """What is answered 410 until an answer was spoilt, so that who watches has to list."""
    fails: Callable[[web.BaseRequest], bool] = lambda request: False
    """What is answered 500 besides."""


class Faulty(Recording):
    """Spoils what ``spoil`` says, until ``heal``. A context manager."""

    def __init__(self, server: str, ca: str) -> None:
        super().__init__(server, ca)
        self.spoilt = 0
        """Answers that were spoilt since the last ``spoil``."""
        self.passed: Counter[str] = Counter()
        """Requests that went on to the server, by path without query; watches when they begin."""
        self._now: Spoilt | None = None
        self._under_way: dict[asyncio.Task, str] = {}

    def spoil(self, spoilt: Spoilt) -> None:
        self.spoilt = 0
        self._now = spoilt

    def heal(self) -> None:
        self._now = None

    def cut(self, path: str) -> None:
        """End the requests of this path that are under way."""

        def cancel() -> None:
            for task, of in self._under_way.items():
                if of == path:
                    task.cancel()

        self._loop.call_soon_threadsafe(cancel)

    def is_spoiling(self, spoilt: Spoilt) -> bool:
        return self._now is spoilt and not self._stop.is_set()

    async def pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer as the API server does."""
        return await super()._answer(request)

    async def ask(self, request: web.BaseRequest) -> tuple[int, bytes]:
        """Have the API server carry it out; return status and body. Watches end after a moment."""
        body = b""
        status = 0
        async with self._session.request(
            request.method,
            self._server + request.raw_path,
            headers={k: v for k, v in request.headers.items() if k.lower() != "host"},
            data=await request.read() or None,
        ) as answer:
            status = answer.status
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    async for chunk in answer.content.iter_any():
                        body += chunk
        return status, body

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        now = self._now
        task = asyncio.current_task()
        self._under_way[task] = request.path
        try:
            if now is not None and not self.spoilt and now.expires(request):
                return refused(410, "Expired")
            if now is not None and now.fails(request):
                return refused(500, "InternalError")
            if now is not None and now.chosen(request):
                self.spoilt += 1
                return await (FAULTS | OF_WRITES)[now.fault](self, request, now)
            self.passed[request.path] += 1
            return await self.pass_on(request)
        finally:
            del self._under_way[task]


Fault = Callable[[Faulty, web.BaseRequest, Spoilt], Awaitable[web.StreamResponse]]


def refused(code: int, reason: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    status |= {"reason": reason, "message": f"{reason} by a test \x1b[2J"}
    more = {"Retry-After": "1"} if code in (429, 503) else {}
    return web.json_response(status, status=code, headers=more)


def refusing(code: int, reason: str) -> Fault:
    async def answer(_proxy: Faulty, _request: web.BaseRequest, _spoilt: Spoilt) -> web.Response:
        return refused(code, reason)

    return answer


def saying(body: bytes, content_type: str = "application/json", status: int = 200, **headers):
    async def answer(_proxy: Faulty, _request: web.BaseRequest, _spoilt: Spoilt) -> web.Response:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=body, status=status, content_type=content_type, headers=more)

    return answer


async def garbled(proxy: Faulty, request: web.BaseRequest, _spoilt: Spoilt) -> web.Response:
    """The real answer with each seventh byte another one."""
    status, body = await proxy.ask(request)
    wrong = bytes(b if i % 7 else b ^ 0x15 for i, b in enumerate(body[: 2**20]))
    return web.Response(status=status, body=wrong, headers=_JSON)


async def truncated(proxy: Faulty, request: web.BaseRequest, _spoilt: Spoilt) -> web.Response:
    """The first half, as if that were all."""
    status, body = await proxy.ask(request)
    return web.Response(status=status, body=body[: len(body) // 2], headers=_JSON)


async def cut(proxy: Faulty, request: web.BaseRequest, _spoilt: Spoilt) -> web.StreamResponse:
    """The first half of what was carried out, and then nothing more."""
    status, body = await proxy.ask(request)
    passed = web.StreamResponse(status=status, headers=_JSON | {"Content-Length": f"{len(body)}"})
    await passed.prepare(request)
    with contextlib.suppress(ConnectionError):
        await passed.write(body[: len(body) // 2])
        request.transport.abort()
    return passed


async def lost(proxy: Faulty, request: web.BaseRequest, _spoilt: Spoilt) -> web.StreamResponse:
    """It is carried out, and nobody says so."""
    await proxy.ask(request)
    return await dropped(proxy, request, _spoilt)


async def dropped(proxy: Faulty, request: web.BaseRequest, _spoilt: Spoilt) -> web.StreamResponse:
    """It is not carried out, and the connection is reset."""
    if request.transport is not None:
        request.transport.abort()
    raise asyncio.CancelledError


async def stuck(proxy: Faulty, request: web.BaseRequest, spoilt: Spoilt) -> web.StreamResponse:
    """No answer as long as the fault lasts."""
    while proxy.is_spoiling(spoilt):
        await asyncio.sleep(_TAKEN_BACK_S)
    return await dropped(proxy, request, spoilt)


async def slow(proxy: Faulty, request: web.BaseRequest, spoilt: Spoilt) -> web.StreamResponse:
    """The real answer, a few bytes at a time."""
    status, body = await proxy.ask(request)
    passed = web.StreamResponse(status=status, headers=_JSON)
    await passed.prepare(request)
    with contextlib.suppress(ConnectionError):
        for start in range(0, len(body), 16):
            if not proxy.is_spoiling(spoilt):
                break
            await passed.write(body[start : start + 16])
            await asyncio.sleep(_TAKEN_BACK_S)
    return await dropped(proxy, request, spoilt)


async def huge(proxy: Faulty, request: web.BaseRequest, spoilt: Spoilt) -> web.StreamResponse:
    """More than is ever read: one line, one text of one object."""
    passed = web.StreamResponse(status=200, headers=_JSON)
    await passed.prepare(request)
    with contextlib.suppress(ConnectionError):
        await passed.write(b'{"kind":"List","metadata":{"resourceVersion":"1"},"items":[{"a":"')
        for _ in range(HUGE_BYTES // 2**20):
            if not proxy.is_spoiling(spoilt):
                break
            await passed.write(b"x" * 2**20)
    return await dropped(proxy, request, spoilt)


def listing(kind: str, items: list) -> Fault:
    """A list of other objects, with the version that the real one has now."""

    async def answer(proxy: Faulty, request: web.BaseRequest, spoilt: Spoilt) -> web.Response:
        _, body = await proxy.ask(request)
        try:
            metadata = json.loads(body)["metadata"]
        except (ValueError, KeyError):  # a watch
            metadata = {"resourceVersion": "1"}
        listed = {"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": items}
        return web.json_response(listed)

    return answer


_SECRET = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "n"}}
_ODD = [1, None, "x", {}, [], {"metadata": 5}, {"metadata": {"name": 7}}, {"metadata": {}}]
_EVENTS = b"".join(
    json.dumps({"type": kind, "object": one}).encode() + b"\n"
    for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ODD", "")
    for one in [*_ODD, _SECRET]
)
REFUSALS: dict[str, Fault] = {
    "401": refusing(401, "Unauthorized"),
    "403": refusing(403, "Forbidden"),
    "404": refusing(404, "NotFound"),
    "410": refusing(410, "Expired"),
    "429": refusing(429, "TooManyRequests"),
    "500": refusing(500, "InternalError"),
    "503": refusing(503, "ServiceUnavailable"),
}
WRONG: dict[str, Fault] = {
    "html": saying(b"<html><body>Sign in</body></html>", "text/html"),
    "empty": saying(b""),
    "null": saying(b"null"),
    "deep": saying(b"[" * 200_000),
    "another kind": listing("SecretList", [_SECRET]),
    "another kind, none": listing("SecretList", []),
    "odd items": listing("List", _ODD),
    "odd events": saying(_EVENTS),
    "no gzip": saying(b"\x1f\x8bno gzip", Content_Encoding="gzip"),
    "redirect": saying(b"", status=302, Location="http://127.0.0.1:9/"),
    "garbled": garbled,
    "truncated": truncated,
    "cut": cut,
    "lost": lost,
    "dropped": dropped,
    "stuck": stuck,
    "slow": slow,
    "huge": huge,
}
FAULTS: dict[str, Fault] = REFUSALS | WRONG
OF_WRITES: dict[str, Fault] = {
    "409": refusing(409, "Conflict"),
    "422": refusing(422, "Invalid"),
    "no path": saying(b"default backend - 404", "text/plain", 404),
}
"""Refusals of writes besides all others."""
