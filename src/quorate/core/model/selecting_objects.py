"""Objects that select pods: what owns or serves them, by which they are spread, and budgets."""

from __future__ import annotations

import msgspec

from quorate.core.model.selectors import LabelSelector


class Service(msgspec.Struct, frozen=True, tag=True):
    """A Service; ``selector`` None selects nothing."""

    namespace: str
    name: str
    selector: LabelSelector | None


class ReplicationController(msgspec.Struct, frozen=True, tag=True):
    """A ReplicationController."""

    namespace: str
    name: str
    selector: LabelSelector | None


class ReplicaSet(msgspec.Struct, frozen=True, tag=True):
    """A ReplicaSet."""

    namespace: str
    name: str
    selector: LabelSelector | None


class StatefulSet(msgspec.Struct, frozen=True, tag=True):
    """A StatefulSet."""

    namespace: str
    name: str
    selector: LabelSelector | None


Selects = Service | ReplicationController | ReplicaSet | StatefulSet


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
