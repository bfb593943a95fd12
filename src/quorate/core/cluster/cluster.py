"""The cluster as it is known, updated by change and by nothing else.

In: changes, one at a time, through ``apply``; and our own tentative placements, through ``assume``.
Out: ``Snapshot`` for planning, the gangs, and which of them and which nodes are different now.
Called by ``scheduler``. This is the one mutable class of the core: ``ClusterState`` has what it
holds, and here each kind of news is named beside what takes it.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.cluster import other_objects, unlisted_kinds, write_outcomes
from quorate.core.cluster.gangs import gang_objects
from quorate.core.cluster.state import ClusterState
from quorate.core.model import changes
from quorate.core.model.changes import Change


class Cluster(ClusterState):
    """Nodes, pods and gangs. Every pod is counted on at most one node, and is in one place."""

    def apply(self, change: Change) -> None:
        """Make ``change`` true here. Repeated and out-of-date changes do no harm."""
        _HANDLERS[type(change)](self, change)


_HANDLERS: dict[type[Change], Callable[..., None]] = {
    changes.NodeChanged: Cluster.node_changed,
    changes.NodeGone: Cluster.node_gone,
    changes.PodChanged: Cluster.pod_changed,
    changes.PodGone: Cluster.pod_gone,
    changes.OwnerChanged: Cluster.owner_changed,
    **gang_objects.HANDLERS,
    **write_outcomes.HANDLERS,
    **other_objects.HANDLERS,
    **unlisted_kinds.HANDLERS,
}
