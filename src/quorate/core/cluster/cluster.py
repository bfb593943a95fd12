"""The known state of the cluster, updated by changes only.

In: changes, one at a time, through ``apply``; and our own tentative placements, through ``assume``.
Out: ``Snapshot`` for planning, the gangs, and which gangs and nodes have changed. Called by
``scheduler``. ``ClusterState`` holds the state; this module maps each kind of change to its
handler.
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
        """Take in a change. Repeated and outdated changes are harmless. KeyError: unknown kind."""
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
