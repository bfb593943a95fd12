"""Objects that select pods: kube-scheduler spreads what they select, where pods say nothing."""

from __future__ import annotations

import msgspec

from quorate.core.model.selecting import LabelSelector


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
