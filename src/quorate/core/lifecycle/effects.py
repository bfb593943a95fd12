"""The effects of one turn, as data: the outcome of each gang that was tried.

Made by ``turn.cycle`` and ``turn.planning``; only ``turn.applying`` writes them into the cluster. A
gang without an outcome here is left as it was.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

import msgspec

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import GangKey
from quorate.core.model.plan import GangBinds, Plan, Preemption, TakeBack, Undo


class NextPlace(Enum):
    """Where a gang goes after it was tried."""

    NOTHING = "nothing"
    """No member waits."""
    BLOCKED = "blocked"
    """It waits for room."""
    SEARCHED = "searched"
    """The search for a joint placement continues in a later turn."""
    READY = "ready"
    """It is tried again in the next turn."""


class Postponed(NamedTuple):
    """A gang is not tried before ``until_s`` (epoch seconds); ``message`` says why."""

    until_s: float
    message: str


@dataclass(slots=True)
class GangOutcome:
    """The outcome of one gang's try."""

    key: GangKey
    next_place: NextPlace = NextPlace.NOTHING
    passed_gates: bool = False
    """Whether it came as far as the nodes: no gate held it back."""
    binds: GangBinds | None = None
    ends_avoidance: bool = False
    waits_for: dict[PodClass, int] = field(default_factory=dict)
    """For a blocked gang: how many members of each class wait."""
    need: int = 0
    """For a blocked gang: how many of them have to be placed at once."""
    preemption_message: str | None = None
    """Why preemption did not help, in words; None: it was not tried."""
    postponed: Postponed | None = None
    preemption: Preemption | None = None
    undo: Undo | None = None
    take_backs: tuple[TakeBack, ...] = ()

    @property
    def prepares(self) -> bool:
        """Whether claims have to be bound before the binds are sent."""
        return self.binds is not None and any(map(attrgetter("prepare"), self.binds.binds))


class Failed(NamedTuple):
    """A gang with which planning met a defect of ours."""

    key: GangKey
    error: Exception


@dataclass(slots=True)
class Decision:
    """All that one turn decided: the plan to send, and the outcome of each gang."""

    plan: Plan
    now_s: float
    outcomes: tuple[GangOutcome, ...] = ()
    failed: Failed | None = None
    displaced: frozenset[GangKey] = frozenset()
    """Gangs whose promises were taken back for others; they need another node."""
    next_start: int = 0
    """The offset at which the next cycle begins its search for victims."""
    is_more: bool = False
    """Whether the turn ended with work left, so that the next one follows at once."""

    def plan_without(self, gangs: Set[GangKey]) -> Plan:
        """Return the plan without what was decided for these gangs: it could not be made true.

        What was due beside that is sent: promises that are taken back, and claims.
        """
        dropped = [one for one in self.outcomes if one.key in gangs]
        preemptions, undo = {one.preemption for one in dropped}, {one.undo for one in dropped}
        backs = {back for one in dropped for back in one.take_backs}
        plan = self.plan
        return msgspec.structs.replace(
            plan,
            gangs=tuple(one for one in plan.gangs if one.key not in gangs),
            preparing=tuple(one for one in plan.preparing if one.key not in gangs),
            undo=tuple(one for one in plan.undo if one not in undo),
            take_backs=tuple(one for one in plan.take_backs if one not in backs),
            preemptions=tuple(one for one in plan.preemptions if one not in preemptions),
        )
