"""Zones, labels and taints of nodes, which change while pods rely on them."""

from __future__ import annotations

from collections.abc import Callable

from pocketkube.objects import Object
from quorate.core.model.plan import Plan
from simulate.checkers.records import NEVER, RULED_LABEL
from simulate.cluster.network import Link
from simulate.cluster.theme import Harm, Theme
from simulate.workload import Job

ZONE = "topology.kubernetes.io/zone"
_DISK = "simulation/disk"
_TAINT = {"key": "simulation/reserved", "value": "yes", "effect": "NoSchedule"}
_CPU_LESS = 1


class Topology(Theme):
    """Labels and taints nodes; some jobs ask for a label, some tolerate the taint."""

    name = "topology"
    must_meet = ("labels changed", "taints changed", "nodes resized", "pods that ask for a label")

    def jobs(self, jobs: list[Job]) -> None:
        """Draw who asks for what."""
        self._asks = {job.name for job in jobs if self.chance.random() < 0.4}
        self._tolerates = {job.name for job in jobs if self.chance.random() < 0.3}
        for job in jobs:
            job.apart &= job.name not in self._asks | self._tolerates

    def node(self, node: Object) -> None:
        """Give a node its zone, and most of them the disk that is asked for."""
        node["metadata"]["labels"] |= {ZONE: self.chance.choice(("a", "b"))}
        if self.chance.random() < 0.7:
            node["metadata"]["labels"][_DISK] = "fast"

    def pod(self, job: Job, metadata: Object, spec: Object) -> None:
        """Let a pod ask, or tolerate."""
        if job.name in self._asks:
            spec["nodeSelector"] = {_DISK: "fast"}
        if job.name in self._tolerates:
            spec["tolerations"] = [{"key": _TAINT["key"], "operator": "Exists"}]
        if job.name in self._asks | self._tolerates:
            metadata["labels"][RULED_LABEL] = "node"

    def harms(self) -> list[Harm]:
        """Labels, taints and sizes change every few seconds."""
        return [
            ("relabel node", 2.0, self._relabel),
            ("taint", 3.0, self._taint),
            ("resize", 5.0, self._resize),
        ]

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Count pods that ask for something."""
        binds = [bind.uid for gang in plan.gangs for bind in gang.binds]
        asking = [uid for uid in binds if uid in self.world.history.pods]
        self.met(self.must_meet[3], sum(bool(self._truth(uid)) for uid in asking))

    def _truth(self, uid: str) -> dict[str, str]:
        return self.world.history.pods[uid].selector

    def mend(self) -> None:
        """Leave the labels as they are; no taint stays."""
        for name in self._nodes():
            self._amend(name, lambda node: node["spec"].pop("taints", None))

    def _nodes(self) -> list[str]:
        nodes = self.world.history.nodes
        return [name for name, one in nodes.items() if one.version_at(NEVER).amounts is not None]

    def _relabel(self) -> None:
        name = self._some()

        def change(node: Object) -> None:
            labels = node["metadata"]["labels"]
            if self.chance.random() < 0.5:
                labels[ZONE] = self.chance.choice(("a", "b", "c"))
            elif labels.pop(_DISK, None) is None:
                labels[_DISK] = "fast"

        self._amend(name, change, "labels changed")

    def _taint(self) -> None:
        def change(node: Object) -> None:
            if not node["spec"].pop("taints", None):
                node["spec"]["taints"] = [dict(_TAINT)]

        self._amend(self._some(), change, "taints changed")

    def _resize(self) -> None:
        """A node has less for a while, as when a device plugin starts anew."""
        name = self._some()

        def change(by: int) -> None:
            def resize(node: Object) -> None:
                status = node["status"]
                for amounts in (status["capacity"], status["allocatable"]):
                    amounts["cpu"] = str(max(1, int(amounts["cpu"]) + by))

            self._amend(name, resize, "nodes resized")

        change(-_CPU_LESS)
        self.world.loop.call_later(self.chance.uniform(0.5, 4.0), change, _CPU_LESS)

    def _some(self) -> str:
        return self.chance.choice(self._nodes() or [""])

    def _amend(self, name: str, change: Callable[[Object], object], what: str = "") -> None:
        if self.world.api.amend("nodes", "", name, change) is not None and what:
            self.met(what)
