"""Measure scheduler_perf's shapes: pods per second by quorate and by kube-scheduler, in turn.

In: shapes, peers and a number of runs. Out: one ``Result`` for each run. Called by
``python -m bench``. One API server, its nodes and the pods that stand on them serve all runs of a
shape; each run has a fresh process of its scheduler. No controllers run beside it, as in
scheduler_perf: volumes are bound and ServiceAccounts made by the driver.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.cluster import cases, shapes
from bench.cluster.cases import PODS_PATH, Case
from bench.cluster.environment import Environment
from bench.cluster.measurement import Actor, BenchError, Job, Measurement, Result
from bench.cluster.shapes import Body, Shape
from bench.peers.build import say
from bench.peers.processes import PEERS, STOP_GRACE_S, Peer, start
from tools.controlplane import ComponentError
from tools.controlplane.process import Component

TOLD_TIMEOUT_S = 180.0
PEER_NAMES = ("quorate", "kube-scheduler")
# quorate in place of the cluster's own scheduler: the same name, and the same scores.
_SCHEDULER_NAME = PEERS["kube-scheduler"].scheduler_name
_PROFILES = {"profiles": [{"schedulerName": _SCHEDULER_NAME}]}
_CHURN = {"bench.quorate.dev/churn": "true"}
_CHURNED = {
    "/api/v1/nodes": {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "churn", "labels": _CHURN},
        "status": {
            "capacity": {"pods": "0"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    },
    PODS_PATH: shapes.hopeless_pods(1, "churn")[0],
    f"/api/v1/namespaces/{cases.NAMESPACE}/services": {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "churn", "labels": _CHURN},
        "spec": {"selector": {"app": "foo"}, "ports": [{"port": 8080}]},
    },
}
_CHURNED[PODS_PATH]["metadata"]["labels"] |= _CHURN


class ShapeBench(Environment):
    """The runs of all shapes. A context manager."""

    def __init__(self, progress: Callable[[str], None] = say) -> None:
        super().__init__(progress, controllers=False)
        # How many there are, and whether each has a resource of its own; None: no nodes.
        self._nodes: tuple[int, bool] | None = None
        self._standing: list[Body] = []
        self._has_volumes = False
        important = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": shapes.PRIORITY_CLASS},
            "value": 10,
        }
        self.cluster.api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", important)

    def measure(self, shape: Shape, peers: Sequence[Peer], runs: int) -> Iterator[Result]:
        """Run a shape by each peer in turn, ``runs`` times."""
        self._prepare(shape)
        for run in range(runs):
            for peer in peers:
                self.progress(f"{shape.name}, {peer.title}, run {run + 1} of {runs}")
                result = self._run(shape, peer, run)
                speed = pods_per_s(shape, result)
                said = result.error.partition("\n")[0] or f"{speed:,.0f} pods/s"
                self.progress(f"{shape.name}, {peer.title}: {said}")
                yield result

    # One run

    def _run(self, shape: Shape, peer: Peer, run: int) -> Result:
        result = Result(case=shape.name, peer=peer.name, run=run)
        prefix = f"{peer.name}-{shape.name}-{run}"
        folder = self.folder / prefix
        folder.mkdir()
        hopeless = shapes.hopeless_pods(shape.hopeless, f"{prefix}-hopeless")
        try:
            scheduler = start(peer, self.cluster, folder, _PROFILES)
            try:
                self._warm_up(shape, prefix, scheduler, folder)
                if hopeless:
                    self._leave_waiting(hopeless, f"{prefix}-hopeless")
                result.other_cores = self.settle(["kube-apiserver", "etcd"], scheduler.pid)
                with self._churning(shape):
                    self._measure(shape, shape.as_case(), prefix, result, scheduler, folder)
                scheduler.check()
            finally:
                scheduler.stop(grace_s=STOP_GRACE_S)
        except (ComponentError, BenchError) as error:
            result.error = str(error)
        finally:
            self._delete([*hopeless, *shapes.pods(shape, prefix, shape.measured)])
        return result

    def _leave_waiting(self, hopeless: list[Body], prefix: str) -> None:
        """Create them, and wait until each carries a word why it has no node."""
        self.watch.begin([prefix])
        self.create(PODS_PATH, hopeless)
        are_told = lambda: len(self.watch.told) >= len(hopeless)  # noqa: E731
        self.wait(are_told, "telling each hopeless pod why it waits", TOLD_TIMEOUT_S)

    def _warm_up(self, shape: Shape, prefix: str, scheduler: Component, folder: Path) -> None:
        case, warm = shape.warm_up(), Result(case="warm-up", peer="", run=0)
        self._measure(shape, case, f"{prefix}-warm-up", warm, scheduler, folder)
        self._delete(shapes.pods(shape, f"{prefix}-warm-up", case.members))
        if warm.seconds is None:
            raise BenchError(f"it did not bind the first two pods.\n{scheduler.log_tail()}")

    def _measure(
        self,
        shape: Shape,
        case: Case,
        prefix: str,
        result: Result,
        scheduler: Component,
        folder: Path,
    ) -> None:
        actor = Actor(pid=scheduler.pid, folder=folder)
        pods = shapes.pods(shape, prefix, case.members)
        measurement = Measurement(case, self.watch, result, actor)
        measurement.run(self.cluster.kubeconfig, cases.gang_names(case, prefix), pods)

    @contextlib.contextmanager
    def _churning(self, shape: Shape) -> Iterator[None]:
        if not shape.churns:
            yield
            return
        job = {"kubeconfig": str(self.cluster.kubeconfig), "objects": _CHURNED}
        try:
            with Job(self.folder, "churn", job) as churn:
                yield
                if churn.process.poll() is not None:
                    raise BenchError(f"the churn ended: {churn.errors()}")
        finally:
            self.cluster.client.forget_connections()  # idle since the start, and closed by now
            [(label, value)] = _CHURN.items()
            for path in _CHURNED:
                query = f"labelSelector={label}%3D{value}&gracePeriodSeconds=0"
                self.cluster.api("DELETE", f"{path}?{query}", timeout_s=60)

    # The cluster between runs

    def _prepare(self, shape: Shape) -> None:
        """Make what the shape stands on, and keep of the last shape's what serves again."""
        wanted = list(shapes.standing_pods(shape))
        nodes = shape.nodes, shape.own_resources
        if self._standing and (self._standing != wanted or self._nodes != nodes):
            self.progress(f"deleting {len(self._standing)} pods")
            self._delete(self._standing)
            self._standing = []
        if self._nodes != nodes:
            if self._nodes is not None:
                count, _ = self._nodes
                self.progress(f"deleting {count} nodes")
                self.delete([f"/api/v1/nodes/node-{number}" for number in range(count)])
            self.progress(f"creating {shape.nodes} nodes")
            made = shapes.nodes(shape.nodes, own_resources=shape.own_resources)
            self.create("/api/v1/nodes", made)
            self._nodes = nodes
        if shape.has_volumes and not self._has_volumes:
            self._make_volumes(shape)
        if wanted and not self._standing:
            self.progress(f"creating {len(wanted)} pods that have nodes")
            self.create(PODS_PATH, wanted)
            self._standing = wanted

    def _make_volumes(self, shape: Shape) -> None:
        """They stay: without its controller nothing that protects a claim lets it go."""
        volumes, claims = shapes.volumes(shape)
        self.progress(f"creating {len(volumes)} volumes with their claims")
        self.create("/apis/storage.k8s.io/v1/csinodes", shapes.csi_nodes())
        self.create("/api/v1/persistentvolumes", volumes)
        self.create(f"/api/v1/namespaces/{cases.NAMESPACE}/persistentvolumeclaims", claims)
        self._has_volumes = True

    def _delete(self, pods: Sequence[Body]) -> None:
        self.delete([f"{PODS_PATH}/{pod['metadata']['name']}" for pod in pods])


def peers_of(names: Sequence[str]) -> list[Peer]:
    """Return those of the peers that take part, each under the name that pods have by default."""
    chosen = [PEERS[name] for name in PEER_NAMES if name in names]
    return [
        dataclasses.replace(peer, dialect="none", scheduler_name=_SCHEDULER_NAME) for peer in chosen
    ]


def pods_per_s(shape: Shape, result: Result) -> float:
    """Return the throughput of one run; of one that did not end, up to its time limit."""
    if result.seconds is not None:
        return shape.measured / result.seconds
    return result.binds / shape.timeout_s
