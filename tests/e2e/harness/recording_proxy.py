"""An HTTP proxy in front of the API server: records requests, holds them up, loses answers."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable

import aiohttp
from aiohttp import web

from quorate.shell.kube.connections.sessions import Connector, plain_socket
from tests.servers import serving
from tools.testing import HANGS_S

_HOP_BY_HOP = {"transfer-encoding", "connection", "keep-alive", "host"}


def is_bind(method: str, path: str) -> bool:
    return method == "POST" and path.endswith("/binding")


class Recording:
    """Forwards requests to ``server``. A context manager; ``url`` is where it listens.

    ``loses`` tells, of a method and a path, whether to answer 500 for what was carried out;
    ``refuses`` whether to answer 500 without asking, ``holds`` whether to wait for ``release``
    before it is asked.
    """

    def __init__(
        self,
        server: str,
        ca: str,
        *,
        loses: Callable[[str, str], bool] = lambda method, path: False,
        refuses: Callable[[str, str], bool] = lambda method, path: False,
        holds: Callable[[str, str], bool] = lambda method, path: False,
    ) -> None:
        self.requests: list[tuple[str, str]] = []
        """Method, and path with query."""
        self.refused: list[tuple[str, str]] = []
        """Those of them that the server answered with 401 or 403."""
        self.held: list[tuple[str, str]] = []
        """Those of them that were, or are, held up."""
        self.url = ""
        self._server = server
        self._tls = ssl.create_default_context(cafile=ca)
        self._loses = loses
        self._refuses = refuses
        self._holds = holds
        self._released = asyncio.Event()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> "Recording":
        self._thread.start()
        assert self._ready.wait(HANGS_S)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(HANGS_S)
        assert not self._thread.is_alive()

    def release(self) -> None:
        """Let what is held up go on, and hold nothing up any more."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with (
            aiohttp.ClientSession(
                connector=Connector(0, plain_socket),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
            ) as self._session,
            serving(self._answer) as port,
        ):
            self.url = f"http://127.0.0.1:{port}"
            self._ready.set()
            await self._stop.wait()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        method, target = request.method, request.raw_path
        self.requests.append((method, target))
        if self._refuses(method, target):
            return _failure()
        if self._holds(method, target) and not self._released.is_set():
            self.held.append((method, target))
            await self._released.wait()
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        async with self._session.request(
            method,
            self._server + target,
            headers=headers,
            data=await request.read() or None,
            allow_redirects=False,
            ssl=self._tls,
        ) as answer:
            if answer.status in (401, 403):
                self.refused.append((method, target))
            if self._loses(method, target):
                return _failure()
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
            passed = web.StreamResponse(status=answer.status, headers=kept)
            await passed.prepare(request)
            with contextlib.suppress(ConnectionError):  # a watch that its client has ended
                async for chunk in answer.content.iter_any():
                    await passed.write(chunk)
            return passed


def _failure() -> web.Response:
    status = {"kind": "Status", "code": 500, "reason": "InternalError", "message": "lost by a test"}
    return web.json_response(status, status=500)
