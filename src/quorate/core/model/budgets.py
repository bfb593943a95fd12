"""Disruption budgets: which pods of a namespace may be evicted, and how many."""

from __future__ import annotations

import msgspec

from quorate.core.model.selectors import LabelSelector


class PodDisruptionBudget(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A budget: the pods of its namespace that ``selector`` matches (None: none).

    ``allowed`` is ``status.disruptionsAllowed``; ``disrupted`` names the pods whose eviction the
    API server has counted already.
    """

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0
    disrupted: tuple[str, ...] = ()
