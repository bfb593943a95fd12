"""A small blocking client of the Kubernetes API: one keep-alive connection for each thread.

In: a bearer token. Out: decoded JSON, or ApiError. Called by ``cluster``, tests and benchmarks.
"""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_IDLE_S_MAX = 30.0
"""A connection that was idle for longer is opened anew: the server may be about to close it."""


class ApiError(RuntimeError):
    """The API server refused a request."""

    def __init__(self, method: str, path: str, status: int, body: bytes) -> None:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = {"message": body.decode(errors="replace")[:500]}
        self.status = status  #: the HTTP status code
        self.reason = str(answer.get("reason", ""))  #: such as ``AlreadyExists``
        self.message = str(answer.get("message", ""))
        super().__init__(f"{method} {path}: {status} {self.reason}: {self.message}")


class _Connection(http.client.HTTPSConnection):
    """Closes itself when its thread is gone: no ResourceWarning in tests that use pools."""

    def __del__(self) -> None:
        self.close()


class ApiClient:
    """Talks to one API server as one user; safe to share between threads."""

    def __init__(self, server: str, ca: Path, token: str) -> None:
        self.server = server
        self.token = token
        self._ca = ca
        self._context: ssl.SSLContext | None = None
        self._local = threading.local()

    def api(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | list[Any] | None = None,
        *,
        content_type: str = "application/json",
        timeout_s: float = 30,
    ) -> dict[str, Any]:
        """Send one request and decode the answer; raise ApiError for a status of 400 and above."""
        data = None if body is None else json.dumps(body).encode()
        answer = self._request(method, path, data, content_type, timeout_s)
        decoded: dict[str, Any] = json.loads(answer) if answer else {}
        return decoded

    def text(self, path: str, *, timeout_s: float = 30) -> str:
        """GET something that is not JSON, such as /readyz or /metrics."""
        return self._request("GET", path, None, "application/json", timeout_s).decode()

    def is_ready(self) -> bool:
        """Tell whether /readyz says so."""
        try:
            return self.text("/readyz", timeout_s=5) == "ok"
        except (OSError, http.client.HTTPException, ApiError):
            return False

    def forget_connections(self) -> None:
        """Have every thread connect anew; for when the server is stopped."""
        self._local = threading.local()

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def _request(
        self, method: str, path: str, data: bytes | None, content_type: str, timeout_s: float
    ) -> bytes:
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json, */*"}
        if data is not None:
            headers["Content-Type"] = content_type
        reused = getattr(self._local, "connection", None) is not None
        try:
            status, body = self._exchange(method, path, data, headers, timeout_s)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
            # The server closed an idle connection. What changes things is not sent twice: it may
            # have arrived.
            if not reused or method != "GET":
                raise
            status, body = self._exchange(method, path, data, headers, timeout_s)
        if status >= http.client.BAD_REQUEST:
            raise ApiError(method, path, status, body)
        return body

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], timeout_s: float
    ) -> tuple[int, bytes]:
        if time.monotonic() - getattr(self._local, "used_s", 0.0) > _IDLE_S_MAX:
            self.close()
        connection = getattr(self._local, "connection", None) or self._connect()
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        try:
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            body = response.read()
            self._local.used_s = time.monotonic()
            return response.status, body
        except BaseException:
            self.close()
            raise

    def _connect(self) -> _Connection:
        if self._context is None:
            self._context = ssl.create_default_context(cafile=str(self._ca))
        address = urlsplit(self.server)
        assert address.hostname is not None, f"{self.server} is no URL with a host"
        connection = _Connection(address.hostname, address.port, context=self._context)
        self._local.connection = connection
        return connection
