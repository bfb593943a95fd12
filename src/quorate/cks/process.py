"""The process that keeps nodes as the rules say: ``quorate cks-nodes``.

In: rules and credentials. Out: one of its replicas keeps the nodes (``nodes``), the others wait for
its Lease and watch nothing. Health and metrics are on a port of its own.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import uuid
from collections import Counter
from collections.abc import Iterable

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quorate.cks.nodes import CONTROLLER, WORKERS, Nodes
from quorate.cks.rules import Rules
from quorate.shell.configuration.config import Config
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.identity.credentials import Credentials
from quorate.shell.lease.elector import Elector
from quorate.shell.lease.leadership import LeaseLostError
from quorate.shell.process.clock import SteadyClock, SystemClock
from quorate.shell.serve.health import HealthServer

log = structlog.get_logger(__name__)


class _NothingToHandOver:
    """What the elector asks a scheduler for; all that we know is on the nodes."""

    scheduler_names: tuple[str, ...] = ()

    async def journal(self, found: str) -> str:
        del found
        return ""

    def stuck_s(self) -> float:
        return 0.0


class Process(Collector):
    """One replica. As a ``Collector`` it gives its numbers to the page of metrics."""

    def __init__(self, rules: Rules, credentials: Credentials, namespace: str) -> None:
        self._rules = rules
        self._credentials = credentials
        clock = SystemClock()
        self._clock = SteadyClock(clock)
        self._identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:10]}"
        self._nodes: Nodes | None = None
        self._elector = Elector(
            lambda: KubeClient(credentials, write_connections_max=1),
            namespace=namespace,
            name=CONTROLLER,
            identity=self._identity,
            clock=clock,
            chance=random.Random(self._identity).random,
            core=_NothingToHandOver(),
        )

    async def run(self, stop: asyncio.Event, port: int) -> None:
        """Serve, and keep the nodes while we lead, until ``stop`` is set.

        Raises ServeError: the port cannot be used. Raises LeaseLostError.
        """
        registry = CollectorRegistry()
        registry.register(self)
        pages = HealthServer(
            Config.default().health_host,
            port,
            registry=registry,
            unready_reason=self._unready_reason,
            note=lambda: self._elector.status.note(leads=self._leads()),
        )
        await pages.start()
        log.info("started", identity=self._identity, health_port=pages.port)
        term = asyncio.create_task(self._elector.run(self._lead, self._lost))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([stopping, term], return_when=asyncio.FIRST_COMPLETED)
            if term.done():
                term.result()
                raise LeaseLostError(f"the lease was lost: {self._elector.status.why_lost}")
        finally:
            stopping.cancel()
            term.cancel()
            await asyncio.gather(term, return_exceptions=True)
            await pages.close()
        log.info("stopped")

    def collect(self) -> Iterable[Metric]:
        """Return the numbers of now."""
        leader = GaugeMetricFamily("quorate_cks_leader", "Whether this replica keeps the nodes.")
        leader.add_metric([], float(self._leads()))
        yield leader
        held = GaugeMetricFamily(
            "quorate_cks_nodes", "Nodes of the life-cycle, by what is wrong.", labels=["reason"]
        )
        writes = CounterMetricFamily(
            "quorate_cks_node_writes", "Writes of nodes, by their end.", labels=["end"]
        )
        if self._nodes is not None:
            for reason, count in Counter(self._nodes.reasons.values()).items():
                held.add_metric([reason or "Kept"], count)
            for end, count in self._nodes.writes.items():
                writes.add_metric([end.lower()], count)
        yield held
        yield writes

    async def _lead(self) -> None:
        log.info("leading")
        async with KubeClient(self._credentials, write_connections_max=WORKERS) as client:
            self._nodes = Nodes(
                client,
                self._rules,
                may_write=self._leads,
                clock=self._clock,
                instance=self._identity,
            )
            await self._nodes.run()

    def _lost(self) -> None:
        log.error("lost the lease", reason=self._elector.status.why_lost)

    def _leads(self) -> bool:
        return self._elector.is_leader(self._clock.monotonic_s())

    def _unready_reason(self) -> str | None:
        leads = self._leads()
        reflector = self._nodes.reflector if self._nodes is not None else None
        if leads and reflector is not None and not reflector.is_synced:
            error = reflector.last_error
            return f"the nodes are not known: {error.message if error else 'they are being listed'}"
        return self._elector.status.unready_reason(leads=leads)
