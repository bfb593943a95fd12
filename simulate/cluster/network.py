"""Between a replica and the API server: requests, answers and streams, with what can go wrong.

In: calls of ``Connection``, which has the interface of ``shell.kube.client.KubeClient``. Out: bytes
or the shell's ``ApiError``, after a delay. A sent request arrives even if its sender has died or
given up by then, as on a real network.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import msgspec

from pocketkube import errors
from pocketkube.server.answers import encode
from pocketkube.store.store import Event
from quorate.shell.kube.client import KubeClient, Params, PatchKind
from quorate.shell.kube.connections.sessions import ByteStream
from quorate.shell.kube.errors import ApiError, Unreachable, error_from_response
from simulate.checkers.history import History
from simulate.cluster.server import Request, Server, query_of
from simulate.faults import Fate, Faults, StreamFate
from simulate.virtual_loop import VirtualLoop

_REASONS = {
    409: ("Conflict", "the object has been modified; please apply your changes to the latest"),
    429: ("TooManyRequests", "too many requests, please try again later"),
    500: ("InternalError", "etcdserver: request timed out"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
}
_RETRY_AFTER_S = 1


class Link:
    """One replica's end: whether it lives, and the last revision it received, by path."""

    def __init__(self, name: str, on_killed: Callable[[], None]) -> None:
        self.name = name
        self.is_alive = True
        self.is_cut_off = False
        self.told: dict[str, int] = {}
        self.kill = on_killed
        self.steps = 0
        """Steps of its newest decision."""


class Watcher(Protocol):
    """Who checks requests."""

    def on_sent(self, link: Link, request: Request, blow: str) -> None:
        """A replica sends a request now, to which ``blow`` will happen."""

    def on_answered(self, link: Link, request: Request, error: ApiError | None) -> None:
        """A replica has its answer."""


class Network:
    """All links and the one server."""

    def __init__(self, loop: VirtualLoop, server: Server, faults: Faults, history: History) -> None:
        self.loop = loop
        self.server = server
        self.faults = faults
        self.history = history
        self.is_out = False
        self.watchers: list[Watcher] = []
        self.streams: dict[EventStream, None] = {}

    def cut_streams(self, link: Link | None = None) -> None:
        """Break all watches, or those of one replica."""
        for stream in list(self.streams):
            if link is None or stream.link is link:
                stream.finish("cut")

    async def request(self, link: Link, request: Request) -> tuple[bytes, int]:
        """Send a request; return the answer and the server's revision. Raises ApiError."""
        if not link.is_alive:
            raise Unreachable("this process is dead")
        fate = self.faults.fate(link.name, request, self.loop.now_s)
        answer: asyncio.Future[tuple[bytes, int]] = self.loop.create_future()
        if fate.kills == "unsent":
            link.kill()
            return await answer
        for watcher in self.watchers:
            watcher.on_sent(link, request, _words(fate))
        if fate.blow == "late":
            self.loop.call_later(fate.out_s, _deliver, answer, Unreachable("connection reset"))
            self.loop.call_later(
                fate.out_s + fate.back_s + 0.05, self._arrive, link, request, fate, answer
            )
        else:
            self.loop.call_later(fate.out_s, self._arrive, link, request, fate, answer)
        if fate.kills == "sent":
            link.kill()
        try:
            found = await answer
        except ApiError as error:
            self._tell_answer(link, request, error)
            raise
        self._tell_answer(link, request, None)
        return found

    def _tell_answer(self, link: Link, request: Request, error: ApiError | None) -> None:
        """Report an answer to the watchers, unless the replica is dead."""
        if link.is_alive:
            for watcher in self.watchers:
                watcher.on_answered(link, request, error)

    def _arrive(
        self, link: Link, request: Request, fate: Fate, answer: asyncio.Future[tuple[bytes, int]]
    ) -> None:
        """Let the server answer the request, unless it is lost on its way."""
        outcome: tuple[bytes, int] | ApiError
        if self.is_out or link.is_cut_off or fate.blow == "dropped":
            outcome = Unreachable("connection refused", maybe_processed=fate.blow == "dropped")
        elif fate.blow == "refused":
            outcome = _refusal(fate.status)
        else:
            outcome = self._carry_out(link, request, was_given_up=answer.done())
            if fate.blow == "lost":
                outcome = Unreachable("the connection was closed before an answer")
        if fate.kills == "done":
            link.kill()
        self.loop.call_later(fate.back_s, _deliver, answer, outcome)

    def _carry_out(
        self, link: Link, request: Request, *, was_given_up: bool
    ) -> tuple[bytes, int] | ApiError:
        history = self.history
        history.writer, history.writes_late = link.name, was_given_up or not link.is_alive
        try:
            return self.server.answer(request), self.server.api.store.revision
        except ApiError as error:
            return error
        finally:
            history.writer, history.writes_late = "", False


def _words(fate: Fate) -> str:
    return f"{fate.blow} {fate.status or ''} {fate.kills or ''}".strip()


def _deliver(
    answer: asyncio.Future[tuple[bytes, int]], outcome: tuple[bytes, int] | ApiError
) -> None:
    if answer.done():
        return
    if isinstance(outcome, ApiError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def _refusal(status: int) -> ApiError:
    reason, message = _REASONS[status]
    body = encode({"kind": "Status", "code": status, "reason": reason, "message": message})
    return error_from_response(status, body, str(_RETRY_AFTER_S) if status == 429 else None)


class EventStream(ByteStream):
    """A watch: lines in their order, each after the stream's lag, until it ends somehow."""

    __slots__ = (
        "_ended",
        "_fate",
        "_lines",
        "_network",
        "_new_lines",
        "_news",
        "_path",
        "_stop",
        "_watch",
        "link",
    )

    def __init__(self, network: Network, link: Link, path: str, params: Params | None) -> None:
        self._network = network
        self.link = link
        self._path = path
        self._fate: StreamFate = network.faults.stream_fate()
        self._news = asyncio.Event()
        self._lines: deque[tuple[float, int, bytes]] = deque()
        self._ended = ""
        server = network.server
        self._watch = server.watch(path, params or {})
        self._new_lines = self._watch.first_lines(query_of(params or {}))
        self._take_lines(server.api.store.revision)
        self._stop = server.api.store.watch(self._watch.resource.bucket, self._on_event)
        network.streams[self] = None
        if self._fate.lasts_s is not None:
            network.loop.call_later(self._fate.lasts_s, self._fail)

    async def read(self) -> bytes:
        """Return the lines that are due. Raises Unreachable: the stream was cut."""
        while True:
            if not self.link.is_alive:
                raise Unreachable("this process is dead")
            now_s = self._network.loop.now_s
            due = []
            while self._lines and self._lines[0][0] <= now_s:
                _, revision, line = self._lines.popleft()
                due.append(line)
                self.link.told[self._path] = revision
            if due:
                return b"".join(due)
            if self._ended == "end":
                return b""
            if self._ended == "cut":
                raise Unreachable("the connection was reset")
            self._news.clear()
            await self._news.wait()

    def finish(self, how: str) -> None:
        """End the stream now; what was under way is lost."""
        if not self._ended:
            self._ended = how
            self._lines.clear()
            self._news.set()
            self.close()

    def close(self) -> None:
        """Stop listening to the store."""
        self._stop()
        self._network.streams.pop(self, None)

    def _fail(self) -> None:
        """End as the fate says, unless it has ended."""
        if self._ended or not self._network.faults.on:
            return
        ending = self._fate.ending
        self._network.faults.counts[f"stream {ending}"] += 1
        if ending in ("cut", "end"):
            self.finish(ending)
            return
        self.close()
        self._ended = "end"
        last = self.link.told.get(self._path, 0)
        if ending == "torn" and self._lines:
            due_s, _, line = self._lines[0]
            self._lines.clear()
            self._lines.append((due_s, last, line[: len(line) // 2]))
            self._ended = "cut"
        elif ending in ("gone", "error"):
            error = errors.expired("too old resource version")
            if ending == "error":
                error = errors.ApiError(500, "InternalError", "etcd event received with no value")
            line = b'{"type":"ERROR","object":' + encode(error.status()) + b"}\n"
            self._lines.clear()
            # Later events are not sent: the next list has to make up for them.
            due_s = self._network.loop.now_s + (self._fate.silent_s if ending == "gone" else 0.0)
            self._lines.append((due_s, last, line))
            self._network.loop.call_at(due_s, self._news.set)
        self._news.set()

    def _on_event(self, event: Event) -> None:
        self._watch.on_event(event)
        self._take_lines(event.entry.revision)

    def _take_lines(self, revision: int) -> None:
        """Move the watch's pending lines to those under way."""
        if not self._new_lines:
            return
        line = b"".join(self._new_lines)
        self._new_lines.clear()
        if self._network.faults.repeats():
            line += line
        loop = self._network.loop
        due_s = loop.now_s + (self._fate.lag_s if self._network.faults.on else 0.002)
        if self._lines:
            due_s = max(due_s, self._lines[-1][0])
        self._lines.append((due_s, revision, line))
        loop.call_at(due_s, self._news.set)


class Connection(KubeClient):
    """What a replica holds in place of a client: its requests go through the simulated network."""

    def __init__(self, network: Network, link: Link) -> None:
        self._network = network
        self._link = link

    async def get(self, path: str, params: Params | None = None) -> bytes:
        """Read an object."""
        body, _ = await self._network.request(self._link, Request("GET", path, params or {}))
        return body

    async def get_list(self, path: str, params: Params | None = None) -> bytes:
        """Read one page of a list."""
        body, self._link.told[path] = await self._network.request(
            self._link, Request("GET", path, params or {})
        )
        return body

    async def post(
        self,
        path: str,
        body: object,
        params: Params | None = None,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> bytes:
        """Create; nothing waits here before it is sent."""
        del may_send
        return await self._send("POST", path, params, body)

    async def put(self, path: str, body: object, params: Params | None = None) -> bytes:
        """Replace."""
        return await self._send("PUT", path, params, body)

    async def patch(
        self,
        path: str,
        body: object,
        kind: PatchKind,
        params: Params | None = None,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> bytes:
        """Change a part."""
        del may_send
        return await self._send("PATCH", path, params, body, kind)

    async def delete(
        self,
        path: str,
        body: object = None,
        params: Params | None = None,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> bytes:
        """Delete."""
        del may_send
        return await self._send("DELETE", path, params, body)

    def warm(self, count: int) -> None:
        """There are no connections to open."""

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, params: Params | None, *, silence_s_max: float
    ) -> AsyncIterator[ByteStream]:
        """Open a watch; it begins when the request has arrived."""
        del silence_s_max  # the simulation itself cuts silent streams
        network = self._network
        await network.request(self._link, Request("GET", path, {"limit": 1}))
        stream = EventStream(network, self._link, path, params)
        try:
            yield stream
        finally:
            stream.close()

    async def close(self) -> None:
        """There is nothing to close."""

    async def _send(
        self, method: str, path: str, params: Params | None, body: object, kind: str = ""
    ) -> bytes:
        if body is None:
            body = b""
        elif not isinstance(body, bytes):
            body = msgspec.json.encode(body)
        request = Request(method, path, params or {}, body, kind)
        answer, _ = await self._network.request(self._link, request)
        return answer
