"""How many pods of a kind may be disrupted, as a value."""

from __future__ import annotations

import msgspec

from quorate.core.model.selecting import LabelSelector


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
