"""A theme: a feature that some runs exercise besides faults, and all that it changes in a run.

A seed draws its themes; each is a file in ``simulate.themes``. A theme changes jobs, pods and nodes
before they are created, adds faults, plays the controllers that its objects need, and counts the
situations that occurred, so that a test can check that the theme was really exercised.
"""

from __future__ import annotations

from collections.abc import Callable

from pocketkube.objects import Object
from quorate.core.model.plan import Plan
from quorate.core.model.policy import Policy
from simulate.checkers.records import PodTruth
from simulate.cluster.network import Link
from simulate.cluster.world import World
from simulate.workload import Job

Harm = tuple[str, float, Callable[[], None]]
"""Its name, the mean seconds between two, and what is done."""


class Theme:
    """Changes nothing: each theme says what it changes."""

    name = ""
    nodes = 0
    """How many nodes there are; 0: a few, as the seed draws."""
    must_meet: tuple[str, ...] = ()
    """The situations that must occur in a soak of some hundred seeds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.chance = world.chance(self.name)

    def met(self, what: str, times: int = 1) -> None:
        """Count an occurrence of one of the theme's situations."""
        if times:
            self.world.met[f"{self.name}: {what}"] += times

    def policy(self, policy: Policy) -> Policy:
        """Return the scheduler's policy in such a run."""
        return policy

    def jobs(self, jobs: list[Job]) -> None:
        """Change the jobs before the run begins, or add some."""

    def pod(self, job: Job, metadata: Object, spec: Object) -> None:
        """Change a pod that is about to be made."""

    def node(self, node: Object) -> None:
        """Change a node that is about to be made."""

    def build(self) -> None:
        """Create the objects that must exist before the nodes."""

    def harms(self) -> list[Harm]:
        """Return the faults that this theme adds, repeated during the run's faulty phase."""
        return []

    def spares(self, pod: PodTruth) -> bool:
        """Whether nobody deletes a pod for now, because the run is about what comes of it."""
        del pod
        return False

    def step(self) -> None:
        """Do the work of controllers; called a few times a second, also at rest."""

    def mend(self) -> None:
        """Undo the faults that would keep the run from coming to rest."""

    def on_plan(self, link: Link, plan: Plan) -> None:
        """A replica is about to carry out a plan."""

    def unrest(self) -> list[tuple[str, str]]:
        """Return the theme's problems at rest: promises and texts."""
        return []
