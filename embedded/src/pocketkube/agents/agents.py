"""All kubelets of the cluster: pods start, run, end and go; nodes become ready, fail and recover.

In: events of the store, and time. Out: writes through ``api``. ``step`` does what is due and says
when it wants to be called again; ``run`` calls it for ever.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from pocketkube.agents.node_life import NodeLife
from pocketkube.agents.pods.pod_life import Key, PodLife
from pocketkube.agents.settings import Settings
from pocketkube.api.api import Api
from pocketkube.api.background import WorkQueue
from pocketkube.store.store import Event

_TURNS_BETWEEN_LOOKS = 16  # at the clock
_LOOKS_MAX = 1000  # in one step: even on a clock that stands still it comes to its end
_EVERYTHING = Settings()


class Agents:
    """The agents of all nodes, except those annotated ``quorate.dev/agent: none``.

    ``clock`` gives seconds that only ever grow, for durations (what is written into objects comes
    from ``api.now_s``). ``chance`` draws run times: the same seed, and the same pods in the same
    order, give the same times; without it the seed is 0.
    """

    def __init__(
        self,
        api: Api,
        clock: Callable[[], float],
        settings: Settings = _EVERYTHING,
        chance: random.Random | None = None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._settings = settings
        self._due: WorkQueue[Key] = WorkQueue(clock)
        self._nodes = NodeLife(api, settings)
        self._pods = PodLife(
            api, settings, chance or random.Random(0), self._nodes.nodes, self._due
        )
        self._news_of_nodes: dict[str, bytes | None] = {}
        self._news_of_pods: dict[Key, bytes | None] = {}
        self._wake: asyncio.Event | None = None
        store = api.store
        self._unwatch = (
            store.watch("nodes", self._hear_of_node),
            store.watch("pods", self._hear_of_pod),
        )
        for entry in store.entries("nodes"):
            self._news_of_nodes[entry.name] = entry.raw
        for entry in store.entries("pods"):
            self._news_of_pods[entry.namespace, entry.name] = entry.raw

    def close(self) -> None:
        """Listen no longer."""
        for unwatch in self._unwatch:
            unwatch()

    async def run(self) -> None:
        """Step whenever something is due, until cancelled."""
        self._wake = asyncio.Event()
        while True:
            self._wake.clear()
            wait_s = self.step()
            if wait_s == 0:
                await asyncio.sleep(0)  # let others work
                continue
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def step(self) -> float | None:
        """Do what is due now, for about ``slice_s`` at most.

        Return in how many seconds to call again: 0 when there is more to do, None when only news
        can make something due.
        """
        now_s = self._clock()
        ends_s = now_s + self._settings.slice_s
        for _ in range(_LOOKS_MAX):
            for _ in range(_TURNS_BETWEEN_LOOKS):
                if not self._take_turn(now_s):
                    next_s = self._due.next_s()
                    return None if next_s is None else max(0.0, next_s - now_s)
            now_s = self._clock()
            if now_s >= ends_s:
                break
        return 0.0

    def _take_turn(self, now_s: float) -> bool:
        """Look at one node or pod; False when nothing is due."""
        if self._news_of_nodes:
            name = next(iter(self._news_of_nodes))
            node = self._nodes.changed(name, self._news_of_nodes.pop(name))
            if node is not None:
                self._pods.node_acts(name, now_s)
            return True
        if self._news_of_pods:
            key = next(iter(self._news_of_pods))
            self._pods.changed(key, self._news_of_pods.pop(key), now_s)
            return True
        due = self._due.pop(now_s)
        if due is not None:
            self._pods.look_at(due, now_s)
        return due is not None

    # News: called inside the writes of others, so that they only note what happened

    def _hear_of_node(self, event: Event) -> None:
        entry = event.entry
        self._news_of_nodes[entry.name] = None if event.type == "DELETED" else entry.raw
        if self._wake is not None:
            self._wake.set()

    def _hear_of_pod(self, event: Event) -> None:
        entry = event.entry
        key = (entry.namespace, entry.name)
        if key == self._pods.writing and event.type == "MODIFIED":
            self._pods.writing = None
            return
        if event.type == "DELETED":
            self._news_of_pods[key] = None
        else:
            self._news_of_pods[key] = entry.raw
        if self._wake is not None:
            self._wake.set()
