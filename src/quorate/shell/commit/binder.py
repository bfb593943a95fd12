"""Bind gangs. In: ``GangBinds``. Out: one outcome for each bind, as a change, sooner or later.

Called by ``committer`` with plans that passed verification. The binds of a gang are sent at once,
over a bounded number of connections, each with its pod's uid; nothing else is written before them.
The binds that make the gang quorate wait until the others have succeeded, and mark their pods as
started. So the next leader can tell a gang that was bound in part from one that has lost members
since. Before each try of such a bind ``may_complete`` is asked, because another member may be gone.
A bind is not idempotent and has no transaction: if an answer is lost, the pod is read back. Only
the holder of the lease sends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import structlog

from quorate.core.model.changes import BindFailed, BindFailure, PodBound
from quorate.core.model.journal import entry_of
from quorate.core.model.plan import Bind, GangBinds
from quorate.shell.annotations import ATTEMPT, ATTEMPT_SIZE, GANG, STARTED
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    Unreachable,
    is_gone,
)
from quorate.shell.kube.objects import PodObject
from quorate.shell.kube.paths import pod_path
from quorate.shell.kube.writer import TRANSIENT, Backoff
from quorate.shell.process.clock import Clock
from quorate.shell.process.contained import Note, words_of

log = structlog.get_logger(__name__)

_YOUNG_S = 10.0


class _Job(NamedTuple):
    bind: Bind
    gang: GangBinds
    completing: bool  # makes the gang quorate, and marks the pod as started


@dataclass(slots=True)
class _Attempt:
    """The binds of one attempt of a gang that are under way or wait."""

    under_way: int = 0
    waiting: list[_Job] = field(default_factory=list)
    failed: bool = False  # since it last had nothing under way


_POD = msgspec.json.Decoder(PodObject)
_ENCODER = msgspec.json.Encoder()


class Binder:
    """Sends binds over at most ``concurrency`` requests at a time, in the order of the plans."""

    def __init__(
        self,
        client: KubeClient,
        *,
        concurrency: int,
        on_change: Callable[[PodBound | BindFailed], None],
        may_bind: Callable[[], bool],
        may_complete: Callable[[GangBinds, str], Awaitable[bool]],
        clock: Clock,
        note: Note,
    ) -> None:
        self._client = client
        self._concurrency = concurrency
        self._on_change = on_change
        self._may_bind = may_bind
        self._may_complete = may_complete
        self._clock = clock
        self._note = note
        self._jobs: deque[_Job] = deque()
        self._attempts: dict[str, _Attempt] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self.idle = asyncio.Event()
        """Set while no bind is under way. Reports wait for it."""
        self.idle.set()
        self.retries = 0
        self._busy_since_s = 0.0
        self._away_at_s = -_YOUNG_S  # when the API server last gave no answer

    def submit(self, gang: GangBinds) -> None:
        """Start to bind a gang; returns at once."""
        if self.idle.is_set():
            self._busy_since_s = self._clock.monotonic_s()
        self.idle.clear()
        attempt = self._attempts.setdefault(gang.attempt, _Attempt())
        if gang.started:
            # Replacements wait for nothing. But if all that runs is lost, the gang starts anew.
            attempt.under_way += len(gang.binds)
            self._start(_Job(bind, gang, completing=True) for bind in gang.binds)
            return
        attempt.under_way += gang.first
        attempt.failed = False  # this plan already replaces what failed
        # The waiting binds of an earlier plan do not seal any more: the last of this plan does.
        earlier, attempt.waiting = attempt.waiting, []
        attempt.under_way += len(earlier)
        self._start(job._replace(completing=False) for job in earlier)
        attempt.waiting += [_Job(bind, gang, completing=True) for bind in gang.binds[gang.first :]]
        self._start(_Job(bind, gang, completing=False) for bind in gang.binds[: gang.first])
        self._release(gang.attempt, attempt)

    def _start(self, jobs: Iterable[_Job]) -> None:
        self._jobs.extend(jobs)
        for _ in range(min(len(self._jobs), self._concurrency - len(self._workers))):
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._ended)

    def _release(self, key: str, attempt: _Attempt) -> None:
        """Send the waiting binds once no other is under way.

        After a failure, report them as not sent.
        """
        if attempt.under_way:
            return
        waiting, attempt.waiting = attempt.waiting, []
        failed, attempt.failed = attempt.failed, False
        if not waiting:
            self._attempts.pop(key, None)
        elif failed:
            del self._attempts[key]
            for job in waiting:
                bind = job.bind
                self._on_change(BindFailed(bind.uid, bind.node, BindFailure.NOT_SENT))
        else:
            attempt.under_way = len(waiting)
            self._start(waiting)

    def _settled(self, job: _Job, outcome: PodBound | BindFailed) -> None:
        self._on_change(outcome)
        attempt = self._attempts.get(job.gang.attempt)
        if attempt is not None:
            attempt.under_way -= 1
            attempt.failed |= isinstance(outcome, BindFailed)
            self._release(job.gang.attempt, attempt)

    async def close(self) -> None:
        """Send nothing more; wait up to 5 s for the answers that are due."""
        self._jobs.clear()
        if self._workers:
            await asyncio.wait(self._workers, timeout=5.0)
        for worker in self._workers:
            worker.cancel()

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not self._workers and not self._jobs:
            self.idle.set()
            busy_s = round(self._clock.monotonic_s() - self._busy_since_s, 3)
            log.debug("binds settled", seconds=busy_s, retries=self.retries)
        if not worker.cancelled() and worker.exception() is not None:
            log.error("a bind worker failed", exc_info=worker.exception())

    async def _work(self) -> None:
        while self._jobs:
            job = self._jobs.popleft()
            if not self._may_bind():
                continue  # a successor decides about this pod, from what it finds
            outcome = await self._outcome(job)
            if outcome is not None:
                self._settled(job, outcome)

    async def _outcome(self, job: _Job) -> PodBound | BindFailed | None:
        """Bind one pod, and have an outcome also where that meets a defect of ours."""
        bind, about = job.bind, f"pod {job.bind.namespace}/{job.bind.name}"
        try:
            return await self._bind(job)
        except Exception as error:
            self._note("commit", about, error)
            words = words_of(error)
        try:
            return await self._read_back(bind, words, BindFailure.REFUSED)
        except Exception as error:
            self._note("commit", about, error)
            return BindFailed(bind.uid, bind.node, BindFailure.TIMEOUT, words)

    async def _bind(self, job: _Job) -> PodBound | BindFailed | None:
        """Bind one pod.

        Retries transient errors until the attempt's deadline. None: we lead no more.
        """
        bind = job.bind
        path = pod_path(bind.namespace, bind.name, "binding")
        body = _ENCODER.encode(_binding(job))
        backoff = Backoff()
        in_doubt = False  # an answer was lost: the pod may be bound
        while self._may_bind():
            if job.completing and not await self._may_complete(job.gang, bind.uid):
                return await self._not_bound(bind, "", BindFailure.NOT_SENT, in_doubt)
            try:
                await self._client.post(path, body, may_send=self._may_bind)
            except (Conflict, NotFound) as error:  # a proxy may answer 404 to everything
                return await self._read_back(bind, error.message, BindFailure.REFUSED)
            except ApiError as error:
                if error.is_namespace_going:  # and the pod with it: another try is useless
                    return BindFailed(bind.uid, bind.node, BindFailure.GONE)
                if not self._passes(error):
                    message = error.message
                    return await self._not_bound(bind, message, BindFailure.REFUSED, in_doubt)
                in_doubt |= isinstance(error, ServerError | Unreachable)
                self.retries += 1
                if self._clock.now_s() >= job.gang.deadline_s:
                    return await self._read_back(bind, error.message, BindFailure.TIMEOUT)
                await backoff.wait(error)
            else:
                return PodBound(bind.uid, bind.node)
        return None

    async def _not_bound(
        self, bind: Bind, message: str, failure: BindFailure, in_doubt: bool
    ) -> PodBound | BindFailed | None:
        """Return the failure. If an earlier try may have arrived, read the pod back first."""
        if in_doubt:
            return await self._read_back(bind, message, failure)
        return BindFailed(bind.uid, bind.node, failure, message)

    def _passes(self, error: ApiError) -> bool:
        """Tell whether to try again. An API server that has just started answers 403 at first."""
        now_s = self._clock.monotonic_s()
        if isinstance(error, Unreachable):
            self._away_at_s = now_s
        is_young = now_s < self._away_at_s + _YOUNG_S
        return isinstance(error, TRANSIENT) or (isinstance(error, Forbidden) and is_young)

    async def _read_back(
        self, bind: Bind, message: str, otherwise: BindFailure
    ) -> PodBound | BindFailed | None:
        """Read the pod and return the outcome; ``otherwise`` is the failure if it has no node.

        Without an answer the pod stays assumed: nobody else may get its resources.
        """
        backoff = Backoff()
        while self._may_bind():
            try:
                pod = _POD.decode(await self._client.get(pod_path(bind.namespace, bind.name)))
            except ApiError as error:
                if is_gone(error):
                    return BindFailed(bind.uid, bind.node, BindFailure.GONE)
                await backoff.wait(error)
                continue
            except msgspec.DecodeError:
                await backoff.wait(None)
                continue
            if pod.metadata.uid != bind.uid:
                return BindFailed(bind.uid, bind.node, BindFailure.GONE)
            if pod.spec.node_name == bind.node:
                return PodBound(bind.uid, bind.node)
            if pod.spec.node_name:
                return BindFailed(bind.uid, pod.spec.node_name, BindFailure.ELSEWHERE)
            return BindFailed(bind.uid, bind.node, otherwise, message)
        return None


def _binding(job: _Job) -> dict[str, object]:
    bind, gang, completing = job
    annotations = {
        ATTEMPT: gang.attempt,
        ATTEMPT_SIZE: str(gang.size),
        GANG: entry_of(gang.key),
    }
    if completing:
        annotations[STARTED] = "true"
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": bind.name,
            "namespace": bind.namespace,
            "uid": bind.uid,
            "annotations": annotations,
        },
        "target": {"kind": "Node", "name": bind.node},
    }
