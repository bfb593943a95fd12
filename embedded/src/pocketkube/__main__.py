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
from collections.abc import Sequence
from pathlib import Path

from pocketkube.agents.durations import parse_run_time
from pocketkube.agents.settings import Settings
from pocketkube.cluster import EmbeddedCluster, Options
from pocketkube.nodes import NODES_MAX, alike
from pocketkube.server.http import ListenError
from pocketkube.store.durable import DataError


class CallError(ValueError):
    """The call cannot be carried out; the text says what to write instead."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a cluster until a signal says stop; return the exit code."""
    call = _parser().parse_args(arguments)
    folder = call.data or Path(tempfile.mkdtemp(prefix="pocketkube-"))
    try:
        asyncio.run(_serve(call, folder))
    except (CallError, ListenError, DataError) as error:
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
    parser.add_argument("--nodes", type=int, default=3, help="how many nodes it has (default 3)")
    parser.add_argument("--port", type=int, default=0, help="of loopback (default: any free one)")
    parser.add_argument("--data", type=Path, help="a folder that keeps the cluster's state")
    parser.add_argument("--run-time", help="how long pods run, such as 30s or 10s-2m")
    parser.add_argument("--seed", type=int, help="of generated names, UIDs and run times")
    parser.add_argument("--no-agents", action="store_true", help="nobody makes nodes ready")
    parser.add_argument("--no-controllers", action="store_true", help="nobody makes a Job's pods")
    return parser


async def _serve(call: argparse.Namespace, folder: Path) -> None:
    if not 0 <= call.nodes <= NODES_MAX:
        raise CallError(f"--nodes {call.nodes}: give a number from 0 to {NODES_MAX}")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    options = Options(
        port=call.port,
        durable=call.data is not None,
        seed=call.seed,
        agents=_agents(call.run_time),
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


def _agents(run_time: str | None) -> Settings:
    if run_time is None:
        return Settings()
    try:
        return Settings(run_time=parse_run_time(run_time))
    except ValueError as error:
        raise CallError(f"--run-time {run_time}: {error}") from None


def _complain(text: str) -> int:
    print(f"pocketkube: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
