"""The choices of an operator and every bound of the core, in one place."""

from __future__ import annotations

from typing import Literal

import msgspec

from quorate.core.profile import Profile

DEFAULT_SCHEDULER_NAMES = ("quorate", "cw-coscheduler", "coscheduler")


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the core may be told by configuration. Times are in seconds.

    ``scheduler_names`` are the values of ``spec.schedulerName`` that quorate owns. ``packing`` is
    the node score: ``most-allocated`` fills nodes, ``least-allocated`` spreads.
    """

    scheduler_names: tuple[str, ...] = DEFAULT_SCHEDULER_NAMES
    packing: Literal["most-allocated", "least-allocated"] = "most-allocated"
    profiles: tuple[tuple[str, Profile], ...] = ()
    """How pods are placed, by scheduler name; of names that are not here, as gangs are packed."""
    attempt_timeout_s: float = 60.0
    attempt_timeout_s_max: float = 900.0
    recovery_s: float = 2.0
    """What a dead leader left half done is finished within this time, or undone."""
    avoid_s: float = 300.0
    """A node whose kubelet refused a pod gets no other pod of that gang for so long."""
    hold_s: float = 300.0
    """So long the room of a lost member of a started gang is held for its replacement; 0: never."""
    backoff_s: float = 1.0
    backoff_s_max: float = 60.0
    binds_per_plan_max: int = 100_000
    singles_per_plan_max: int = 64
    """So many pods of no gang are placed in one plan: their binds are sent, over as many
    connections, while the next are decided on."""
    preemptions_per_plan_max: int = 20
    """So many pods are promised room in one decision at most; the next follows at once."""
    search_steps_max: int = 20_000
    """Bound of the search for a joint placement of a gang with several pod classes: kinds of nodes
    looked at. So many take about 0.3 s."""

    def timeout_s(self, asked_s: float | None) -> float:
        """Return the bound of one attempt: absent or 0 means the default, and at most the max."""
        wanted_s = asked_s if asked_s and asked_s > 0 else self.attempt_timeout_s
        return min(wanted_s, self.attempt_timeout_s_max)
