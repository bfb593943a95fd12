"""Single pods under kube-scheduler's profile: they are placed its way, and preempt its way.

Some of the jobs are of pods of no gang that the default scheduler's name owns. A few important ones
come when the cluster is full of less important ones.
"""

from __future__ import annotations

import msgspec

from quorate.core.model.plan import Plan
from quorate.core.model.policy import Policy
from quorate.core.model.profile import KUBE_SCHEDULER
from simulate.cluster.network import Link
from simulate.cluster.theme import Theme
from simulate.workload import Job

KUBE = "default-scheduler"
_LATE_S = 6.0


class Preemption(Theme):
    """Owns the default scheduler's pods in such a run."""

    name = "preemption"
    must_meet = ("pods placed under the profile", "plans that preempt", "victims")

    def policy(self, policy: Policy) -> Policy:
        """Own the name, with kube-scheduler's profile."""
        return msgspec.structs.replace(
            policy,
            scheduler_names=(*policy.scheduler_names, KUBE),
            profiles=((KUBE, KUBE_SCHEDULER),),
        )

    def jobs(self, jobs: list[Job]) -> None:
        """Let the first jobs be of single pods, and the last of them important and late."""
        self.world.history.ours.add(KUBE)
        few = jobs[: self.chance.randint(2, 4)]
        for job in few:
            job.dialect, job.scheduler, job.minimum = "single", KUBE, 1
            job.priority = self.chance.choice((0, 0, 5))
            job.cpu = tuple(self.chance.choice((1, 2)) for _ in job.cpu)
            job.runs_s, job.apart = self.chance.choice((0.0, 0.0, job.runs_s)), False
        for job in few[-2:]:
            job.priority = self.chance.choice((100, 1000))
            job.arrives_s = self.chance.uniform(_LATE_S, 2 * _LATE_S)

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Only who is less important is preempted."""
        history = self.world.history
        singles = [gang for gang in plan.gangs if gang.key.is_single]
        self.met(self.must_meet[0], len(singles))
        for one in plan.preemptions:
            preemptor = history.pods.get(one.uid)
            self.met(self.must_meet[1], bool(one.victims))
            for victim in one.victims:
                self.met(self.must_meet[2])
                pod = history.pods.get(victim.uid)
                self.world.check(
                    "only who is less important is preempted",
                    pod is None or preemptor is None or pod.priority < preemptor.priority,
                    lambda one=one, victim=victim: f"{one.name} preempts {victim.name}",  # type: ignore[misc]
                )
