"""The HTTP client of the API server. In: paths and bodies. Out: bytes, or an ``ApiError``.

Called by ``watching`` and ``leader`` here, and by the shell's watch, commit and report. Nothing is
retried in this layer: whether a second try is safe, and when, is the caller's to know.

Three ways out, so that none waits behind another: writes go through ``fast.ConnectionPool``, reads
through a few connections of aiohttp, and each stream has a connection of its own. Writes queue in
order, so whoever must never wait behind a thousand binds (``leader``) takes a client of its own.
Bodies are never compressed: the API server's CPU is the scarcest of all.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

import aiohttp
import msgspec
from aiohttp.connector import AddrInfoType, SocketFactoryType
from yarl import URL

from quorate import __version__
from quorate.shell.kube.credentials import Credentials
from quorate.shell.kube.errors import (
    ApiError,
    TooLarge,
    Unreachable,
    error_from_response,
    status_class,
)
from quorate.shell.kube.fast import ConnectionPool
from quorate.shell.kube.fenced import FencedRequest, fenced
from quorate.shell.kube.paths import with_params

USER_AGENT: Final = f"quorate/{__version__}"
PatchKind = Literal["merge", "strategic", "json"]
Params = Mapping[str, str | int]

_CONTENT_TYPE: Final = "application/json"
_PATCH_TYPES: Final[dict[PatchKind, str]] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
_READ_CONNECTIONS_MAX: Final = 16
READ_BYTES_MAX: Final = 256 * 1024 * 1024
"""The most that one answer may have; ``watching`` asks for smaller pages beyond it."""
_STREAM_BUFFER_BYTES: Final = 8 * 1024 * 1024
_NETWORK_ERRORS: Final = (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError)
_ENCODER: Final = msgspec.json.Encoder()


class ByteStream:
    """The body of a long answer, as it comes."""

    __slots__ = ("_content", "_name")

    def __init__(self, content: aiohttp.StreamReader, name: str) -> None:
        self._content = content
        self._name = name

    async def read(self) -> bytes:
        """Return all bytes that are there, at least one; ``b""`` at the end of a whole body.

        Raises Unreachable: the connection broke, or was silent for too long.
        """
        try:
            return await self._content.readany()
        except _NETWORK_ERRORS as error:
            raise _unreachable(self._name, error) from error


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
        self._name = f"{url.host}:{url.port}"
        self._origin = str(url.origin())
        self._path_prefix = url.raw_path.rstrip("/")  # some proxies put each cluster under a path
        self._host_header = url.raw_authority
        self._timeout_s = timeout_s
        self._identity_headers: dict[str, str] | None = None
        self._identity_lines = b""
        self._reads = self._session(_READ_CONNECTIONS_MAX, None)
        self._slow_writes = self._session(write_connections_max, None)
        self._slow_slots = asyncio.Semaphore(write_connections_max)  # a wait here is no timeout
        self._streams = self._session(0, _large_buffer_socket)
        # The pool knows the usual way through a proxy; aiohttp knows the others too.
        self._writes = None
        proxy = URL(credentials.proxy_url) if credentials.proxy_url else None
        if proxy is None or (proxy.scheme == "http" and credentials.tls is not None):
            self._writes = ConnectionPool(
                url.host,
                url.port,
                tls=self._tls if credentials.tls is not None else None,
                server_hostname=credentials.tls_server_name,
                proxy=proxy,
                connections_max=write_connections_max,
                timeout_s=timeout_s,
            )

    async def get(self, path: str, params: Params | None = None) -> bytes:
        """Read an object or a list."""
        target = self._path_prefix + with_params(path, params)
        return await self._request_by_aiohttp("GET", target, b"", None)

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
        return await self._write("POST", path, params, body, _CONTENT_TYPE, may_send)

    async def put(self, path: str, body: object, params: Params | None = None) -> bytes:
        """Replace."""
        return await self._write("PUT", path, params, body, _CONTENT_TYPE)

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
        return await self._write("DELETE", path, params, body, _CONTENT_TYPE, may_send)

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
        except _NETWORK_ERRORS as error:
            raise self._unreachable(error) from error
        try:
            if response.status != 200:
                raise self._refusal(response.status, await _body(response), response.headers)
            yield ByteStream(response.content, self._name)
        finally:
            response.close()  # the rest of a stream is of no use, nor is its connection

    async def close(self) -> None:
        """Close all connections; what is under way fails with ``Unreachable``."""
        if self._writes is not None:
            await self._writes.close()
        await self._reads.close()
        await self._slow_writes.close()
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
            async with self._slow_slots:
                with fenced(may_send):
                    return await self._request_by_aiohttp(
                        method, target, body, content_type, self._slow_writes
                    )
        headers = await self._credentials.headers()
        if headers is not self._identity_headers:  # they change about once an hour
            self._identity_lines = self._common_header_lines(headers)
            self._identity_headers = headers
        if not _is_safe_target(target):
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
        if 200 <= response.status < 300:
            return response.body
        raise self._error(response.status, response.body, response.retry_after)

    async def _request_by_aiohttp(
        self,
        method: str,
        target: str,
        body: bytes,
        content_type: str | None,
        session: aiohttp.ClientSession | None = None,
    ) -> bytes:
        headers = await self._credentials.headers()
        if content_type is not None:
            headers = {**headers, "Content-Type": content_type}
        try:
            async with (session or self._reads).request(
                method,
                URL(self._origin + target, encoded=True),
                data=body or None,
                headers=headers,
                ssl=self._credentials.tls or True,
                allow_redirects=False,
                proxy=self._credentials.proxy_url,
                server_hostname=self._credentials.tls_server_name,
            ) as response:
                answer = await _body(response)
        except _NETWORK_ERRORS as error:
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
        return _unreachable(self._name, error)

    def _refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
        return self._error(status, body, headers.get("Retry-After"))

    def _error(self, status: int, body: bytes, retry_after: str | bytes | None) -> ApiError:
        if status == 401:
            self._credentials.invalidate()
        self.on_error(status_class(status))
        return error_from_response(status, self._credentials.redacted(body), retry_after)

    def _common_header_lines(self, headers: Mapping[str, str]) -> bytes:
        """Return the header lines that all writes share, and the empty line after them."""
        lines = {
            "Host": self._host_header,
            "User-Agent": USER_AGENT,
            "Accept": _CONTENT_TYPE,
            **headers,
        }
        for name, value in lines.items():
            if not value.isprintable() or not value.isascii():
                raise ValueError(f"header {name} holds characters that HTTP forbids")
        return "".join(f"{n}: {v}\r\n" for n, v in lines.items()).encode("ascii") + b"\r\n"

    def _session(
        self, connections_max: int, socket_factory: SocketFactoryType | None
    ) -> aiohttp.ClientSession:
        """Return a session that adds nothing of its own: no cookies, no proxy from the env."""
        connector = aiohttp.TCPConnector(
            limit=connections_max,
            keepalive_timeout=60,  # see fast._IDLE_S_MAX
            socket_factory=socket_factory,
        )
        return aiohttp.ClientSession(
            connector=connector,
            request_class=FencedRequest,
            headers={
                "User-Agent": USER_AGENT,
                "Accept": _CONTENT_TYPE,
                "Accept-Encoding": "identity",
            },
            skip_auto_headers=["Content-Type"],
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            read_bufsize=_STREAM_BUFFER_BYTES if connections_max == 0 else 2**18,
        )


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Return all of it. Raises TooLarge: it has more than ``READ_BYTES_MAX``."""
    chunks, size_bytes = [], response.content_length or 0
    if size_bytes <= READ_BYTES_MAX:
        size_bytes = 0
        async for chunk in response.content.iter_any():
            size_bytes += len(chunk)
            chunks.append(chunk)
            if size_bytes > READ_BYTES_MAX:
                break
        else:
            return b"".join(chunks)
    response.close()  # the rest is not read, nor is its connection of use
    raise TooLarge(f"an answer of more than {READ_BYTES_MAX // 2**20} MiB")


def _is_safe_target(target: str) -> bool:
    """Tell whether it is one word of printable ASCII: nothing in it can end the request line."""
    return target.isascii() and target.isprintable() and " " not in target


def _unreachable(name: str, error: BaseException) -> Unreachable:
    # A connection that was never made is the one case in which surely nothing was processed.
    never_sent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    text = str(error) or type(error).__name__
    return Unreachable(f"{name}: {text}", maybe_processed=not never_sent)


def _large_buffer_socket(address: AddrInfoType) -> socket.socket:
    """Return a socket that holds much unread, because the API server drops slow watchers.

    A fixed size switches off the kernel's own tuning, so it is only set if the kernel grants a
    size that is worth it: on hosts with the usual limit of 208 KiB the tuning does better.
    """
    family, kind, protocol, _, _ = address
    created = socket.socket(family=family, type=kind, proto=protocol)
    if _granted_buffer_bytes_max() >= _STREAM_BUFFER_BYTES // 4:
        created.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _STREAM_BUFFER_BYTES)
    return created


def _granted_buffer_bytes_max() -> int:
    try:
        return int(Path("/proc/sys/net/core/rmem_max").read_text())
    except (OSError, ValueError):
        return 0
