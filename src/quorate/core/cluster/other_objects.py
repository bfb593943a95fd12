"""Takes changes of other objects than pods, nodes and gang objects: those that are looked up.

Each goes to the part of the cluster that keeps its kind. Called by ``cluster`` with itself. To add
a kind, add a case to ``_put`` and to ``_remove``.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.cluster.gangs.gang_objects import priority_class_changed, queue_changed
from quorate.core.cluster.state import ClusterState
from quorate.core.model import (
    DeviceClass,
    Namespace,
    PriorityClass,
    Queue,
    ResourceClaim,
    ResourceSlice,
    changes,
)
from quorate.core.model.budgets import PodDisruptionBudget
from quorate.core.model.changes import AnyObject


def object_changed(cluster: ClusterState, change: changes.ObjectChanged) -> None:
    """Take an object's newest version."""
    found = change.object
    cluster.note_defect(type(found).__name__, getattr(found, "namespace", ""), found.name)
    _put(found, cluster)


def object_gone(cluster: ClusterState, change: changes.ObjectGone) -> None:
    """Forget an object that is gone, or that exists and cannot be read."""
    cluster.note_defect(change.kind, change.namespace, change.name, change.defect)
    _remove(change.kind, change.namespace, change.name, cluster)


def _put(found: AnyObject, cluster: ClusterState) -> None:
    match found:
        case Namespace():
            cluster.neighbours.relabel(found.name, dict(found.labels))
        case Queue():
            queue_changed(cluster, found.name, found)
        case PriorityClass():
            priority_class_changed(cluster, found.name, found)
        case PodDisruptionBudget():
            cluster.precedence.budgets.put(found)
        case DeviceClass() | ResourceClaim():
            cluster.devices.put(found)
        case ResourceSlice():
            cluster.devices.put(found)
            cluster.device_views.slice_changed(found)
        case _:
            cluster.storage.put(found)


def _remove(kind: str, namespace: str, name: str, cluster: ClusterState) -> None:
    match kind:
        case "Namespace":
            cluster.neighbours.relabel(name, {})
        case "Queue":
            queue_changed(cluster, name, None)
        case "PriorityClass":
            priority_class_changed(cluster, name, None)
        case "PodDisruptionBudget":
            cluster.precedence.budgets.remove(namespace, name)
        case "ResourceSlice" | "DeviceClass" | "ResourceClaim":
            cluster.devices.remove(kind, namespace, name)
        case _:
            cluster.storage.remove(kind, namespace, name)


HANDLERS: dict[type[changes.Change], Callable[..., None]] = {
    changes.ObjectChanged: object_changed,
    changes.ObjectGone: object_gone,
}
