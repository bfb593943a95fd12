"""A theme: what some runs are about besides faults, and all that it changes of a run.

A seed draws its themes; each is a file in ``simulate.themes``. It changes jobs, pods and nodes
before they are made, does harm of its own, plays the controllers that its objects need, and counts
what was really met, so that a test can see that nothing is only there in name.
"""

from __future__ import annotations

from collections.abc import Callable

from pocketkube.objects import Object
from quorate.core.model.plan import Plan
from quorate.core.model.policy import Policy
from quorate.simulate.cluster.network import Link
from quorate.simulate.cluster.world import World
from quorate.simulate.workload import Job

Harm = tuple[str, float, Callable[[], None]]
"""Its name, the mean seconds between two, and what is done."""


class Theme:
    """Changes nothing: each theme says what it changes."""

    name = ""
    nodes = 0
    """How many nodes there are; 0: a few, as the seed draws."""
    must_meet: tuple[str, ...] = ()
    """What has to be met in a soak of some hundred seeds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.chance = world.chance(self.name)

    def met(self, what: str, times: int = 1) -> None:
        """Count something that this theme is about."""
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
        """Make what has to be there before the nodes."""

    def harms(self) -> list[Harm]:
        """Return what happens again and again while there are faults."""
        return []

    def step(self) -> None:
        """Do the work of controllers; called a few times a second, also at rest."""

    def mend(self) -> None:
        """Undo what would stand in the way of rest for ever."""

    def on_plan(self, link: Link, plan: Plan) -> None:
        """A replica is about to carry out a plan."""

    def unrest(self) -> list[tuple[str, str]]:
        """Return what is not as it has to be at rest: promises and texts."""
        return []
