"""Measure schedulers on one real API server: from pods created to pods bound, and their CPU.

In: cases, peers and a number of runs. Out: one ``Result`` for each run, with all raw values. Called
by ``python -m bench``. Each run has a fresh process of its scheduler and pods of new names; the API
server, its nodes and the load are the same for all.
"""

import dataclasses
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.cluster import cases
from bench.cluster.cases import Case
from bench.cluster.environment import Environment
from bench.cluster.measurement import Actor, BenchError, Job, Measurement, Result
from bench.peers.build import say
from bench.peers.processes import PEERS, STOP_GRACE_S, Peer, start
from quorate.cli.commands.manifests import render
from tools.controlplane import ComponentError


class ClusterBench(Environment):
    """The runs on one control plane. A context manager."""

    def __init__(self, progress: Callable[[str], None] = say) -> None:
        super().__init__(progress)
        # Bound pods stay as they are: no kubelet's status writes beside the binds.
        os.kill(self.cluster.pid("kwok"), signal.SIGTERM)
        self._nodes = 0
        self.cluster.kubectl("apply", "-f", "-", input=render(parts=["crds"]))
        self.cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")

    def measure(self, case: Case, peers: Sequence[Peer], runs: int) -> list[Result]:
        """Run a case by each peer in turn, ``runs`` times."""
        if not self._nodes:
            # The API server keeps few recent events of a resource until there have been many, and
            # cuts watches that fall behind them: the first run would be unlike all others.
            self.progress("warming up the API server")
            self._set_nodes(case.nodes)
            self._run(case, PEERS["ceiling"], -1)
        self._set_nodes(case.nodes)
        results = []
        for run in range(runs):
            for peer in peers:
                self.progress(f"{case.name}, {peer.title}, run {run + 1} of {runs}")
                result = self._run(case, peer, run)
                self.progress(f"{case.name}, {peer.title}: {result.in_short()}")
                results.append(result)
        return results

    # One run

    def _run(self, case: Case, peer: Peer, run: int) -> Result:
        result = Result(case=case.name, peer=peer.name, run=run)
        prefix = f"{peer.name}-{case.name}-{run}"
        folder = self.folder / prefix
        folder.mkdir()
        try:
            if peer.name == "ceiling":
                self._run_ceiling(case, peer, prefix, result, folder)
            else:
                self._run_scheduler(case, peer, prefix, result, folder)
        except (ComponentError, BenchError) as error:
            result.error = str(error)
        finally:
            self._clean_up(peer)
        return result

    def _run_scheduler(
        self, case: Case, peer: Peer, prefix: str, result: Result, folder: Path
    ) -> None:
        scheduler = start(peer, self.cluster, folder)
        actor = Actor(pid=scheduler.pid, folder=folder)
        try:
            warm = Result(case="warm-up", peer=peer.name, run=0)
            self._measure(cases.WARM_UP, peer, f"{prefix}-warm-up", warm, actor)
            if warm.seconds is None:
                raise BenchError(f"it did not bind the first two pods.\n{scheduler.log_tail()}")
            self._clean_up(peer)
            self._measure(case, peer, prefix, result, actor)
            scheduler.check()
        finally:
            scheduler.stop(grace_s=STOP_GRACE_S)

    def _run_ceiling(
        self, case: Case, peer: Peer, prefix: str, result: Result, folder: Path
    ) -> None:
        gangs = cases.gang_names(case, prefix)[: case.wanted]
        node_of: dict[str, dict[str, str]] = {gang: {} for gang in gangs}
        for index in range(case.wanted * case.members):
            gang = gangs[index // case.members]
            pod = f"{gang}-{index % case.members}"
            node_of[gang][pod] = f"node-{index // cases.GPUS_PER_NODE}"
        job = {
            "kubeconfig": str(self.cluster.kubeconfig),
            "namespace": cases.NAMESPACE,
            "node_of": node_of,
        }
        with Job(folder, "ceiling", job) as client:
            if client.read_line() != "ready\n":
                raise BenchError(f"the ceiling's client failed: {client.errors()}")
            tell, pid = client.process.stdin, client.process.pid
            actor = Actor(pid=pid, folder=folder, tell=tell, gangs_told=gangs)
            # It has nothing to wait for: what becomes of the other gangs is no question here.
            self._measure(dataclasses.replace(case, hold_s=0.0), peer, prefix, result, actor)

    def _measure(self, case: Case, peer: Peer, prefix: str, result: Result, actor: Actor) -> None:
        self._create_pod_groups(case, peer, prefix)
        result.other_cores = self.settle(["kube-apiserver", "kube-controller-manager"])
        objects = cases.pods(case, prefix, peer.dialect, peer.scheduler_name)
        gangs = cases.gang_names(case, prefix)
        Measurement(case, self.watch, result, actor).run(self.cluster.kubeconfig, gangs, objects)

    # The cluster between runs

    def _set_nodes(self, count: int) -> None:
        if count == self._nodes:
            return
        if self._nodes:
            self.progress(f"deleting {self._nodes} nodes")
            self.cluster.delete_all_nodes()
        self.progress(f"creating {count} nodes")
        self.cluster.create_nodes(count, allocatable=cases.NODE)
        self._nodes = count

    def _create_pod_groups(self, case: Case, peer: Peer, prefix: str) -> None:
        path = cases.pod_group_path(peer.dialect)
        for gang in cases.gang_names(case, prefix) if path else ():
            self.cluster.api("POST", path, cases.pod_group(gang, case.members, peer.dialect))

    def _clean_up(self, peer: Peer) -> None:
        """Delete pods, then PodGroups, which pods protect; wait until both are gone."""
        pods = f"/api/v1/namespaces/{cases.NAMESPACE}/pods"
        for path in (pods, cases.pod_group_path(peer.dialect)):
            if not path:
                continue

            def is_empty(path: str = path) -> bool:
                self.cluster.api("DELETE", f"{path}?gracePeriodSeconds=0", timeout_s=120)
                return not self.cluster.api("GET", f"{path}?limit=1")["items"]

            self.wait(is_empty, f"the end of all {path.rpartition('/')[2]}", 120.0)
