"""All controllers, and how keys that are due are reconciled, a slice at a time.

In: an ``Api``, a clock. ``step`` needs no event loop, so tests and simulations drive it by hand;
``run`` is for the process that serves requests.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Hashable, Iterator

import structlog

from pocketkube.api.api import Api
from pocketkube.api.background import Recorder, WorkQueue
from pocketkube.controllers.base import Controller, Shared
from pocketkube.controllers.claims.pod_claims import DeviceClaims, EphemeralVolumes
from pocketkube.controllers.claims.volume_binding import VolumeBinding, VolumeProtection
from pocketkube.controllers.jobs.cron_jobs import CronJobs
from pocketkube.controllers.jobs.jobs import Jobs
from pocketkube.controllers.pod_table import PodTable
from pocketkube.controllers.upkeep.disruption import DisruptionBudgets
from pocketkube.controllers.upkeep.garbage import GarbageCollector
from pocketkube.controllers.upkeep.namespaces import Namespaces, QuotaUsage, ServiceAccounts
from pocketkube.controllers.upkeep.node_lifecycle import NodeLifecycle, TaintEviction
from pocketkube.controllers.upkeep.pod_garbage import EventExpiry, PodGarbage, PodGroupProtection
from pocketkube.controllers.workloads.daemon_sets import DaemonSets
from pocketkube.controllers.workloads.deployments import Deployments
from pocketkube.controllers.workloads.replicas import ReplicaSets
from pocketkube.controllers.workloads.stateful_sets import StatefulSets
from pocketkube.store.store import Event


def every_controller(shared: Shared) -> list[Controller]:
    """Make all controllers."""
    return [
        ServiceAccounts(shared),
        Deployments(shared),
        ReplicaSets(shared),
        StatefulSets(shared),
        DaemonSets(shared),
        Jobs(shared),
        CronJobs(shared),
        DisruptionBudgets(shared),
        PodGroupProtection(shared),
        EphemeralVolumes(shared),
        VolumeBinding(shared),
        VolumeProtection(shared),
        DeviceClaims(shared),
        EventExpiry(shared),
        QuotaUsage(shared),
        NodeLifecycle(shared),
        TaintEviction(shared),
        PodGarbage(shared),
        Namespaces(shared),
        GarbageCollector(shared),
    ]


_log = structlog.get_logger(__name__)

Item = tuple[Controller, Hashable]

UNITS_PER_STEP = 48
"""Writes, roughly, of one step: at 100 to 200 microseconds each, requests wait less than 10 ms."""
_UNITS_PER_TURN = 8
_BACKOFF_FIRST_S = 0.05
_BACKOFF_MAX_S = 30.0


class Manager:
    """Runs the controllers. Make one when the store is loaded and before anything is written."""

    def __init__(self, api: Api, clock: Callable[[], float]) -> None:
        """Watch the store. ``clock`` gives seconds for delays."""
        self._clock = clock
        self._queue: WorkQueue[Item] = WorkQueue(clock)
        self._running: deque[tuple[Item, Iterator[None]]] = deque()
        self._active: set[Item] = set()
        self._again: set[Item] = set()
        self._failures: dict[Item, int] = {}
        self._woken = asyncio.Event()
        self._queue.on_add = self._woken.set
        self.pods = PodTable()
        shared = Shared(api=api, pods=self.pods, recorder=Recorder(api), queue=self._queue)
        self.controllers = every_controller(shared)
        self._watch(api)

    def _watch(self, api: Api) -> None:
        everywhere = [c for c in self.controllers if c.everything]
        by_bucket: dict[str, list[Controller]] = {}
        for controller in self.controllers:
            for bucket in controller.buckets:
                by_bucket.setdefault(bucket, []).append(controller)
        listening: dict[str, list[Callable[[Event], None]]] = {}
        for bucket in {"pods", *by_bucket, *api.store.buckets()}:
            chosen = (*by_bucket.get(bucket, ()), *everywhere)
            listening[bucket] = [controller.on_event for controller in chosen]
        listening["pods"].insert(0, self.pods.on_event)
        _tell_what_is_there(api, listening)
        api.store.watch("pods", self.pods.on_event)
        self.pods.listeners.extend(c.on_pod for c in self.controllers if c.pods_matter)
        for bucket, watching in by_bucket.items():
            for controller in watching:
                api.store.watch(bucket, controller.on_event)
        for controller in everywhere:
            api.store.watch_all(controller.on_event)
        for controller in self.controllers:
            controller.start()

    def step(self) -> float | None:
        """Do a slice of what is due; return after how many seconds to call again (None: never).

        Never raises: what fails is logged, and tried again later and later.
        """
        units = UNITS_PER_STEP
        now_s = self._clock()
        while units > 0:
            item = self._queue.pop(now_s)
            if item is not None:
                units -= 1
                self._begin(item)
            elif not self._running:
                break
            if self._running:
                units -= self._advance(min(units, _UNITS_PER_TURN))
        if self._running:
            return 0.0
        next_s = self._queue.next_s()
        return None if next_s is None else max(0.0, next_s - now_s)

    async def run(self) -> None:
        """Step for ever, until the task is cancelled."""
        while True:
            self._woken.clear()
            delay_s = self.step()
            if delay_s == 0:
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._woken.wait()

    def _begin(self, item: Item) -> None:
        if item in self._active:
            self._again.add(item)  # one key is never in two hands
            return
        controller, key = item
        try:
            work = controller.reconcile(key)
        except Exception as error:
            self._failed(item, error)
            return
        if work is None:
            self._failures.pop(item, None)
            return
        self._active.add(item)
        self._running.append((item, work))

    def _advance(self, units: int) -> int:
        """Go on with one piece of work for some units; return how many were used."""
        item, work = self._running.popleft()
        for used in range(units):
            try:
                next(work)
            except StopIteration:
                self._failures.pop(item, None)
                self._finish(item)
                return used + 1
            except Exception as error:
                self._finish(item)
                self._failed(item, error)
                return used + 1
        self._running.append((item, work))
        return max(units, 1)

    def _finish(self, item: Item) -> None:
        self._active.discard(item)
        if item in self._again:
            self._again.discard(item)
            self._queue.add(item)

    def _failed(self, item: Item, error: Exception) -> None:
        controller, key = item
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        delay_s = min(_BACKOFF_FIRST_S * 2**failures, _BACKOFF_MAX_S)
        _log.warning(
            "a controller will try again",
            controller=type(controller).__name__,
            key=key,
            delay_s=delay_s,
            error=repr(error),
        )
        self._queue.add(item, delay_s)


def _tell_what_is_there(api: Api, listening: dict[str, list[Callable[[Event], None]]]) -> None:
    """Tell of all that is stored, as if it were new."""
    # Pods first: what is said of owners after them refers to their pods.
    for bucket in sorted(api.store.buckets(), key=lambda name: name != "pods"):
        for entry in api.store.entries(bucket):
            event = Event("ADDED", bucket, entry, None)
            for tell in listening[bucket]:
                tell(event)
