"""Gangs of several priorities: the more important one has its turn first."""

from __future__ import annotations

from quorate.core.model.plan import Plan
from simulate.cluster.network import Link
from simulate.cluster.theme import Theme
from simulate.workload import Job

_PRIORITIES = (0, 0, 5, 1000)


class Priorities(Theme):
    """Draws a priority for each job."""

    name = "priorities"
    must_meet = ("a less important gang waits while one is placed",)

    def jobs(self, jobs: list[Job]) -> None:
        """Draw who is how important."""
        for job in jobs:
            job.priority = self.chance.choice(_PRIORITIES)

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Count plans that had to choose."""
        pods = self.world.history.pods
        placed = [pods[b.uid].priority for gang in plan.gangs for b in gang.binds if b.uid in pods]
        waiting = [pod.priority for pod in pods.values() if pod.ours and not pod.node]
        if placed and waiting:
            self.met(self.must_meet[0], min(waiting) < max(placed))
