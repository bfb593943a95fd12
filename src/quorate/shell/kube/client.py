"""The HTTP client of the API server. In: paths and bodies. Out: bytes, or an ``ApiError``.

Called by ``reflector`` here, and by the shell's lease, watch, commit and report. Nothing is
retried in this layer: whether a second try is safe, and when, is the caller's to know.

Three ways out, so that none waits behind another: writes go through ``pool.ConnectionPool`` (to a
proxy, through aiohttp), reads through a few connections of aiohttp, and each stream has a
connection of its own. Writes queue in
order, so whoever must never wait behind a thousand binds (``elector``) takes a client of its own.
Bodies are never compressed: the API server's CPU is the scarcest of all.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Final, Literal, Self

import aiohttp
import msgspec
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from quorate.shell.kube.connections.http1 import OBJECT_BYTES_MAX
from quorate.shell.kube.connections.pool import ConnectionPool
from quorate.shell.kube.connections.sessions import (
    CONTENT_TYPE,
    LIST_BYTES_MAX,
    NETWORK_ERRORS,
    USER_AGENT,
    ByteStream,
    body_of,
    session,
    unreachable,
)
from quorate.shell.kube.errors import (
    ApiError,
    Unreachable,
    error_from_response,
    is_object,
    not_sent,
    status_class,
)
from quorate.shell.kube.identity.credentials import Credentials
from quorate.shell.kube.paths import address, is_safe_target, with_params

PatchKind = Literal["merge", "strategic", "json", "apply"]
Params = Mapping[str, str | int]

_PATCH_TYPES: Final[dict[PatchKind, str]] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_READ_CONNECTIONS_MAX: Final = 16
_PROXY_CONNECT_S_MAX: Final = 4.0
"""Less than a Lease is valid after its holder stops to write (``lease.elector``)."""
_ENCODER: Final = msgspec.json.Encoder()


class KubeClient:
    """One API server and one identity. Use it as an async context manager, or ``close`` it."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        write_connections_max: int = 64,
        timeout_s: float = 30.0,
    ) -> None:
        self.on_error: Callable[[str], object] = lambda status: None
        """Gets one of ``errors.STATUSES`` for each request that fails."""
        self._credentials = credentials
        url = URL(credentials.base_url)
        if url.host is None or url.port is None:
            raise ValueError(f"no host in {credentials.base_url!r}")
        self._name = address(url.host, url.port)
        if credentials.proxy_url is not None:
            proxy = URL(credentials.proxy_url)
            self._name += f" by the proxy {address(proxy.host or '', proxy.port or 0)}"
        self._origin = str(url.origin())
        self._path_prefix = url.raw_path.rstrip("/")  # some proxies put each cluster under a path
        self._host_header = url.raw_authority
        self._timeout_s = timeout_s
        self._identity_headers: CIMultiDictProxy[str] | None = None
        self._identity_lines = b""
        self._reads = session(_READ_CONNECTIONS_MAX, timeout_s)
        self._streams = session(0, timeout_s, is_stream=True)
        self._writes = self._proxied_writes = None
        if credentials.proxy_url is not None:
            self._proxied_slots = asyncio.Semaphore(write_connections_max)  # to wait is no timeout
            self._proxied_writes = session(
                write_connections_max, timeout_s, connect_s=_PROXY_CONNECT_S_MAX
            )
        else:
            self._writes = ConnectionPool(
                url.host,
                url.port,
                tls=self._tls if credentials.tls is not None else None,
                server_hostname=credentials.tls_server_name,
                connections_max=write_connections_max,
                timeout_s=timeout_s,
            )

    async def get(self, path: str, params: Params | None = None) -> bytes:
        """Read an object, or a list that is as small."""
        target = self._path_prefix + with_params(path, params)
        return await self._request_by_aiohttp("GET", target, b"", None)

    async def get_list(self, path: str, params: Params | None = None) -> bytes:
        """Read one page of a list."""
        target = self._path_prefix + with_params(path, params)
        return await self._request_by_aiohttp("GET", target, b"", None, bytes_max=LIST_BYTES_MAX)

    async def post(
        self,
        path: str,
        body: object,
        params: Params | None = None,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> bytes:
        """Create; ``body`` is bytes of JSON, or anything that msgspec can encode.

        ``may_send`` is asked on a connection that is free, right before the request is written.
        If it says no, nothing is sent and Unreachable is raised.
        """
        return await self._write("POST", path, params, body, CONTENT_TYPE, may_send)

    async def put(self, path: str, body: object, params: Params | None = None) -> bytes:
        """Replace."""
        return await self._write("PUT", path, params, body, CONTENT_TYPE)

    async def patch(
        self,
        path: str,
        body: object,
        kind: PatchKind,
        params: Params | None = None,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> bytes:
        """Change a part; ``strategic`` is known to built-in resources only."""
        return await self._write("PATCH", path, params, body, _PATCH_TYPES[kind], may_send)

    def warm(self, count: int) -> None:
        """Open connections for ``count`` writes that are expected soon."""
        if self._writes is not None:
            self._writes.warm(count)

    async def delete(
        self,
        path: str,
        body: object = None,
        params: Params | None = None,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> bytes:
        """Delete; ``body`` may hold DeleteOptions (grace period, preconditions)."""
        return await self._write("DELETE", path, params, body, CONTENT_TYPE, may_send)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, params: Params | None, *, silence_s_max: float
    ) -> AsyncIterator[ByteStream]:
        """Open a body without end, such as a watch; broken after ``silence_s_max`` without a byte.

        Raises ApiError: the server refused, or was not reached. Later errors come from ``read``.
        """
        url = URL(self._origin + self._path_prefix + with_params(path, params), encoded=True)
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._timeout_s, sock_read=silence_s_max
        )
        headers = await self._credentials.headers()
        try:
            response = await self._streams.get(
                url,
                headers=headers,
                timeout=timeout,
                ssl=self._credentials.tls or True,
                allow_redirects=False,
                proxy=self._credentials.proxy_url,
                server_hostname=self._credentials.tls_server_name,
            )
        except NETWORK_ERRORS as error:
            raise self._unreachable(error) from error
        try:
            if response.status != 200:
                text = await body_of(response, OBJECT_BYTES_MAX)
                raise self._refusal(response.status, text, response.headers)
            yield ByteStream(response.content, self._name)
        finally:
            response.close()  # the rest of a stream is of no use, nor is its connection

    async def close(self) -> None:
        """Close all connections; what is under way fails with ``Unreachable``."""
        if self._writes is not None:
            await self._writes.close()
        await self._reads.close()
        if self._proxied_writes is not None:
            await self._proxied_writes.close()
        await self._streams.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _write(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: object,
        content_type: str,
        may_send: Callable[[], bool] | None = None,
    ) -> bytes:
        if body is None:
            body = b""
        elif not isinstance(body, bytes):
            body = _ENCODER.encode(body)
        target = self._path_prefix + (with_params(path, params) if params else path)
        if self._writes is None:
            return await self._write_by_proxy(method, target, body, content_type, may_send)
        headers = await self._credentials.headers()
        if headers is not self._identity_headers:  # they change about once an hour
            self._identity_lines = self._common_header_lines(headers)
            self._identity_headers = headers
        if not is_safe_target(target):
            raise ValueError(f"path {target!r} is not quoted; build it with shell.kube.paths")
        request = (
            f"{method} {target} HTTP/1.1\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n".encode("ascii")
            + self._identity_lines
            + body
        )
        try:
            response = await self._writes.request(request, may_send)
        except Unreachable as error:
            if isinstance(error.__cause__, ssl.SSLError):
                self._credentials.look_soon()
            self.on_error(status_class(0))
            raise
        if 200 <= response.status < 300 and is_object(response.body):
            return response.body
        raise self._error(response.status, response.body, response.retry_after)

    async def _write_by_proxy(
        self,
        method: str,
        target: str,
        body: bytes,
        content_type: str,
        may_send: Callable[[], bool] | None,
    ) -> bytes:
        async with self._proxied_slots:
            if may_send is not None and not may_send():
                raise not_sent()
            answer = await self._request_by_aiohttp(
                method, target, body, content_type, self._proxied_writes
            )
        if is_object(answer):
            return answer
        raise self._error(200, answer, None)

    async def _request_by_aiohttp(
        self,
        method: str,
        target: str,
        body: bytes,
        content_type: str | None,
        by: aiohttp.ClientSession | None = None,
        bytes_max: int = OBJECT_BYTES_MAX,
    ) -> bytes:
        headers = await self._credentials.headers()
        if content_type is not None:
            headers = CIMultiDictProxy(CIMultiDict(headers, **{"Content-Type": content_type}))
        try:
            async with (by or self._reads).request(
                method,
                URL(self._origin + target, encoded=True),
                data=body or None,
                headers=headers,
                ssl=self._credentials.tls or True,
                allow_redirects=False,
                proxy=self._credentials.proxy_url,
                server_hostname=self._credentials.tls_server_name,
            ) as response:
                answer = await body_of(response, bytes_max)
        except NETWORK_ERRORS as error:
            raise self._unreachable(error) from error
        if 200 <= response.status < 300:
            return answer
        raise self._refusal(response.status, answer, response.headers)

    def _tls(self) -> ssl.SSLContext:
        assert self._credentials.tls is not None, "https stays https"
        return self._credentials.tls

    def _unreachable(self, error: BaseException) -> Unreachable:
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
            self._credentials.look_soon()  # an authority or certificate may have been renewed
        self.on_error(status_class(0))
        if isinstance(error, TimeoutError) and not getattr(error, "errno", None):
            never_sent = isinstance(error, aiohttp.ConnectionTimeoutError)
            said = f"no answer from {self._name} within {self._timeout_s:g} s"
            return Unreachable(said, maybe_processed=not never_sent)
        return unreachable(self._name, error)

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
        return self._error(status, body, headers.get("Retry-After"))

    def _error(self, status: int, body: bytes, retry_after: str | bytes | None) -> ApiError:
        if status == 401:
            self._credentials.invalidate()
        self.on_error(status_class(status))
        return error_from_response(status, self._credentials.redacted(body), retry_after)

    def _common_header_lines(self, headers: CIMultiDictProxy[str]) -> bytes:
        """Return the header lines that all writes share, and the empty line after them."""
        lines = [
            ("Host", self._host_header),
            ("User-Agent", USER_AGENT),
            ("Accept", CONTENT_TYPE),
            *headers.items(),
        ]
        for name, value in lines:
            if not value.isprintable() or not value.isascii():
                raise ValueError(f"header {name} holds characters that HTTP forbids")
        return "".join(f"{n}: {v}\r\n" for n, v in lines).encode("ascii") + b"\r\n"
