"""The objects in memory, as changes: all that the state can be built from again, if it is damaged.

In: changes. Out: the newest change of each object. Pods, nodes, gangs' objects and what owners said
are values that the state holds one by one; of all other kinds the newest change is remembered here,
because the state takes them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import changes
from quorate.core.model.changes import Change

ObjectId = tuple[str, ...]
"""The kind of a change, then what names the object: a pod's uid, a node's name."""
OUTCOME = "outcome"
"""The kind of what became of our own writes: news of no object."""


def id_of(change: Change) -> ObjectId:
    """Return what a change is about: changes of the same id replace one another."""
    return _IDS[type(change)](change)


def _id_of_object(one: Any) -> ObjectId:  # noqa: ANN401  a union of many structs
    return (type(one).__name__, getattr(one, "namespace", ""), one.name)


_IDS: dict[type[Change], Callable[[Any], ObjectId]] = {
    changes.PodChanged: lambda change: ("pod", change.pod.uid),
    changes.PodGone: lambda change: ("pod", change.uid),
    changes.NodeChanged: lambda change: ("node", change.node.name),
    changes.NodeGone: lambda change: ("node", change.name),
    changes.GangChanged: lambda change: ("gang", *change.spec.key),
    changes.GangGone: lambda change: ("gang", *change.key),
    changes.ObjectChanged: lambda change: _id_of_object(change.object),
    changes.ObjectGone: lambda change: (change.kind, change.namespace, change.name),
    changes.DialectServed: lambda change: ("dialect", change.dialect),
    changes.KindServed: lambda change: ("served", change.kind),
    changes.OwnerChanged: lambda change: ("owner", change.namespace, *change.owner),
    changes.JournalFound: lambda _: ("journal",),
    changes.PrepareFailed: lambda change: (OUTCOME, *change.key),
    changes.Undone: lambda change: (OUTCOME, *change.key),
    changes.PodBound: lambda change: (OUTCOME, change.uid),
    changes.BindFailed: lambda change: (OUTCOME, change.uid),
    changes.PreemptionFailed: lambda change: (OUTCOME, change.uid),
    changes.BindingAdmitted: lambda change: (OUTCOME, change.uid),
    changes.ClaimWritten: lambda change: (OUTCOME, change.claim.uid),
}


_FROM_STATE = frozenset({"pod", "gang", "owner", OUTCOME})
"""Kinds that are read from the state itself, or that are no objects."""


class Objects:
    """The newest changes of objects, by id."""

    def __init__(self) -> None:
        self._newest: dict[ObjectId, Change] = {}

    def note(self, change: Change) -> ObjectId:
        """Remember a change, or forget the object that is gone; return what it is about."""
        what = id_of(change)
        if what[0] in _FROM_STATE or isinstance(change, changes.NodeChanged):
            return what
        if _is_gone(change):
            self._newest.pop(what, None)
        else:
            self._newest[what] = change
        return what

    def all(self, cluster: Cluster) -> Iterator[tuple[ObjectId, Change]]:
        """Yield what was told of each object last; ``cluster`` has the pods, nodes and specs."""
        yield from self._newest.items()
        for node in cluster.nodes.nodes:
            if node is not None:
                yield ("node", node.name), changes.NodeChanged(node)
        for gang in cluster.gangs.values():
            if gang.spec is not None:
                yield ("gang", *gang.key), changes.GangChanged(gang.spec)
        for uid, entry in cluster.pods.items():
            yield ("pod", uid), changes.PodChanged(entry.pod)
        for (namespace, owner), makes in cluster.owners.makes.items():
            yield ("owner", namespace, *owner), changes.OwnerChanged(namespace, owner, makes)


def _is_gone(change: Change) -> bool:
    """Whether nothing is left to know: an object that cannot be read is there still."""
    match change:
        case changes.NodeGone(defect=defect) | changes.ObjectGone(defect=defect):
            return not defect
        case _:
            return False
