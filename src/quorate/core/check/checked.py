"""What ``invariants`` looks at: the parts of a ``Scheduler``, named so that it imports none."""

from __future__ import annotations

from typing import Protocol

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import GangKey
from quorate.core.model.reasons import Reason
from quorate.core.queue.queue import Queue


class Explained(Protocol):
    """What is said of a gang that waits."""

    @property
    def reason(self) -> Reason:
        """Why it waits."""

    @property
    def message(self) -> str:
        """The same in words."""


class Explains(Protocol):
    """Says why gangs wait."""

    def explain(self, key: GangKey) -> Explained | None:
        """Say why this one waits; None where nothing is known of it."""


class Advances(Protocol):
    """Takes news in."""

    def is_left(self, key: GangKey) -> bool:
        """Whether a gang's news is still to be taken in."""


class Checked(Protocol):
    """What of a ``Scheduler`` is looked at."""

    @property
    def cluster(self) -> Cluster:
        """The cluster as it is known."""

    @property
    def queue(self) -> Queue:
        """Who waits for what."""

    @property
    def advance(self) -> Advances:
        """What news has still to be taken in."""

    def explainer(self, now_s: float) -> Explains:
        """Return who says why gangs wait."""
