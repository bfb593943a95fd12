"""One request as data, and a client that gives the whole answer: code, headers, body."""

import contextlib
import http.client
import json
import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tools.controlplane import Access

ANSWER_TIMEOUT_S = 20
NO_ANSWER = 0
"""In place of a status code: the server closed the connection, as a real one does in a panic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent. A body of bytes goes as it is, any other as JSON; None: no body."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def url(self) -> str:
        path = quote(self.path, safe="/:")
        return f"{path}?{urlencode(self.query)}" if self.query else path

    @property
    def raw(self) -> bytes | None:
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body).encode()

    def __str__(self) -> str:
        """A line that can be pasted into a report, and read."""
        extra = ""
        if self.content_type != "application/json" and self.body is not None:
            extra += f" [{self.content_type}]"
        if self.accept != "application/json":
            extra += f" [Accept: {self.accept}]"
        body = "" if self.raw is None else f" {self.raw.decode(errors='replace')}"
        return f"{self.method} {self.url}{extra}{body}"


@dataclass(slots=True, kw_only=True)
class Answer:
    """What came back; ``body`` is decoded JSON, or text when it is none."""

    code: int
    body: Any
    warnings: list[str] = field(default_factory=list)
    media: str = ""

    @property
    def is_error(self) -> bool:
        return self.code >= http.client.BAD_REQUEST


class Server:
    """Sends requests to one cluster as its administrator."""

    def __init__(self, cluster: Access) -> None:
        address = urlsplit(cluster.server)
        self._host, self._port = address.hostname, address.port
        self._context = ssl.create_default_context(cafile=str(cluster.ca))
        self._token = cluster.admin_token
        self._connection = self._connect()

    def close(self) -> None:
        self._connection.close()

    def _reconnect(self) -> None:
        self._connection.close()
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._host, self._port, context=self._context, timeout=ANSWER_TIMEOUT_S
        )

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": request.accept,
            "User-Agent": "before-first-apply/1",
        }
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return headers

    def ask(self, request: Request) -> Answer:
        """Send a request and return its answer."""
        try:
            response, raw = self._exchange(request)
        except (http.client.HTTPException, ConnectionError):
            # A server may close a connection after a refusal: what it refused did nothing.
            self._reconnect()
            try:
                response, raw = self._exchange(request)
            except (http.client.HTTPException, ConnectionError):
                self._reconnect()
                return Answer(code=NO_ANSWER, body=None)
        return Answer(
            code=response.status,
            body=_decoded(raw),
            warnings=response.headers.get_all("Warning") or [],
            media=(response.headers.get("Content-Type") or "").partition(";")[0],
        )

    def _exchange(self, request: Request) -> tuple[http.client.HTTPResponse, bytes]:
        self._connection.request(
            request.method, request.url, body=request.raw, headers=self._headers(request)
        )
        response = self._connection.getresponse()
        return response, response.read()

    def watch(self, request: Request, last_name: str) -> Answer:
        """Read events until one is of the object ``last_name``; the body is the list of events."""
        connection = self._connect()
        try:
            connection.request("GET", request.url, headers=self._headers(request))
            response = connection.getresponse()
            if response.status >= http.client.BAD_REQUEST:
                return Answer(code=response.status, body=_decoded(response.read()))
            return Answer(code=response.status, body=_events(response, last_name))
        finally:
            connection.close()


def _events(response: http.client.HTTPResponse, last_name: str) -> list[Any]:
    events: list[Any] = []
    with contextlib.suppress(ssl.SSLError):  # a server may hang up instead of ending the stream
        while line := response.readline():
            events.append(json.loads(line))
            if events[-1]["type"] == "ERROR" or _name_in(events[-1]["object"]) == last_name:
                break
    return events


def _name_in(obj: dict[str, Any]) -> str:
    if obj.get("kind") == "Table":
        obj = (obj["rows"] or [{}])[0].get("object") or {}
    return str(obj.get("metadata", {}).get("name", ""))


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw.decode(errors="replace")
