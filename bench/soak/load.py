"""The life of a large cluster: gangs come, start and end, so do other pods; status is written.

In: a job as a JSON file. Out: JSON lines, one for each gang that started or gave up. Started by
``soak_large`` as a process of its own, until it is killed::

    python -m bench.soak.load JOB
"""

import asyncio
import contextlib
import itertools
import random
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from bench.cluster.cases import GANG_LABEL, POD_REQUESTS
from bench.soak import objects
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError, NotFound
from quorate.shell.kube.identity.credentials import credentials_from_kubeconfig
from quorate.shell.kube.lists.events import Added, Modified, SomeListed, WatchEvent
from quorate.shell.kube.lists.reflector import Reflector
from quorate.shell.process.clock import SystemClock

SIZES = (8, 8, 8, 16, 16, 32, 64, 128, 256)
SMALL = {"cpu": "1", "memory": "4Gi"}
GIVES_UP_S = 120.0
_GANG_PODS = f"/api/v1/namespaces/{objects.CHURN}/pods"
_OPTIONS = msgspec.json.encode({"gracePeriodSeconds": 0})
_TRY_AGAIN_S = 0.5


class LoadJob(msgspec.Struct, frozen=True, kw_only=True):
    """What happens how often. Counts a second unless another unit is named."""

    kubeconfig: str
    seed: int
    nodes: int
    foreign_per_s: float
    foreign_life_s: float
    pod_beats_per_s: float
    node_beats_per_s: float
    gang_every_s: float
    gang_life_s: float
    large_every_s: float
    large_size: int
    backlog_gangs: int
    """Gangs that wait all the time, for a resource that no node has."""
    padding: int


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """One gang; ``wait_s`` is from the answer to its last pod's creation to the last bind."""

    size: int
    created_s: float
    wait_s: float | None


class _Meta(msgspec.Struct):
    name: str
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815  the API's own name


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


_POD = msgspec.json.Decoder(_Pod)


class Load:
    """All that happens, by one client; a request that fails is tried again until it is done."""

    def __init__(self, job: LoadJob, client: KubeClient) -> None:
        self._job = job
        self._client = client
        self._chance = random.Random(job.seed)
        self._numbers = itertools.count()
        self._bound: dict[str, set[str]] = {}
        self._whole: dict[str, tuple[int, asyncio.Event]] = {}

    async def run(self) -> None:
        """Let it all happen until cancelled."""
        job = self._job
        gangs = Reflector(
            self._client,
            _GANG_PODS,
            on_event=self._hear,
            clock=SystemClock(),
            chance=self._chance.random,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(gangs.run())
            await self._make_backlog()
            print("ready", flush=True)
            paced = [
                (job.foreign_per_s, self._foreign),
                (job.pod_beats_per_s, self._pod_beats),
                (job.node_beats_per_s, self._node_beats),
                (1 / job.gang_every_s, self._gang),
                (1 / job.large_every_s, self._large_gang),
            ]
            for per_s, make in paced:
                if per_s:
                    group.create_task(self._pace(per_s, make))

    async def _pace(self, per_s: float, make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin one so many times a second; each runs beside the others."""
        next_s = time.monotonic() + 1 / per_s
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(max(0.0, next_s - time.monotonic()))
                next_s = max(next_s + 1 / per_s, time.monotonic() - 1.0)
                group.create_task(make())

    # What happens

    async def _foreign(self) -> None:
        number = next(self._numbers)
        name, app = f"churn-{number}", f"churn-app-{number % 200}"
        on = f"node-{self._chance.randrange(self._job.nodes):05d}"
        pod = objects.foreign_pod(name, app, on, "200m", self._job.padding)
        path = f"/api/v1/namespaces/{objects.FOREIGN_CHURN}/pods"
        await self._post(path, pod)
        await self._patch_status(f"{path}/{name}", objects.running_status())
        await asyncio.sleep(self._job.foreign_life_s)
        await self._delete(f"{path}/{name}")

    async def _pod_beats(self) -> None:
        """Write the status of a seeded pod: a container was restarted, say."""
        number = self._chance.randrange(1000)
        app = number // 50
        kinds = len(objects.FOREIGN_REQUESTS)
        where = objects.namespace(app % objects.NAMESPACES)
        path = f"/api/v1/namespaces/{where}/pods/k{number % kinds}-{number:08d}"
        status = objects.running_status(f"10.0.0.{self._chance.randrange(2, 250)}")
        await self._patch_status(path, status)

    async def _node_beats(self) -> None:
        name = f"node-{self._chance.randrange(self._job.nodes):05d}"
        beat = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        status = {"conditions": [{"type": "MemoryPressure", "lastHeartbeatTime": beat}]}
        body = {"status": status}
        path = f"/api/v1/nodes/{name}/status"
        await self._do(lambda: self._client.patch(path, body, "strategic"))

    async def _gang(self) -> None:
        await self._start_gang(self._chance.choice(SIZES), POD_REQUESTS)

    async def _large_gang(self) -> None:
        await self._start_gang(self._job.large_size, SMALL)

    async def _start_gang(self, size: int, requests: dict[str, str]) -> None:
        """Create a gang, wait until it is whole, let it live, delete it; tell how long it took."""
        gang = f"g-{next(self._numbers)}"
        names = [f"{gang}-{member}" for member in range(size)]
        is_whole = asyncio.Event()
        self._bound[gang], self._whole[gang] = set(), (size, is_whole)
        await self._create(gang, names, requests)
        created_s = time.monotonic()
        wait_s: float | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GIVES_UP_S):
                await is_whole.wait()
            wait_s = time.monotonic() - created_s
        told = Started(size=size, created_s=created_s, wait_s=wait_s)
        print(msgspec.json.encode(told).decode(), flush=True)
        await asyncio.sleep(self._job.gang_life_s)
        del self._bound[gang], self._whole[gang]
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(self._delete(f"{_GANG_PODS}/{name}"))

    async def _make_backlog(self) -> None:
        requests = {"cpu": "1", "example.com/no-such-device": "1"}
        for number in range(self._job.backlog_gangs):
            gang = f"backlog-{number}"
            await self._create(gang, [f"{gang}-{member}" for member in range(8)], requests)

    async def _create(self, gang: str, names: list[str], requests: dict[str, str]) -> None:
        async with asyncio.TaskGroup() as group:
            for name in names:
                pod = objects.waiting_member(name, gang, len(names), requests)
                group.create_task(self._post(_GANG_PODS, pod))

    # How

    async def _patch_status(self, path: str, status: dict[str, Any]) -> None:
        body = {"status": status}
        await self._do(lambda: self._client.patch(f"{path}/status", body, "merge"))

    async def _post(self, path: str, body: dict[str, Any]) -> None:
        await self._do(lambda: self._client.post(path, body))

    async def _delete(self, path: str) -> None:
        await self._do(lambda: self._client.delete(path, _OPTIONS))

    async def _do(self, request: Callable[[], Awaitable[bytes]]) -> None:
        """Send a request until it is answered; what is gone, or there already, is as good."""
        while True:
            try:
                await request()
            except NotFound:
                return
            except ApiError as error:
                if error.status == 409:
                    return
                await asyncio.sleep(_TRY_AGAIN_S)
            else:
                return

    def _hear(self, event: WatchEvent) -> None:
        match event:
            case SomeListed():
                for raw in event.items:
                    self._see(raw)
            case Added() | Modified():
                self._see(event.raw)
            case _:
                pass

    def _see(self, raw: bytes) -> None:
        pod = _POD.decode(raw)
        gang = pod.metadata.labels.get(GANG_LABEL, "")
        if pod.spec.nodeName and gang in self._bound:
            self._bound[gang].add(pod.metadata.name)
            size, is_whole = self._whole[gang]
            if len(self._bound[gang]) == size:
                is_whole.set()


async def _run(job: LoadJob) -> None:
    credentials = await credentials_from_kubeconfig(job.kubeconfig, clock=SystemClock())
    async with KubeClient(credentials, write_connections_max=32) as client:
        await Load(job, client).run()


if __name__ == "__main__":
    asyncio.run(_run(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=LoadJob)))
