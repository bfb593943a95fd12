"""Gangs of Volcano's PodGroups, whose status is written with the object itself."""

from __future__ import annotations

from quorate.core.model.plan import Plan
from simulate.cluster.network import Link
from simulate.cluster.theme import Theme
from simulate.workload import Job


class Volcano(Theme):
    """Lets half of the gangs be Volcano's."""

    name = "volcano"
    must_meet = ("gangs placed",)

    def jobs(self, jobs: list[Job]) -> None:
        """Draw who names its gang as Volcano does; it knows no time for an attempt."""
        for job in jobs:
            if job.dialect != "single" and self.chance.random() < 0.5:
                job.dialect, job.timeout_s = "volcano", 0

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Count its gangs."""
        self.met(self.must_meet[0], sum(gang.key.dialect == "volcano" for gang in plan.gangs))
