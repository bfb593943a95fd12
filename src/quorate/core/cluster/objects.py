"""The objects in memory, as changes, from which a damaged state can be built again.

In: changes. Out: the newest change of each object. The state keeps pods, nodes, gang objects and
owners' numbers as whole values; for all other kinds, which it takes apart, the newest change is
kept here. Called by ``scheduler`` and ``turn.rebuilding``.
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
"""The kind of outcomes of our own writes, which are changes of no object."""
_JOURNAL = "journal"
COUNTED = frozenset({OUTCOME, _JOURNAL})
"""Kinds by which gangs are counted as started or not, and that come only once."""


def id_of(change: Change) -> ObjectId:
    """Return the id of a change's object: a change replaces earlier ones with the same id."""
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
    changes.JournalFound: lambda _: (_JOURNAL,),
    changes.PrepareFailed: lambda change: (OUTCOME, *change.key),
    changes.Undone: lambda change: (OUTCOME, *change.key),
    changes.PodBound: lambda change: (OUTCOME, change.uid),
    changes.BindFailed: lambda change: (OUTCOME, change.uid),
    changes.PreemptionFailed: lambda change: (OUTCOME, change.uid),
    changes.ClaimWritten: lambda change: (OUTCOME, change.claim.uid),
}


_FROM_STATE = frozenset({"pod", "gang", "owner", OUTCOME})
"""Kinds that the state itself keeps, or that are no objects."""


class Objects:
    """The newest changes of objects, by id."""

    def __init__(self) -> None:
        self._newest: dict[ObjectId, Change] = {}

    def note(self, change: Change) -> ObjectId:
        """Remember a change, or forget an object that is gone; return the object's id."""
        what = id_of(change)
        if what[0] in _FROM_STATE or isinstance(change, changes.NodeChanged):
            return what
        if _is_gone(change):
            self._newest.pop(what, None)
        else:
            self._newest[what] = change
        return what

    def all(self, cluster: Cluster) -> Iterator[tuple[ObjectId, Change]]:
        """Yield each object's newest change; pods, nodes and specs are read from ``cluster``."""
        yield from self._newest.items()
        for node in cluster.nodes.nodes:
            if node is not None:
                yield ("node", node.name), changes.NodeChanged(node)
        for gang in cluster.gangs.values():
            if gang.spec is not None:
                yield ("gang", *gang.key), changes.GangChanged(gang.spec)
        for uid, entry in cluster.pods.items():
            yield ("pod", uid), changes.PodChanged(entry.pod)
        for (namespace, owner), facts in cluster.owners.known.items():
            yield ("owner", namespace, *owner), changes.OwnerChanged(namespace, owner, *facts)


def _is_gone(change: Change) -> bool:
    """Whether the object no longer exists; one that cannot be read still exists."""
    match change:
        case changes.NodeGone(defect=defect) | changes.ObjectGone(defect=defect):
            return not defect
        case _:
            return False
