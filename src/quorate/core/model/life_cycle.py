"""For whom a node is, and whether it is about to go: four labels of nodes in, a ``NodeLife`` out.

Only what is said of a waiting gang and of nodes reads it: placing knows labels and taints alone.
The labels are another's to write: CoreWeave's automation, or ``quorate cks-nodes``. A ``Policy``
has their names, which are CoreWeave's unless others are configured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

PRODUCTION: Final = "production"
"""The state in which a node takes pods."""
CONTROL_PLANE: Final = "control-plane"
"""For whom nodes are that take no pods of users."""
_LEAVES = "true"


class NodeLife(NamedTuple):
    """What the labels of one node say; "" where it has none."""

    state: str = ""
    reserved: str = ""
    desired: str = ""
    """For whom it is to be, where that differs from for whom it is."""
    is_leaving: bool = False
    """Whether it is about to be taken away, and cordoned."""

    @property
    def is_out_of_production(self) -> bool:
        """Whether it is in a state in which it takes no pods."""
        return self.state not in ("", PRODUCTION)

    @property
    def closed(self) -> str:
        """Why it is to take no new pods of users now, "" if it may."""
        if self.is_out_of_production:
            return f"in {self.state}"
        if self.is_leaving:
            return "about to leave"
        return f"pending for {self.desired}" if self.desired and self.state else ""

    @property
    def words(self) -> str:
        """Why it may not be for somebody, "" if nothing is known."""
        return self.closed or (f"reserved for {self.reserved}" if self.reserved else "")


class LifeCycleLabels(msgspec.Struct, frozen=True, kw_only=True):
    """The labels of nodes that a life-cycle has; the defaults are CoreWeave's.

    ``leaving`` is on nodes that are about to be taken away, with the value ``true``; they are
    cordoned too. ``reserved`` is the key of a taint as well.
    """

    state: str = "node.coreweave.cloud/state"
    reserved: str = "node.coreweave.cloud/reserved"
    desired: str = "node.coreweave.cloud/reserved-desired"
    leaving: str = "qos.coreweave.cloud/pending-preemption"

    @property
    def keys(self) -> tuple[str, str, str, str]:
        """All four names."""
        return self.state, self.reserved, self.desired, self.leaving

    def of(self, labels: Mapping[str, str], *, cordoned: bool) -> NodeLife:
        """Return what a node's labels say."""
        reserved, desired = labels.get(self.reserved, ""), labels.get(self.desired, "")
        return NodeLife(
            state=labels.get(self.state, ""),
            reserved=reserved,
            desired=desired if desired != reserved else "",
            is_leaving=cordoned and labels.get(self.leaving) == _LEAVES,
        )
