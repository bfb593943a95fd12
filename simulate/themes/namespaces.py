"""Several namespaces, in which gangs of one dialect have one name: they are several gangs."""

from __future__ import annotations

from quorate.core.model.plan import Plan
from simulate.cluster.network import Link
from simulate.cluster.theme import Theme
from simulate.workload import Job

_NAMESPACES = ("team-a", "team-b", "team-c")
_GROUP = "training"


class Namespaces(Theme):
    """Spreads the jobs over namespaces; in each dialect and namespace one has the common name."""

    name = "namespaces"
    must_meet = ("gangs of one name in two namespaces are placed",)

    def jobs(self, jobs: list[Job]) -> None:
        """Draw where each job is, and what its gang is called."""
        taken: set[tuple[str, str]] = set()
        self._placed: dict[str, set[str]] = {}
        for job in jobs:
            job.namespace = self.chance.choice(_NAMESPACES)
            place = job.dialect, job.namespace
            if place not in taken and self.chance.random() < 0.8:
                taken.add(place)
                job.group = _GROUP

    def build(self) -> None:
        """Make the namespaces."""
        for name in _NAMESPACES:
            self.world.create("v1", "namespaces", {"metadata": {"name": name}})

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Count names that were placed in a second namespace."""
        for gang in plan.gangs:
            if gang.key.name == _GROUP:
                there = self._placed.setdefault(gang.key.dialect, set())
                there.add(gang.key.namespace)
                self.met(self.must_meet[0], len(there) > 1)
