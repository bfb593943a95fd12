"""Measure the embedded cluster: ready, nodes, pods a second, memory; each beside its budget.

In: nothing. Out: a table, and JSON with ``--json``. Each cluster is a fresh ``quorate up`` with its
scheduler; the driver and the creator of pods are processes of their own, as a user's would be.
The budgets are those of a machine with two cores that nobody else uses.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from rich.console import Console
from rich.table import Table

from bench.cluster.loads import CreateJob
from tools.embedded import Embedded

NAMESPACE = "default"
PODS = 10_000
GANG = 100
LABEL = "bench"


def ready_s(runs: int) -> float:
    """Return the median seconds from starting the process to its first answer."""
    seen = []
    for _ in range(runs):
        start_s = time.monotonic()
        with Embedded.start(scheduler=True, progress=_silent, durable=False):
            seen.append(time.monotonic() - start_s)
    return statistics.median(seen)


def nodes_s(count: int) -> float:
    """Return the seconds that creating nodes over HTTP takes."""
    with Embedded.start(progress=_silent, durable=False) as cluster:
        node = cluster.api("GET", "/api/v1/nodes")  # warm the connection
        assert not node["items"], "the cluster starts empty"
        bodies = [_node(i) for i in range(count)]
        return _create(cluster, "/api/v1/nodes", bodies)


def pods_per_s(create: Callable[[Embedded], None]) -> float:
    """Return how many pods a second were created, scheduled and Running, of PODS."""
    extra = ("--shape", "kwok-cpu")
    with Embedded.start(scheduler=True, progress=_silent, durable=False, extra=extra) as cluster:
        _create(cluster, "/api/v1/nodes", [_node(i) for i in range(500)])
        time.sleep(1.0)  # the scheduler has seen them
        running = RunningCount(cluster)
        running.start()
        start_s = time.monotonic()
        create(cluster)
        while running.count < PODS:
            if time.monotonic() - start_s > 120:
                raise RuntimeError(f"after two minutes only {running.count} of {PODS} pods run")
            time.sleep(0.01)
        return PODS / (time.monotonic() - start_s)


def by_jobs(cluster: Embedded) -> None:
    """Create the pods as gangs of GANG, each with a Job whose controller makes them."""
    jobs = []
    for index in range(PODS // GANG):
        labels = {
            "pod-group.scheduling.sigs.k8s.io/name": f"gang-{index}",
            "pod-group.scheduling.sigs.k8s.io/min-available": str(GANG),
        }
        template = {"metadata": {"labels": labels}, "spec": _pod_spec()}
        spec = {"parallelism": GANG, "completions": GANG, "template": template}
        metadata = {"name": f"gang-{index}"}
        jobs.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    _create(cluster, f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", jobs)


def by_client(cluster: Embedded) -> None:
    """Create the pods one by one over HTTP, with 64 connections."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    metadata = {"labels": {LABEL: "client"}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{i}", **metadata},
            "spec": _pod_spec(),
        }
        for i in range(PODS)
    ]
    _create(cluster, path, pods)


def memory_mb(nodes: int, pods: int) -> float:
    """Return the resident memory of a cluster with so many nodes and bound pods, in MB."""
    with Embedded.start(scheduler=True, progress=_silent, durable=False) as cluster:
        _create(cluster, "/api/v1/nodes", [_node(i) for i in range(nodes)])
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        bound = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"p{i}"},
                "spec": {**_pod_spec(), "nodeName": f"node-{i % nodes}"},
            }
            for i in range(pods)
        ]
        _create(cluster, path, bound)
        time.sleep(3.0)
        return _resident_mb(cluster.pid)


def _pod_spec() -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "main", "image": "pause", "resources": {"requests": requests}}
    return {"schedulerName": "quorate", "restartPolicy": "Never", "containers": [container]}


def _node(index: int) -> dict[str, Any]:
    resources = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{index}",
            "labels": {"kubernetes.io/hostname": f"node-{index}"},
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def _create(cluster: Embedded, path: str, objects: list[dict[str, Any]]) -> float:
    """Create objects over 64 connections from a process of its own; return the seconds it took."""
    job = CreateJob(
        kubeconfig=str(cluster.kubeconfig),
        path=path,
        objects=[msgspec.Raw(msgspec.json.encode(one)) for one in objects],
    )
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        Path(file.name).write_bytes(msgspec.json.encode(job))
        command = [sys.executable, "-m", "bench.cluster.loads", "create", file.name]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    times = json.loads(done.stdout)
    return float(times["last_s"] - times["first_s"])


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    status: _Status


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class RunningCount(threading.Thread):
    """Counts, by a watch of its own, how many pods have begun to run."""

    def __init__(self, cluster: Embedded) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._decode = msgspec.json.Decoder(_Event).decode
        self.count = 0

    def run(self) -> None:
        """Read the stream until the server ends it."""
        address = urlsplit(self._cluster.server)
        tls = ssl.create_default_context(cafile=str(self._cluster.ca))
        connection = http.client.HTTPSConnection(address.hostname, address.port, context=tls)
        headers = {"Authorization": f"Bearer {self._cluster.admin_token}"}
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?watch=1&fieldSelector=status.phase%3DRunning"
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        rest = b""
        with contextlib.suppress(OSError, http.client.HTTPException):
            while data := response.read1(1 << 20):
                *lines, rest = (rest + data).split(b"\n")
                self.count += sum(self._decode(line).type == "ADDED" for line in lines)


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no VmRSS")


def _silent(_text: str) -> None:
    return None


CASES: dict[str, tuple[str, str, Callable[[], float]]] = {
    "ready": ("quorate up to ready", "<= 1.5 s", lambda: ready_s(5)),
    "nodes": ("1,000 nodes created over HTTP", "<= 2 s", lambda: nodes_s(1000)),
    "jobs": (
        "pods/s of 100 gangs of 100 by Jobs, to Running",
        ">= 1500",
        lambda: pods_per_s(by_jobs),
    ),
    "client": (
        "pods/s created one by one over HTTP, to Running",
        ">= 1500",
        lambda: pods_per_s(by_client),
    ),
    "memory": ("MB with 10,000 nodes, 50,000 pods", "<= 1536", lambda: memory_mb(10_000, 50_000)),
}


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.embedded_bench", description=__doc__)
    parser.add_argument("--case", default=",".join(CASES), help=f"of {','.join(CASES)}")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    table = Table("figure", "budget", "measured", box=None, pad_edge=False)
    figures = {}
    for name in options.case.split(","):
        what, budget, measure = CASES[name]
        print(f"measuring: {what} ...", file=sys.stderr, flush=True)
        figures[name] = round(measure(), 3)
        table.add_row(what, budget, f"{figures[name]:,.2f}")
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
