"""Decisions that take time, and limits that are small: renewals are late, and turns are cut short.

Everything else takes no time in a simulation. Here each decision moves the clock on by the steps
that it took (``core.model.steps``), at a price that the seed draws: a step stands for as much work
as a large cluster would make of it. Meanwhile nothing of this process runs, its Lease included.
"""

from __future__ import annotations

import msgspec

from quorate.core.model.plan import Plan
from quorate.core.model.policy import Policy
from simulate.cluster.network import Link
from simulate.cluster.theme import Theme

_STEP_S = (0.0005, 0.005, 0.05)
_DECISION_S_MAX = 5.0
"""Longer than the lease lasts here."""


class Load(Theme):
    """Draws what a step costs, and the limits of a plan."""

    name = "load"
    must_meet = (
        "decisions of 100 ms and more",
        "decisions that outlast the lease",
        "plans at their limit of binds",
        "plans at their limit of single pods",
    )

    def policy(self, policy: Policy) -> Policy:
        """Draw small limits in half of the runs."""
        self._step_s = self.chance.choice(_STEP_S)
        if self.chance.random() < 0.5:
            policy = msgspec.structs.replace(
                policy,
                binds_per_plan_max=self.chance.choice((1, 3)),
                singles_per_plan_max=self.chance.choice((1, 2)),
                preemptions_per_plan_max=1,
                search_steps_max=self.chance.choice((50, 20_000)),
            )
        self._policy = policy
        return policy

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Let time pass for a decision that was made."""
        policy = self._policy
        binds = sum(len(gang.binds) for gang in plan.gangs)
        singles = sum(gang.key.is_single for gang in plan.gangs)
        self.met(self.must_meet[2], binds >= policy.binds_per_plan_max)
        self.met(self.must_meet[3], singles >= policy.singles_per_plan_max)
        if not self.world.faults.on:
            return
        took_s = min(self._step_s * link.steps, _DECISION_S_MAX)
        self.met(self.must_meet[0], took_s >= 0.1)
        self.met(self.must_meet[1], took_s >= 4.0)
        self.world.loop.now_s += took_s
