"""Health and metrics over HTTP. In: a registry and a reason not to be ready. Out: three pages.

Started by ``shell.app``; asked by kubelets and Prometheus. Nothing else is served: no debug pages,
no listing, nothing that writes.
"""

import errno
from collections.abc import Callable
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

_TEXT: Final = "text/plain; charset=utf-8"
_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics"})


class HealthError(Exception):
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
    ) -> None:
        """``unready_reason`` returns None when we are ready; port 0 means any free one."""
        self._host = host
        self._port = port
        self._registry = registry
        self._unready_reason = unready_reason
        self._runner: web.ServerRunner | None = None
        self.port = port  # the real one, after ``start``

    async def start(self) -> None:
        """Listen.

        Raises HealthError: the address cannot be used.
        """
        # A plain server, without a router: three paths do not need one.
        runner = web.ServerRunner(web.Server(self._answer, access_log=None))
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
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
        if request.path not in _PATHS:
            return _text(404, "not found: only /healthz, /readyz and /metrics are here\n")
        if request.method not in {"GET", "HEAD"}:
            answer = _text(405, "only GET is allowed\n")
            answer.headers["Allow"] = "GET, HEAD"
            return answer
        if request.path == "/metrics":
            return web.Response(
                body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
            )
        # That this loop answers at all is what health means here.
        reason = self._unready_reason() if request.path == "/readyz" else None
        return _text(200, "ok\n") if reason is None else _text(503, f"{reason}\n")

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


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, body=text.encode(), headers={"Content-Type": _TEXT})
