"""The processes beside the driver: one that creates objects, one that binds at the API's ceiling.

In: a job as a JSON file. Out: JSON lines. Started by ``gang_bench``, each as a process of its
own, so that no measurement shares an interpreter with another::

    python -m bench.cluster.loads create JOB    creates what the job lists, then prints when
    python -m bench.cluster.loads delete JOB    deletes what the job lists, then prints "done"
    python -m bench.cluster.loads churn JOB     makes objects anew each second, until it is killed
    python -m bench.cluster.loads ceiling JOB   prints "ready", then binds each gang that it reads

Both use quorate's own client of the API, with as many connections as quorate.
"""

import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import NotFound
from quorate.shell.kube.identity.credentials import credentials_from_kubeconfig
from quorate.shell.process.clock import SystemClock

CONNECTIONS = 64


class CreateJob(msgspec.Struct, frozen=True, kw_only=True):
    """Create all ``objects`` at ``path``, CONNECTIONS at a time, in their order.

    With ``per_s`` at that pace, which the API server has to keep up with; otherwise at once.
    """

    kubeconfig: str
    path: str
    objects: list[msgspec.Raw]
    per_s: float = 0.0


class CeilingJob(msgspec.Struct, frozen=True, kw_only=True):
    """``node_of[gang][pod]``: the answer, which a scheduler would have to find."""

    kubeconfig: str
    namespace: str
    node_of: dict[str, dict[str, str]]


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """When the first request went out and the last answer came; seconds of the monotonic clock."""

    first_s: float
    last_s: float


async def create(job: CreateJob) -> Created:
    """Create the objects; raises the API's first refusal."""
    async with await _client(job.kubeconfig) as client:
        bodies = [bytes(item) for item in job.objects]
        first_s = time.monotonic()
        pause_s = 1 / job.per_s if job.per_s else 0.0
        await _all(
            [
                _at(first_s + number * pause_s, client.post(job.path, body))
                for number, body in enumerate(bodies)
            ]
        )
        return Created(first_s=first_s, last_s=time.monotonic())


class DeleteJob(msgspec.Struct, frozen=True, kw_only=True):
    """Delete the objects at ``paths``, without grace."""

    kubeconfig: str
    paths: list[str]


async def delete(job: DeleteJob) -> None:
    """Delete the objects; one that is gone is as good."""
    options = msgspec.json.encode({"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    async def one(client: KubeClient, path: str) -> bytes:
        with contextlib.suppress(NotFound):
            return await client.delete(path, options)
        return b""

    async with await _client(job.kubeconfig) as client:
        await _all([one(client, path) for path in job.paths])


class ChurnJob(msgspec.Struct, frozen=True, kw_only=True):
    """Objects by the path of their collection; the name of each gets a number."""

    kubeconfig: str
    objects: dict[str, dict[str, Any]]


CHURN_EVERY_S = 1.0


async def churn(job: ChurnJob) -> None:
    """Delete what was made a second ago and make it anew, under another name."""
    options = msgspec.json.encode({"gracePeriodSeconds": 0})
    async with await _client(job.kubeconfig) as client:
        for number in itertools.count():
            for path, made in job.objects.items():
                name = made["metadata"]["name"]
                if number:
                    await client.delete(f"{path}/{name}-{number - 1}", options)
                metadata = {**made["metadata"], "name": f"{name}-{number}"}
                await client.post(path, {**made, "metadata": metadata})
            await asyncio.sleep(CHURN_EVERY_S)


WARM_UP_S = 1.0


async def ceiling(job: CeilingJob) -> None:
    """Bind each gang as soon as its name is read; everything is encoded before "ready"."""
    requests = {
        gang: [_binding(job.namespace, pod, node) for pod, node in nodes.items()]
        for gang, nodes in job.node_of.items()
    }
    async with await _client(job.kubeconfig) as client:
        client.warm(CONNECTIONS)  # as quorate does while members arrive
        await asyncio.sleep(WARM_UP_S)
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        _say("ready")
        async with asyncio.TaskGroup() as group:
            while line := await reader.readline():
                for path, body in requests[line.decode().strip()]:
                    group.create_task(_ignore_result(client.post(path, body)))


def _binding(namespace: str, pod: str, node: str) -> tuple[str, bytes]:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/binding"
    return path, msgspec.json.encode(body)


async def _client(kubeconfig: str) -> KubeClient:
    credentials = await credentials_from_kubeconfig(kubeconfig, clock=SystemClock())
    return KubeClient(credentials, write_connections_max=CONNECTIONS)


async def _all(requests: Sequence[Awaitable[bytes]]) -> None:
    async with asyncio.TaskGroup() as group:
        for request in requests:
            group.create_task(_ignore_result(request))


async def _at(time_s: float, request: Awaitable[bytes]) -> bytes:
    await asyncio.sleep(max(0.0, time_s - time.monotonic()))
    return await request


async def _ignore_result(request: Awaitable[bytes]) -> None:
    await request


def _say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str]) -> int:
    """Run one job; the exit code tells the driver whether it went well."""
    kind, path = arguments
    data = Path(path).read_bytes()
    if kind == "create":
        created: Any = asyncio.run(create(msgspec.json.decode(data, type=CreateJob)))
        _say(msgspec.json.encode(created).decode())
    elif kind == "delete":
        asyncio.run(delete(msgspec.json.decode(data, type=DeleteJob)))
        _say("done")
    elif kind == "churn":
        asyncio.run(churn(msgspec.json.decode(data, type=ChurnJob)))
    else:
        assert kind == "ceiling", f"no such job: {kind}"
        asyncio.run(ceiling(msgspec.json.decode(data, type=CeilingJob)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
