"""A pool of keep-alive connections for small requests. In: request bytes. Out: a ``Response``.

Used by ``client`` for writes, because a gang of a thousand pods is a thousand POSTs at once, and a
general HTTP client costs three times the CPU for each. It knows one host, no redirects, no cookies,
no proxy, no pipelining: one request at a time on each connection, so that an answer can never be
taken for another's. Whatever goes wrong ends in ``Unreachable``, once, and closes the connection;
nothing is retried here, because only the caller knows whether a second try is safe.

Times are those of the event loop, because its timers run on them.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable

from aiohappyeyeballs import start_connection

from quorate.shell.kube.connections.http1 import MalformedResponse, Response, ResponseParser
from quorate.shell.kube.errors import Unreachable, not_sent
from quorate.shell.kube.paths import address

_SWEEP_INTERVAL_S = 0.5
_CONNECT_TIMEOUT_S = 10.0
_NEXT_ADDRESS_S = 0.25
"""How long an address of several may be silent before the next is tried beside it (RFC 8305)."""
# kube-apiserver closes idle connections after 90 s. Closing them first avoids the race in which a
# request is written to a connection that the server has just closed.
_IDLE_S_MAX = 60.0


class _Exchange:
    """One request that waits for a connection or, on one, for its answer."""

    __slots__ = ("answer", "connection", "may_send", "payload", "since_s")

    def __init__(
        self,
        payload: bytes,
        answer: asyncio.Future[Response],
        since_s: float,
        may_send: Callable[[], bool] | None,
    ) -> None:
        self.payload = payload
        self.may_send = may_send
        self.answer = answer
        self.since_s = since_s  # when it began to wait, then when it was sent
        self.connection: _Connection | None = None

    def fail(self, message: str, cause: BaseException | None = None) -> None:
        if not self.answer.done():
            error = Unreachable(message, maybe_processed=self.connection is not None)
            error.__cause__ = cause
            self.answer.set_exception(error)


class _Connection(asyncio.Protocol):
    """One connection; ``exchange`` is what is under way on it."""

    def __init__(self, pool: "ConnectionPool", tls: ssl.SSLContext | None) -> None:
        self.pool = pool
        self.tls = tls
        self.parser = ResponseParser()
        self.exchange: _Exchange | None = None
        self.idle_since_s = 0.0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "of a stream"
        self.transport = transport
        self.pool.opened(self)

    def send(self, exchange: _Exchange, now_s: float) -> None:
        assert self.exchange is None, "one request at a time"
        exchange.connection = self
        exchange.since_s = now_s
        self.exchange = exchange
        self.transport.write(exchange.payload)

    def data_received(self, data: bytes) -> None:
        try:
            responses = self.parser.feed(data)
        except MalformedResponse as error:
            self.drop(f"{self.pool.name} sent no valid HTTP: {error}", error)
            return
        if self.exchange is None or len(responses) > 1:
            # More than was asked for: where the next answer starts is no longer certain.
            self.drop(f"{self.pool.name} sent an answer to no request")
            return
        if not responses:
            return
        exchange, self.exchange = self.exchange, None
        response = responses[0]
        if not exchange.answer.done():
            exchange.answer.set_result(response)
        if response.keep_alive and self.parser.is_clean:
            self.pool.reuse(self)
        else:
            self.drop("")

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop(f"{self.pool.name} closed the connection before it answered", exc)
        self.pool.lost(self)

    def drop(self, message: str, cause: BaseException | None = None) -> None:
        """Fail what is under way and close; the pool hears of it through ``connection_lost``."""
        exchange, self.exchange = self.exchange, None
        self.transport.abort()
        if exchange is not None:
            exchange.fail(message, cause)


class ConnectionPool:
    """Up to ``connections_max`` connections to one host; requests beyond that wait in order."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: Callable[[], ssl.SSLContext] | None,
        server_hostname: str | None = None,
        connections_max: int = 64,
        timeout_s: float = 30.0,
    ) -> None:
        """``tls`` gives the context of the day, None means plain http.

        A connection of an older context answers what it was asked, and is not used again.
        """
        self.name = address(host, port)
        self._address = (host, port)
        self._tls = tls
        self._server_hostname = server_hostname
        self._connections_max = connections_max
        self._timeout_s = timeout_s
        self._live: set[_Connection] = set()
        self._idle: list[_Connection] = []  # a stack: the last one used is the least likely closed
        self._waiting: deque[_Exchange] = deque()
        self._opening: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._last_answer_s = 0.0
        self._closed = False

    async def request(self, payload: bytes, may_send: Callable[[], bool] | None = None) -> Response:
        """Send one request, already in HTTP's form, and return its answer, whatever its status.

        ``may_send`` is asked when a connection is free, which may be long after the call: the
        request is not sent if it says no. Raises Unreachable: no complete answer came, or it was
        not sent. When cancelled, the connection is closed too.
        """
        if self._closed:
            raise Unreachable(f"the client of {self.name} is closed", maybe_processed=False)
        loop = asyncio.get_running_loop()
        exchange = _Exchange(payload, loop.create_future(), loop.time(), may_send)
        self._sweep_later()
        connection = self._take_idle()
        if connection is not None:
            if may_send is not None and not may_send():
                self._idle.append(connection)
                raise not_sent()
            connection.send(exchange, exchange.since_s)
        else:
            self._waiting.append(exchange)
            self._open_as_needed()
        try:
            return await exchange.answer
        except asyncio.CancelledError:
            # The answer may still come; nobody else may get it.
            if exchange.connection is not None and exchange.connection.exchange is exchange:
                exchange.connection.drop("")
            raise

    def warm(self, count: int) -> None:
        """Open connections ahead of ``count`` requests: handshakes cost more than requests."""
        wanted = min(count, self._connections_max) - len(self._live) - len(self._opening)
        if not self._closed:
            self._open(max(0, wanted))
            self._sweep_later()

    async def close(self) -> None:
        """Fail what is under way and close everything; returns when the sockets are closed."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        opening = list(self._opening)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        self._fail_waiting("the client was closed")
        for connection in list(self._live):
            connection.drop("the client was closed")
        while self._live:  # connection_lost is called within a few turns of the loop
            await asyncio.sleep(0)

    def opened(self, connection: _Connection) -> None:
        """Take in a new connection (with TLS: after the handshake)."""
        self._live.add(connection)
        if self._closed:
            connection.drop("")
        else:
            self.reuse(connection)

    def reuse(self, connection: _Connection) -> None:
        """Give a free connection the next request in the queue, or let it rest."""
        now_s = self._last_answer_s = asyncio.get_running_loop().time()
        if connection.tls is not self._context():
            connection.drop("")
            return
        while self._waiting:
            exchange = self._waiting.popleft()
            if exchange.answer.done():
                continue  # cancelled meanwhile
            if exchange.may_send is not None and not exchange.may_send():
                exchange.answer.set_exception(not_sent())
                continue
            connection.send(exchange, now_s)
            return
        connection.idle_since_s = now_s
        self._idle.append(connection)

    def lost(self, connection: _Connection) -> None:
        """Forget a closed connection, and open another if requests wait."""
        self._live.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._open_as_needed()

    def _take_idle(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.transport.is_closing():
                continue
            if connection.tls is self._context():
                return connection
            connection.drop("")
        return None

    def _context(self) -> ssl.SSLContext | None:
        return self._tls() if self._tls is not None else None

    def _open_as_needed(self) -> None:
        if self._closed:
            return
        room = self._connections_max - len(self._live) - len(self._opening)
        self._open(min(room, len(self._waiting) - len(self._opening)))

    def _open(self, count: int) -> None:
        for _ in range(count):
            task = asyncio.get_running_loop().create_task(self._open_one())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open_one(self) -> None:
        host, _ = self._address
        task = asyncio.current_task()
        assert task is not None
        tls = self._context()
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self, tls),
                    sock=await self._connected(),
                    ssl=tls,
                    server_hostname=(self._server_hostname or host) if tls else None,
                )
        except Exception as error:  # of sockets, TLS or name resolution: all mean the same here
            # Those that are open, or about to be, will serve the queue; the last to fail ends it.
            self._opening.discard(task)  # now: its callback runs when others have failed as well
            if not self._live and not self._opening:
                text = str(error) or type(error).__name__
                if isinstance(error, TimeoutError) and not error.errno:  # ours, not the kernel's
                    text = f"no answer from {self.name} within {_CONNECT_TIMEOUT_S:g} s"
                self._fail_waiting(f"cannot connect to {self.name}: {text}", error)

    async def _connected(self) -> socket.socket:
        """Return a socket that is connected to any of the host's addresses. Raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(*self._address, type=socket.SOCK_STREAM)
        # Not asyncio's own: cancelled amid a race, it forgets sockets that were just connected.
        return await start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS_S)

    def _sweep(self) -> None:
        """Time out what has waited too long: one timer for all, not one for each request."""
        now_s = asyncio.get_running_loop().time()
        oldest_s = now_s - self._timeout_s
        for connection in list(self._live):
            exchange = connection.exchange
            if exchange is not None and exchange.since_s < oldest_s:
                connection.drop(f"no answer from {self.name} within {self._timeout_s:g} s")
        # A long queue is not an error while answers come: a gang of 100,000 is bound for minutes.
        if self._last_answer_s < oldest_s:
            while self._waiting and self._waiting[0].since_s < oldest_s:
                self._waiting.popleft().fail(f"no connection to {self.name} became free")
        for connection in [c for c in self._idle if c.idle_since_s < now_s - _IDLE_S_MAX]:
            self._idle.remove(connection)
            connection.drop("")
        self._open_as_needed()
        self._sweeper = None
        if self._live or self._waiting or self._opening:
            self._sweep_later()

    def _sweep_later(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_INTERVAL_S, self._sweep)

    def _fail_waiting(self, message: str, cause: BaseException | None = None) -> None:
        while self._waiting:
            self._waiting.popleft().fail(message, cause)
