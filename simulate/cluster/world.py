"""A cluster for one run: an API with its resources, node agents, and the network around it.

In: a seed. Out: a ``World`` whose clock is the loop's. Data that does not depend on the seed, such
as the served resources, is created once in a process.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import random
from collections import Counter
from collections.abc import Callable
from importlib import resources as package_files

import yaml

from pocketkube.agents.agents import Agents
from pocketkube.agents.settings import Settings
from pocketkube.api.api import Api
from pocketkube.objects import Object
from pocketkube.registry.resources import Registry
from pocketkube.registry.rules.definitions import resources_of
from pocketkube.schema.document import Document
from pocketkube.schema.resource import Resource
from pocketkube.store.store import Event, Store
from quorate.core.model.policy import Policy
from simulate.checkers.history import History
from simulate.cluster.kinds import VOLCANO_POD_GROUPS
from simulate.cluster.network import Network
from simulate.cluster.server import Server
from simulate.faults import Faults, profile_of
from simulate.virtual_loop import VirtualLoop

EPOCH_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z
NAMESPACE = "default"
SYSTEM = "quorate-system"
_KUBELETS = Settings(start_s=0.1, removal_s=0.4)
_KUBELET_LAG_S = 0.3


class World:
    """The whole environment of the scheduler's replicas."""

    def __init__(self, seed: int, loop: VirtualLoop) -> None:
        self.seed = seed
        self.loop = loop
        self.store = Store()
        self.registry = Registry(served_resources())
        self.api = Api(
            self.store,
            self.registry,
            now_s=lambda: EPOCH_S + loop.now_s,
            chance=self.chance("names"),
        )
        self.history = History(self.store)
        profile = profile_of(self.chance("profile"))
        self.faults = Faults(profile, self.chance("faults"))
        self.network = Network(loop, Server(self.api), self.faults, self.history)
        self._digest = hashlib.sha256()
        self.writes = 0
        self.last_write_s = 0.0
        self.policy: Policy | None = None
        """The scheduler's policy; None means the simulation's default."""
        self.met: Counter[str] = Counter()
        """How often each situation of the run's themes occurred."""
        self.check: Callable[[str, bool, Callable[[], str]], None] = lambda *_: None
        """Counts a check of a promise, and notes a violation with a text when it does not hold."""
        self.store.watch_all(self._on_write)
        for name in (NAMESPACE, SYSTEM):
            self.create("v1", "namespaces", {"metadata": {"name": name}})
        self._agents = Agents(self.api, loop.time, _KUBELETS, self.chance("run times"))
        self._kubelets_wake = asyncio.Event()
        self._kubelet_chance = self.chance("kubelets")
        for bucket in ("pods", "nodes"):
            self.store.watch(bucket, lambda _: self._kubelets_wake.set())

    def chance(self, what: str) -> random.Random:
        """Return a random source for one purpose, independent of the draws for others."""
        return random.Random(f"{self.seed} {what}")

    @property
    def digest(self) -> str:
        """Return a hash of everything that was ever written, in order."""
        return self._digest.hexdigest()

    def resource(self, api_version: str, plural: str) -> Resource:
        """Return a resource that is served."""
        return self.registry.named(api_version, plural)

    def create(self, api_version: str, plural: str, obj: Object) -> Object:
        """Create an object in its namespace. Raises the embedded ApiError."""
        resource = self.resource(api_version, plural)
        obj = {"apiVersion": api_version, "kind": resource.kind, **obj}
        namespace = obj["metadata"].get("namespace", NAMESPACE) if resource.namespaced else ""
        return self.api.create(resource, namespace, obj)

    def namespace_of(self, pod: str) -> str:
        """Return the namespace of a pod; pod names are unique in a run."""
        found = self.history.by_name.get(pod)
        return found.namespace if found is not None else NAMESPACE

    def amend_pod(self, name: str, change: Callable[[Object], object]) -> None:
        """Let ``change`` alter a pod in place, if it is there."""
        self.api.amend("pods", self.namespace_of(name), name, change)

    async def run_kubelets(self) -> None:
        """Let all kubelets act, each time shortly after a change."""
        while True:
            self._kubelets_wake.clear()
            wait_s = self._agents.step()
            if wait_s is not None and wait_s > 0:
                with_timeout = asyncio.timeout(wait_s)
                try:
                    async with with_timeout:
                        await self._kubelets_wake.wait()
                except TimeoutError:
                    continue
            elif wait_s is None:
                await self._kubelets_wake.wait()
            await asyncio.sleep(self._kubelet_chance.uniform(0.0, _KUBELET_LAG_S))

    def _on_write(self, event: Event) -> None:
        self.writes += 1
        if event.bucket not in ("leases.coordination.k8s.io", "events"):
            self.last_write_s = self.loop.now_s
        self._digest.update(f"{self.loop.now_s:.9f} {event.type} {event.bucket} ".encode())
        self._digest.update(event.entry.raw)


@functools.lru_cache(maxsize=1)
def served_resources() -> tuple[Resource, ...]:
    """Return the served resources: the recorded ones, those of our CRDs, and Volcano's."""
    text = (package_files.files("quorate") / "deploy" / "crds.yaml").read_text()
    found = Document.load().resources()
    for crd in yaml.safe_load_all(text):
        found += resources_of(crd)
    return (*found, *resources_of(VOLCANO_POD_GROUPS))
