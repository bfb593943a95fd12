"""What came of the gangs that one turn tried: effects, as data. Made by ``turn.cycle``.

``core.turn.applying`` makes them true; nobody else does. A gang that was tried and is not here is
left as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import GangKey
from quorate.core.model.plan import GangBinds, Plan, Preemption, TakeBack, Undo


class Next(Enum):
    """What becomes of a gang after it was tried."""

    NOTHING = "nothing"
    """Nothing of it waits."""
    BLOCKED = "blocked"
    """It waits for room."""
    SEARCHED = "searched"
    """The search for a joint placement goes on in a later turn."""
    READY = "ready"
    """It is tried again in the next turn."""


class GivenUp(NamedTuple):
    """A gang is not tried before this time (epoch seconds), for what ``said`` says."""

    until_s: float
    said: str


@dataclass(slots=True)
class Tried:
    """What came of one gang."""

    key: GangKey
    next: Next = Next.NOTHING
    is_planned: bool = False
    """Whether nodes were looked at: nothing held it back before that."""
    binds: GangBinds | None = None
    ends_avoidance: bool = False
    waits_for: dict[PodClass, int] = field(default_factory=dict)
    """Of a blocked gang: how many members of each class wait."""
    need: int = 0
    """Of a blocked gang: how many of them have to be placed at once."""
    said: str | None = None
    """What preemption could not do; None: it was not tried."""
    given_up: GivenUp | None = None
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
    """All that one turn decided: what is sent, and what came of each gang."""

    plan: Plan
    now_s: float
    tried: tuple[Tried, ...] = ()
    failed: Failed | None = None
    displaced: frozenset[GangKey] = frozenset()
    """Pods whose promises were taken back for others: they have to look elsewhere."""
    next_start: int = 0
    """Where the next cycle begins to look for victims."""
    is_more: bool = False
    """Whether the turn ended before all were looked at: the next one follows at once."""
