"""Objects that rules look up, besides pods and nodes: each goes to the part that keeps its kind.

Called by ``cluster`` with itself. To add a kind: a case in both functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.core.changes import AnyObject
from quorate.core.model import DeviceClass, Namespace, ResourceClaim, ResourceSlice
from quorate.core.model.budgets import PodDisruptionBudget
from quorate.core.model.selects import ReplicaSet, ReplicationController, Service, StatefulSet

if TYPE_CHECKING:
    from quorate.core.state.cluster import Cluster


def put(found: AnyObject, cluster: Cluster) -> None:
    """Take an object's newest version."""
    match found:
        case Namespace():
            cluster.neighbours.put_namespace(found)
            cluster.ledger.forget()
        case Service() | ReplicationController() | ReplicaSet() | StatefulSet():
            cluster.spread_defaults.put(found)
        case PodDisruptionBudget():
            cluster.precedence.budgets.put(found)
        case ResourceSlice() | DeviceClass() | ResourceClaim():
            cluster.devices.put(found)
        case _:
            cluster.storage.put(found)


def remove(kind: str, namespace: str, name: str, cluster: Cluster) -> None:
    """Forget an object; ``kind`` is the name of its struct."""
    match kind:
        case "Namespace":
            cluster.neighbours.remove_namespace(name)
            cluster.ledger.forget()
        case "Service" | "ReplicationController" | "ReplicaSet" | "StatefulSet":
            cluster.spread_defaults.remove(kind, namespace, name)
        case "PodDisruptionBudget":
            cluster.precedence.budgets.remove(namespace, name)
        case "ResourceSlice" | "DeviceClass" | "ResourceClaim":
            cluster.devices.remove(kind, namespace, name)
        case _:
            cluster.storage.remove(kind, namespace, name)
