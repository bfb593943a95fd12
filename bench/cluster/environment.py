"""What the benchmarks on a real API server stand on: a control plane, a namespace, a watch.

Called by ``gang_bench`` and ``shape_bench``. Bodies are created and deleted by processes of
their own (``loads``), and a run begins when the control plane has digested what was before it.
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from bench.cluster import cases
from bench.cluster.measurement import BenchError, Job, cpu_s, machine_cpu_s
from bench.cluster.pod_watch import PodWatch
from tools.controlplane import ApiError, Cluster

QUIET_CORES_MAX = 0.15
QUIET_TIMEOUT_S = 60.0
OTHERS_CORES_MAX = 0.3


class Environment:
    """One control plane with a namespace for pods, and the driver's watch. A context manager."""

    def __init__(self, progress: Callable[[str], None], *, controllers: bool = True) -> None:
        self.progress = progress
        self._folder = tempfile.TemporaryDirectory(prefix="quorate-bench-")
        self.folder = Path(self._folder.name)
        self.cluster = Cluster.start(progress=progress, controllers=controllers)
        named = {"apiVersion": "v1", "metadata": {"name": cases.NAMESPACE}}
        self.cluster.api("POST", "/api/v1/namespaces", {**named, "kind": "Namespace"})
        accounts = f"/api/v1/namespaces/{cases.NAMESPACE}/serviceaccounts"
        if not controllers:  # nobody else makes it, and no pod is admitted without
            account = {"apiVersion": "v1", "kind": "ServiceAccount"}
            metadata = {"name": "default"}
            self.cluster.api("POST", accounts, {**account, "metadata": metadata})
        has_account = lambda: self._exists(f"{accounts}/default")  # noqa: E731
        self.wait(has_account, "the namespace's ServiceAccount", 30.0)
        cluster = self.cluster
        self.watch = PodWatch(cluster.server, cluster.ca, cluster.admin_token, cases.NAMESPACE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.stop()
        self.cluster.stop()
        self._folder.cleanup()

    def create(self, path: str, objects: Sequence[dict[str, Any]]) -> None:
        """Create objects in one collection, quickly. Raises BenchError."""
        self._load("create", {"path": path, "objects": objects})

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects by their paths, at once; those that are gone already are no error."""
        self._load("delete", {"paths": paths})

    def settle(self, components: Iterable[str], *pids: int) -> float:
        """Wait until the control plane (and the processes) have digested what was done before.

        Gives how many cores something else on this machine keeps busy: it spoils the figures.
        """
        pids = (*map(self.cluster.pid, components), *pids)
        deadline_s = time.monotonic() + QUIET_TIMEOUT_S
        while True:
            before_s, all_before_s = sum(map(cpu_s, pids)), machine_cpu_s()
            time.sleep(1.0)
            busy_s = sum(map(cpu_s, pids)) - before_s
            others_s = machine_cpu_s() - all_before_s - busy_s
            if busy_s < QUIET_CORES_MAX or time.monotonic() > deadline_s:
                break
        if busy_s >= QUIET_CORES_MAX:
            self.progress(f"the control plane is busy after {QUIET_TIMEOUT_S:.0f} s; going on")
        if others_s >= OTHERS_CORES_MAX:
            self.progress(f"other processes use {others_s:.1f} cores: figures will be too high")
        return others_s

    def wait(self, ready: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Wait until ``ready``. Raises BenchError."""
        deadline_s = time.monotonic() + timeout_s
        while not ready():
            if time.monotonic() > deadline_s:
                raise BenchError(f"{what} took more than {timeout_s:.0f} s")
            time.sleep(0.2)

    def _load(self, kind: str, job: dict[str, Any]) -> None:
        with Job(self.folder, kind, {"kubeconfig": str(self.cluster.kubeconfig), **job}) as load:
            if not load.read_line():
                raise BenchError(f"the load failed: {load.errors()}")

    def _exists(self, path: str) -> bool:
        try:
            self.cluster.api("GET", path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True
