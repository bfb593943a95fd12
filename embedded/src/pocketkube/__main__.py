"""``python -m pocketkube``: a cluster in this process, until Ctrl-C.

In: how many nodes, a port, a folder. Out: a running cluster, and the path of its kubeconfig on
standard output. Exit code 0 after Ctrl-C, 2 when something of the call is at fault.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pocketkube.agents.settings import RunTime, Settings, parse_run_time
from pocketkube.cluster import EmbeddedCluster, Options
from pocketkube.objects import Object
from pocketkube.server.http import ListenError
from pocketkube.store.journal import DataError

NODES_MAX = 100_000
AMOUNTS = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "500Gi", "pods": "110"}


def alike(count: int) -> Iterator[Object]:
    """Give ``count`` Node objects, node-0 and so on; their agents make them ready."""
    for index in range(count):
        name = f"node-{index}"
        labels = {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
        }
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {"capacity": dict(AMOUNTS), "allocatable": dict(AMOUNTS)},
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a cluster until a signal says stop; return the exit code."""
    call = _parser().parse_args(arguments)
    folder = call.data or Path(tempfile.mkdtemp(prefix="pocketkube-"))
    try:
        asyncio.run(_serve(call, folder))
    except (ListenError, DataError) as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename or folder}: {error.strerror or error}")
    finally:
        if call.data is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pocketkube",
        description="Start a Kubernetes API server, node agents and controllers in this process, "
        "until Ctrl-C. No scheduler runs: bind pods yourself, or start one with the kubeconfig.",
    )
    parser.add_argument("--nodes", type=_count, default=3, help="how many nodes it has (default 3)")
    parser.add_argument("--port", type=int, default=0, help="of loopback (default: any free one)")
    parser.add_argument("--data", type=Path, help="a folder that keeps the cluster's state")
    parser.add_argument("--run-time", type=_run_time, help="how long pods run, such as 30s")
    parser.add_argument("--no-agents", action="store_true", help="nobody makes nodes ready")
    parser.add_argument("--no-controllers", action="store_true", help="nobody makes a Job's pods")
    return parser


async def _serve(call: argparse.Namespace, folder: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    options = Options(
        port=call.port,
        durable=call.data is not None,
        agents=Settings(run_time=call.run_time),
        runs_agents=not call.no_agents,
        runs_controllers=not call.no_controllers,
    )
    cluster = EmbeddedCluster(folder, options=options)
    if not cluster.node_count:
        cluster.add(alike(call.nodes))
    async with cluster:
        what = f"Kubernetes {cluster.version} with {cluster.node_count} nodes at {cluster.server}"
        print(f"{what}; no scheduler runs. Ctrl-C stops it.", file=sys.stderr)
        print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
        tasks = [asyncio.create_task(stop.wait()), asyncio.create_task(cluster.failed())]
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        for task in done:
            task.result()


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count <= NODES_MAX:
        raise argparse.ArgumentTypeError(f"{text}: give a number from 0 to {NODES_MAX}")
    return count


def _run_time(text: str) -> RunTime:
    try:
        return parse_run_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _complain(text: str) -> int:
    print(f"pocketkube: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
