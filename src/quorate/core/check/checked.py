"""The parts of a ``Scheduler`` that ``invariants`` reads, as protocols that avoid its import."""

from __future__ import annotations

from typing import Protocol

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import GangKey
from quorate.core.model.reasons import Reason
from quorate.core.queue.queue import Queue


class Explained(Protocol):
    """The explanation of a waiting gang."""

    @property
    def reason(self) -> Reason:
        """Why it waits."""

    @property
    def message(self) -> str:
        """The reason as a message."""


class Explains(Protocol):
    """Says why gangs wait."""

    def explain(self, key: GangKey) -> Explained | None:
        """Return why this gang waits; None if the gang is unknown."""


class Advances(Protocol):
    """Processes changes of gangs."""

    def is_left(self, key: GangKey) -> bool:
        """Whether changes of a gang are still to be processed."""


class Checked(Protocol):
    """The parts of a ``Scheduler`` that the checks read."""

    @property
    def cluster(self) -> Cluster:
        """The cluster as the scheduler knows it."""

    @property
    def queue(self) -> Queue:
        """The queues of waiting gangs."""

    @property
    def advance(self) -> Advances:
        """The changes that are still to be processed."""

    def explainer(self, now_s: float) -> Explains:
        """Return the explainer of waiting gangs, as of ``now_s`` (seconds)."""
