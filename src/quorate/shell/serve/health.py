"""Health and metrics over HTTP. In: a registry and a reason not to be ready. Out: three pages.

Run by ``health_thread`` beside the core; asked by kubelets and Prometheus. Nothing else is served:
no debug pages, no listing, nothing that writes. Whoever reaches the port can take little from us: a
connection is for one request and for a few seconds, their number is bounded, and the newest come
first, so that a kubelet is heard while somebody holds many.
"""

import errno
import logging
from collections.abc import Callable
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from quorate.core.words.plain_text import plain
from quorate.shell.serve.bounded_http import (
    BoundedServer,
    ServeError,
    listening_everywhere,
    text_answer,
)

_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics"})
CONNECTIONS_MAX: Final = 64
CONNECTION_S_MAX: Final = 15.0
"""From its first byte to the last of its answer; Prometheus itself gives up after 10 s."""


class HealthError(ServeError):
    """The pages cannot be served; the one line says why and what to do."""


class HealthServer:
    """Answers /healthz, /readyz and /metrics. ``start`` it, and ``close`` it."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        registry: CollectorRegistry,
        unready_reason: Callable[[], str | None],
        note: Callable[[], str] = lambda: "",
        stuck_s: Callable[[], float] = lambda: 0.0,
        connection_s_max: float = CONNECTION_S_MAX,
    ) -> None:
        """``host`` may mean all addresses (``0.0.0.0``, ``::`` or empty): those of both families.

        ``unready_reason`` returns None when we are ready; port 0 means any free one.

        ``note`` returns what else there is to know then, a second line of the page, or nothing.
        ``stuck_s`` returns for how long the core has not turned, 0 unless that is too long.
        ``connection_s_max`` bounds the life of each connection.
        """
        self._host = host
        self._port = port
        self._registry = registry
        self._unready_reason = unready_reason
        self._note = note
        self._stuck_s = stuck_s
        self._connection_s_max = connection_s_max
        self._runner: web.ServerRunner | None = None
        self.port = port  # the real one, after ``start``

    async def start(self) -> None:
        """Listen.

        Raises HealthError: the address cannot be used.
        """
        # A plain server, without a router: three paths do not need one.
        server = BoundedServer(
            self._answer, connections_max=CONNECTIONS_MAX, connection_s_max=self._connection_s_max
        )
        runner = web.ServerRunner(server)
        await runner.setup()
        try:
            listening = listening_everywhere(self._host, self._port)
            if listening is None:
                await web.TCPSite(runner, self._host, self._port).start()
            else:
                await web.SockSite(runner, listening).start()
        except OSError as error:
            await runner.cleanup()
            raise HealthError(self._explain(error)) from error
        self._runner = runner
        self.port = runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        try:
            answer = self._page(request)
        except Exception:  # aiohttp would say so to a logger that we silence
            logging.getLogger(__name__).exception("the page %s failed", request.path)
            answer = text_answer(500, "this page failed; the log says why\n")
        answer.headers["Server"] = "quorate"
        answer.force_close()
        return answer

    def _page(self, request: web.BaseRequest) -> web.Response:
        if request.path not in _PATHS:
            return text_answer(404, "not found: only /healthz, /readyz and /metrics are here\n")
        if request.method not in {"GET", "HEAD"}:
            answer = text_answer(405, "only GET is allowed\n")
            answer.headers["Allow"] = "GET, HEAD"
            return answer
        if request.path == "/metrics":
            return web.Response(
                body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
            )
        stuck_s = self._stuck_s()
        if stuck_s > 0.0:
            return text_answer(503, f"the core has not turned for {stuck_s:.0f} s\n")
        if request.path == "/healthz":
            return text_answer(200, "ok\n")
        reason = self._unready_reason()
        if reason is not None:
            return text_answer(503, f"{plain(reason)}\n")
        note = self._note()
        return text_answer(200, f"ok\n{plain(note)}\n" if note else "ok\n")

    def _explain(self, error: OSError) -> str:
        where = f"{self._host or '*'}:{self._port}"
        if error.errno == errno.EADDRINUSE:
            return (
                f"cannot serve health and metrics on {where}: the port is in use; stop the other "
                f"process (`ss -ltnp sport = :{self._port}` shows it) or configure another port"
            )
        reason = error.strerror or error
        return (
            f"cannot serve health and metrics on {where}: {reason}; configure another host or port"
        )
