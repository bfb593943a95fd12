"""Leader election by a Lease. In: a client and the Lease's name. Out: whether we may act.

Run by ``leadership``: in a thread of its own (``thread``) or, in simulated time, in the core's
loop. Commit asks ``is_leader`` before each bind, from any thread. The rules are those of
client-go's ``leaderelection``, so that other implementations and ``kubectl`` understand our Lease.
The holder's clock is never believed: a Lease is free when this process has seen it unchanged for
its duration.

Fencing: a leader counts from the moment at which its last successful renewal was *sent*, a rival
from the moment at which it *saw* that renewal, which is later. As ``renew_deadline_s`` is shorter
than ``lease_duration_s``, the leader has stopped before a rival may begin.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec

from quorate.dialects.common.fields import format_micro_time
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError, Conflict, NotFound
from quorate.shell.kube.paths import resource_path
from quorate.shell.lease import record
from quorate.shell.lease.status import LeaseStatus, Verb, core_is_stuck, failure_of, timed_out
from quorate.shell.process.clock import Clock

_JITTER: Final = 1.2  # client-go's JitterFactor: standbys do not all ask at once
_RELEASE_S_MAX: Final = 5.0
_LOOK_S: Final = 0.25  # a standby reads the Lease every 0.25 to 0.5 s
_LOOK_S_MIN: Final = 0.01


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long a Lease lasts and how often it is renewed. Defaults: client-go's."""

    lease_duration_s: int = 15
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        """Raises ValueError: a rival could start before the leader has stopped."""
        if not self.lease_duration_s > self.renew_deadline_s > self.retry_s * _JITTER:
            raise ValueError(
                f"leader election needs lease_duration_s ({self.lease_duration_s}) > "
                f"renew_deadline_s ({self.renew_deadline_s:g}) > "
                f"{_JITTER} x retry_s ({self.retry_s:g})"
            )


class Core(Protocol):
    """What the elector asks of the core for which it holds the Lease."""

    scheduler_names: tuple[str, ...]
    """The values of ``spec.schedulerName`` that it owns; the Lease says so."""

    async def journal(self, found: str) -> str:
        """Return the journal to write, given the one that the Lease has now (``found``)."""
        ...

    def stuck_s(self) -> float:
        """Return for how long the core has not turned, in seconds; 0 unless that is too long."""
        ...


class Elector:
    """One candidate for one Lease. Give it a client of its own: a renewal must not queue."""

    def __init__(
        self,
        connect: Callable[[], KubeClient],
        *,
        namespace: str,
        name: str,
        identity: str,
        clock: Clock,
        chance: Callable[[], float],
        core: Core,
        times: LeaseTimes = LeaseTimes(),  # noqa: B008  frozen
    ) -> None:
        """``identity`` must be unique to this process; ``chance`` returns numbers in [0, 1).

        ``connect`` makes a client, in the loop that calls ``run``, for one term.
        """
        self._connect = connect
        self._client: KubeClient
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._clock = clock
        self._chance = chance
        self._core = core
        self._times = times
        self._collection_path = resource_path("coordination.k8s.io", "v1", "leases", namespace)
        self._path = f"{self._collection_path}/{resource_path('', 'v1', name).split('/')[-1]}"
        self._observed: record.Lease = {}
        self._observed_at_s = 0.0
        self._lead_until_s = -1.0  # monotonic
        self._verb: Verb = "get"  # what is being tried
        self.status = LeaseStatus(identity, f"{namespace}/{name}")
        self.last_error: ApiError | None = None

    def is_leader(self, now_s: float) -> bool:
        """Tell whether we may still act at ``now_s``, of the monotonic clock; from any thread.

        It turns False by itself when no renewal succeeds, even if nothing else runs any more.
        """
        return now_s < self._lead_until_s

    async def run(
        self, on_started: Callable[[], Awaitable[None]], on_lost: Callable[[], object]
    ) -> None:
        """Wait for the Lease, run ``on_started`` while we hold it, return after one term.

        When the Lease is lost: ``on_lost`` is called at once, then ``on_started`` is cancelled and
        awaited. When ``run`` is cancelled, or ``on_started`` ends: the Lease is given back after
        ``on_started`` has ended, so that a successor need not wait, and never works beside us.
        What ``on_started`` raises is raised again. A core that is stuck neither takes the Lease nor
        renews it.
        """
        client = self._client = self._connect()
        try:
            await self._take()
            await self._one_term(asyncio.ensure_future(on_started()), on_lost)
        finally:
            await client.close()

    async def _take(self) -> None:
        """Wait until we hold the Lease; when cancelled, give it back if it may be ours."""
        try:
            while not await self._try_within(self._times.renew_deadline_s):
                await asyncio.sleep(self._standby_s())
        except asyncio.CancelledError:
            if self._verb != "get":  # our write may have arrived, though its answer has not
                self._observed = {}
                await self._release()
            raise

    async def _one_term(self, term: asyncio.Future[None], on_lost: Callable[[], object]) -> None:
        try:
            await self._renew_until_over(term)
            if not term.done():
                self._lead_until_s = -1.0
                self.status.lost(self._times.renew_deadline_s)
                on_lost()
                await _cancelled(term)
        except Exception:
            self._lead_until_s = -1.0  # a defect of ours: the Lease runs out while the work ends
            raise
        finally:
            if not term.done():  # we were cancelled
                await _cancelled(term)
            if self.is_leader(self._clock.monotonic_s()):
                await self._release()
        if not term.cancelled():
            term.result()

    async def _renew_until_over(self, term: asyncio.Future[None]) -> None:
        """Renew until ``term`` has ended or we lead no more."""
        now_s = tried_at_s = self._clock.monotonic_s()
        while not term.done() and self.is_leader(now_s):
            try_at_s = tried_at_s + self._times.retry_s
            await asyncio.wait([term], timeout=max(0.0, try_at_s - now_s))
            if not term.done():
                tried_at_s = self._clock.monotonic_s()
                left_s = self._lead_until_s - tried_at_s
                if left_s > 0.0:
                    # A dead connection may cost one try; another is due while we still lead.
                    await self._try_within(min(left_s, self._times.renew_deadline_s / 2))
            now_s = self._clock.monotonic_s()

    def _standby_s(self) -> float:
        """Return when to try again to become the leader.

        A Lease is free when it has not changed for its duration *since we saw it*. A standby that
        looked only every ``retry_s`` would see the last change late, and take over late. So it
        looks more often, and exactly when the Lease runs out. After an error it waits for
        ``retry_s``.
        """
        wait_s = self._times.retry_s * (1 + _JITTER * self._chance())
        if self.last_error is not None or not self.status.holder:
            return wait_s
        left_s = self._expires_s(record.spec_of(self._observed)) - self._clock.monotonic_s()
        return min(wait_s, _LOOK_S * (1 + self._chance()), max(left_s, _LOOK_S_MIN))

    async def _try_within(self, limit_s: float) -> bool:
        """Acquire or renew once; ``status`` has the error, and the next try follows."""
        stuck_s = self._core.stuck_s()
        if stuck_s > 0.0:
            self.status.failed(core_is_stuck("update", stuck_s))
            return False
        try:
            async with asyncio.timeout(limit_s):
                held = await self._acquire_or_renew()
        except TimeoutError:
            found = timed_out(limit_s, self._verb, self._namespace, self._name)
            self.status.failed(found)
            return False
        except ApiError as error:
            self.last_error = error
            self.status.failed(failure_of(error, self._verb, self._namespace, self._name))
            if isinstance(error, Conflict | NotFound):
                self._observed = {}  # someone else wrote: look before the next write
            return False
        self.last_error = None
        self.status.worked()
        return held

    async def _acquire_or_renew(self) -> bool:
        sent_at_s = self._clock.monotonic_s()
        if self.is_leader(sent_at_s) and self._observed:
            lease = self._observed  # the fast way: one write, no read
        else:
            self._verb = "get"
            try:
                lease = record.decoded(await self._client.get(self._path))
            except NotFound:
                return await self._create(sent_at_s)
            self._observe(lease)
        spec = record.spec_of(lease)
        ours = record.is_held_by(spec, self._identity)
        if record.holder_of(spec) and not ours and self._is_valid(spec):
            self._lead_until_s = -1.0
            return False
        changes = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._times.lease_duration_s,
            "renewTime": format_micro_time(self._clock.now_s()),
        }
        if not ours:
            changes["acquireTime"] = changes["renewTime"]
            changes["leaseTransitions"] = record.next_transition(spec)
        lease = {**await self._annotated(lease), "spec": {**spec, **changes}}
        return self._lead(await self._put(lease), sent_at_s)

    async def _create(self, sent_at_s: float) -> bool:
        now = format_micro_time(self._clock.now_s())
        self._verb = "create"
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": self._namespace, "name": self._name},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": self._times.lease_duration_s,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }
        named = record.with_scheduler_names(lease, self._core.scheduler_names)
        return self._lead(await self._client.post(self._collection_path, named), sent_at_s)

    async def _put(self, lease: record.Lease) -> bytes:
        self._verb = "update"
        return await self._client.put(self._path, record.encoded(lease))

    async def _release(self) -> None:
        """Give the Lease back; if that fails it runs out by itself."""
        self._lead_until_s = -1.0
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(_RELEASE_S_MAX):
                # The resourceVersion is that of our last renewal: a successor is not disturbed.
                if self._observed and await self._is_given_back(self._observed):
                    return
                # A renewal that was cut short may have arrived.
                lease = record.decoded(await self._client.get(self._path))
                if record.is_held_by(record.spec_of(lease), self._identity):
                    await self._is_given_back(lease)

    async def _is_given_back(self, lease: record.Lease) -> bool:
        """Give back this version of the Lease; return whether it is the newest."""
        spec = {
            **record.spec_of(lease),
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": format_micro_time(self._clock.now_s()),
        }
        try:
            await self._put({**await self._annotated(lease), "spec": spec})
        except Conflict:
            return False
        self.status.saw("")
        return True

    async def _annotated(self, lease: record.Lease) -> record.Lease:
        """Return the Lease with what its next version says of open attempts, and what we own."""
        journal = await self._core.journal(record.journal_of(lease))
        named = record.with_scheduler_names(lease, self._core.scheduler_names)
        return record.with_journal(named, journal)

    def _lead(self, answer: bytes, sent_at_s: float) -> bool:
        """Take the answer to a write; return whether it says that we hold the Lease.

        Raises ServerError: it says nothing that can be read. Then the next try looks first.
        """
        self._observed, unseen = {}, self._observed
        lease = record.decoded(answer)
        self._observed = unseen
        self._observe(lease)
        if not record.is_held_by(record.spec_of(lease), self._identity):
            return False
        self._lead_until_s = sent_at_s + self._times.renew_deadline_s
        return True

    def _observe(self, lease: record.Lease) -> None:
        """Remember the Lease, and when we first saw it say what it says."""
        if record.spec_of(lease) != record.spec_of(self._observed) or not self._observed:
            self._observed_at_s = self._clock.monotonic_s()
        self._observed = lease
        self.status.saw(record.holder_of(record.spec_of(lease)))

    def _is_valid(self, spec: dict[str, Any]) -> bool:
        return self._clock.monotonic_s() < self._expires_s(spec)

    def _expires_s(self, spec: dict[str, Any]) -> float:
        """Return when the Lease is free, on the monotonic clock, if it is not renewed."""
        return self._observed_at_s + record.duration_s_of(spec, self._times.lease_duration_s)


async def _cancelled(task: asyncio.Future[None]) -> None:
    """Cancel a task and wait until it has really ended; what it raises is in the task."""
    task.cancel()
    await asyncio.wait([task])
