"""Objects that rules look up, besides pods and nodes: each goes to the part that keeps its kind.

Called by ``cluster`` with its parts. To add a kind: a case in both functions.
"""

from __future__ import annotations

from quorate.core.changes import AnyObject
from quorate.core.model import Namespace
from quorate.core.model.budgets import PodDisruptionBudget
from quorate.core.model.selects import ReplicaSet, ReplicationController, Service, StatefulSet
from quorate.core.state.budgets import Budgets
from quorate.core.state.neighbours import Neighbours
from quorate.core.state.spread_defaults import SpreadDefaults
from quorate.core.state.storage import Storage


def put(
    found: AnyObject,
    neighbours: Neighbours,
    defaults: SpreadDefaults,
    storage: Storage,
    budgets: Budgets,
) -> None:
    """Take an object's newest version."""
    match found:
        case Namespace():
            neighbours.put_namespace(found)
        case Service() | ReplicationController() | ReplicaSet() | StatefulSet():
            defaults.put(found)
        case PodDisruptionBudget():
            budgets.put(found)
        case _:
            storage.put(found)


def remove(
    kind: str,
    namespace: str,
    name: str,
    neighbours: Neighbours,
    defaults: SpreadDefaults,
    storage: Storage,
    budgets: Budgets,
) -> None:
    """Forget an object; ``kind`` is the name of its struct."""
    match kind:
        case "Namespace":
            neighbours.remove_namespace(name)
        case "Service" | "ReplicationController" | "ReplicaSet" | "StatefulSet":
            defaults.remove(kind, namespace, name)
        case "PodDisruptionBudget":
            budgets.remove(namespace, name)
        case _:
            storage.remove(kind, namespace, name)
