"""The loop of a running scheduler: observe changes, decide, hand on the plan; at its own pace.

In: changes from watches and from writers. Out: verified plans. Run by ``app``. Each step is short:
changes are observed in slices, and the core limits the time of a decision itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

import structlog

from quorate.core.model import GangKey
from quorate.core.model.changes import AnyChange, BindFailed
from quorate.core.model.plan import Plan
from quorate.core.scheduler import Scheduler
from quorate.shell.process.clock import Clock, SteadyClock
from quorate.shell.process.contained import contained
from quorate.shell.process.heartbeat import Heartbeat
from quorate.shell.process.memory import YoungCollector
from quorate.shell.recording.recorder import Recorder
from quorate.shell.report.incidents import Incidents
from quorate.shell.report.metrics import Metrics

log = structlog.get_logger(__name__)

_LOOK_AGAIN_S = 0.25
_CYCLE_S_MIN = 0.005
_ASK_AGAIN_S = 0.001
_SLICE_CHANGES_MAX = 500
"""Changes that are observed in one slice: about 20 ms, at 40 us for a new pod."""

Observer = Callable[[Sequence[AnyChange]], None]


class Loop:
    """Calls the core, which knows no time and no tasks."""

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        steady: SteadyClock,
        *,
        heartbeat: Heartbeat,
        metrics: Metrics,
        recorder: Recorder,
        incidents: Incidents,
        memory: YoungCollector | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._steady = steady
        self._heartbeat = heartbeat
        self._metrics = metrics
        self._recorder = recorder
        self._incidents = incidents
        self._memory = memory
        self._inbox: list[AnyChange] = []
        self._news = asyncio.Event()
        self._paced_until_s = 0.0
        self._failures_put = 0
        self._failures_observed = 0

    # News

    def put(self, change: AnyChange) -> None:
        """Queue a change for the next turn."""
        self._heartbeat.beat()  # a long list is progress, although the loop does not turn
        self._inbox.append(change)
        self._failures_put += isinstance(change, BindFailed)
        self._news.set()

    def put_all(self, changes: Iterable[AnyChange]) -> None:
        """Queue changes for the next turn. No ``BindFailed`` may be among them."""
        self._inbox += changes
        self._news.set()

    async def failures_observed(self) -> None:
        """Wait until the core has observed each failed bind that was queued so far."""
        put = self._failures_put
        while self._failures_observed < put:
            await asyncio.sleep(_ASK_AGAIN_S)

    def wake(self) -> None:
        """Begin a turn, even without changes."""
        self._news.set()

    # Turns

    async def run(
        self,
        *,
        observers: Sequence[Observer],
        leads: Callable[[], bool],
        may_decide: Callable[[], bool],
        ready: Callable[[], None],
        commit: Callable[[Plan], None],
        touch: Callable[[Iterable[GangKey]], None],
    ) -> None:
        """Turn until cancelled.

        ``observers`` get changes before the core does. ``ready`` is called before each decision,
        ``commit`` with each verified plan, ``touch`` with the gangs that may have to be reported.
        """
        wake_at_s: float | None = None
        while True:
            await self._wait_for_news(wake_at_s)
            await self._keep_pace()
            self._news.clear()
            await self._observe(observers)
            if not may_decide():
                # No change announces that we may: an empty list is none. So ask again soon.
                wake_at_s = self._steady.now_s() + _LOOK_AGAIN_S if leads() else None
                continue
            await self._take_checkpoint()
            if not may_decide():  # the lease may be lost by now
                wake_at_s = self._steady.now_s() + _LOOK_AGAIN_S
                continue
            with self._contained("observe", "before a decision"):
                ready()
            plan, is_sound = self._decide()
            with self._contained("commit", "a plan"):
                commit(plan)
            with self._contained("report", "touched gangs"):
                touch(plan.touched)
            wake_at_s = plan.wake_at_s if is_sound else self._steady.now_s()

    async def _wait_for_news(self, until_s: float | None) -> None:
        """Wait for news, or until ``until_s`` of the steady clock.

        Beat meanwhile: we are not stuck.
        """
        while True:
            self._heartbeat.beat()
            left_s = math.inf if until_s is None else max(0.0, until_s - self._steady.now_s())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, self._heartbeat.every_s)):
                    await self._news.wait()
                return
            if left_s <= self._heartbeat.every_s:
                return

    async def _keep_pace(self) -> None:
        """Wait a moment while changes keep coming: a decision costs more than a change."""
        now_s = self._clock.monotonic_s()
        early_s = max(0.0, self._paced_until_s - now_s)
        await asyncio.sleep(early_s)  # also for 0 s: other tasks run between two turns
        now_s += early_s
        self._paced_until_s = now_s + _CYCLE_S_MIN

    async def _observe(self, observers: Sequence[Observer]) -> None:
        """Observe the queued changes, in slices. Other tasks run between two slices."""
        changes, self._inbox = self._inbox, []
        for start in range(0, len(changes), _SLICE_CHANGES_MAX):
            if start:
                await asyncio.sleep(0)
            batch = changes[start : start + _SLICE_CHANGES_MAX]
            await self._take_checkpoint()
            for observer in observers:
                with self._contained("observe", observer.__qualname__):
                    observer(batch)
            self._heartbeat.beat()
            self._scheduler.observe(batch)
            if self._failures_observed < self._failures_put:
                self._failures_observed += sum(isinstance(one, BindFailed) for one in batch)
            if self._memory is not None:
                self._memory.changed(len(batch))
            self._heartbeat.beat()

    async def _take_checkpoint(self) -> None:
        """Let the recorder take a checkpoint if one is due. Other tasks run between its slices."""
        for _ in self._recorder.checkpoint_slices():
            self._heartbeat.beat()
            await asyncio.sleep(0)

    def _contained(self, stage: str, about: str) -> AbstractContextManager[None]:
        return contained(self._scheduler.note_defect, stage, about)

    def _decide(self) -> tuple[Plan, bool]:
        """Return what to do, verified, and whether all of the plan passed verification."""
        with self._metrics.decide_s.time():
            now_s = self._steady.now_s()
            self._recorder.deciding(now_s)
            plan = self._scheduler.decide(now_s)
            self._recorder.planned(plan)
            self._heartbeat.beat()
            plan, problems = self._scheduler.verified(plan)
            self._recorder.verified(plan, problems)
        self._metrics.cycles.inc()
        with self._contained("report", "incidents"):
            self._incidents.report(self._scheduler.incidents())
        for problem in problems:
            self._metrics.unverified.inc()
            log.error("a plan failed verification and was not sent", problem=problem)
        return plan, not problems
