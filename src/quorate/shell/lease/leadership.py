"""Whether this replica leads: the shell's one view of the lease.

In: the configuration and a way to the API server. Out: whether we may write, and why we do not
lead. Owned by ``app``, whose work it runs while the lease is held. It also decides whether the
lease has a thread of its own.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import structlog

from quorate.shell.configuration.config import Config
from quorate.shell.kube.client import KubeClient
from quorate.shell.lease.elector import Elector, LeaseTimes
from quorate.shell.lease.handover import Handover
from quorate.shell.lease.thread import LeaseThread
from quorate.shell.process.clock import Clock
from quorate.shell.process.heartbeat import Heartbeat
from quorate.shell.report.metrics import Metrics

log = structlog.get_logger(__name__)


class LeaseLostError(Exception):
    """The lease was lost, for the reason that it says: this process has to start afresh."""


class Leadership:
    """Leads while the lease is held, or always where there is no leader election."""

    def __init__(
        self,
        config: Config,
        connect: Callable[[], KubeClient],
        *,
        identity: str,
        clock: Clock,
        handover: Handover,
        heartbeat: Heartbeat,
        metrics: Metrics,
        in_thread: bool,
    ) -> None:
        """Prepare. ``connect`` makes the lease's own client, in the loop that renews the lease.

        ``in_thread``: renew in a thread of its own. Else in the loop of ``run``: simulated time has
        one loop only.
        """
        election = config.leader_election
        self.scheduler_names = config.policy.scheduler_names
        self._is_enabled = election.enabled
        self._clock = clock
        self._metrics = metrics
        self.leads = False
        """Whether our work as the leader is under way. Ask ``may_write`` before a write."""
        self._handover = handover
        self.stuck_s = heartbeat.stuck_s
        self._elector = Elector(
            connect,
            namespace=election.namespace,
            name=election.name,
            identity=identity,
            clock=clock,
            chance=random.Random(f"{identity} lease").random,
            core=self,
            times=LeaseTimes(
                lease_duration_s=int(election.lease_duration_s),
                renew_deadline_s=election.renew_deadline_s,
                retry_s=election.retry_period_s,
            ),
        )
        self._thread = LeaseThread(self._elector) if in_thread else None
        self._status = self._elector.status
        self._status.on_error = lambda kind: metrics.lease_errors.labels(kind).inc()

    def may_write(self) -> bool:
        """Tell whether we may write now.

        A leader that cannot renew stops before a rival may start.
        """
        if not self._is_enabled:
            return self.leads
        return self.leads and self._elector.is_leader(self._clock.monotonic_s())

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait until we lead, then run ``work``; return when it has ended.

        Raises LeaseLostError: the lease was lost, and ``work`` was cancelled and has ended.
        """

        async def as_leader() -> None:
            log.info("leading")
            self.leads = True
            self._metrics.is_leader.set(1)
            try:
                await work()
            finally:
                self._metrics.is_leader.set(0)

        if not self._is_enabled:
            await as_leader()
            return
        await (self._thread or self._elector).run(as_leader, self._on_lost)
        raise LeaseLostError(f"the lease was lost: {self._status.why_lost or 'it was given back'}")

    async def journal(self, found: str) -> str:
        """Return what the Lease shall say of open attempts. Called in the loop that renews it.

        It does not wait for a busy core: then the journal is that of the core's last turn.
        """
        if self._thread is None:
            self._handover.hand_over()
        else:
            await self._thread.ask(self._handover.hand_over)
        return self._handover.journal(found)

    def unready_reason(self) -> str | None:
        """Return why we neither lead nor stand by, with a hint. None: we do one of them."""
        return self._status.unready_reason(leads=self._holds()) if self._is_enabled else None

    def note(self) -> str:
        """Return who leads, if another replica does; else nothing."""
        return self._status.note(leads=self._holds()) if self._is_enabled else ""

    def _holds(self) -> bool:
        return self._elector.is_leader(self._clock.monotonic_s())

    def _on_lost(self) -> None:
        self.leads = False
        log.error("lost the lease", reason=self._status.why_lost)
