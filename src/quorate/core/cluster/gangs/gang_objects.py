"""Takes changes of gang objects, of what they name, and of their APIs into the cluster.

Called by ``cluster`` with itself.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from quorate.core.cluster import unlisted_kinds as unserved
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.state import ClusterState
from quorate.core.model import GangKey, PriorityClass, Queue, changes


def gang_changed(cluster: ClusterState, change: changes.GangChanged) -> None:
    """Take a gang object's newest version."""
    gang = cluster.gang(change.spec.key)
    if gang.spec != change.spec:
        if gang.spec is not None and change.spec.min_count < gang.spec.min_count:
            cluster.reservations.end_all_of(gang.key)
        gang.set_spec(change.spec)
        _rank(gang, cluster)
        cluster.owners.lacking.note(gang)
        cluster.touched.add(gang.key)
        _touch_namesakes(cluster, gang.key)


def gang_gone(cluster: ClusterState, change: changes.GangGone) -> None:
    """Forget a gang object; its pods stay."""
    gang = cluster.gangs.get(change.key)
    if gang is None or gang.spec is None:
        return
    gang.set_spec(None)
    _rank(gang, cluster)
    cluster.owners.lacking.note(gang)
    cluster.touched.add(gang.key)
    _touch_namesakes(cluster, gang.key)
    cluster.drop_if_empty(gang)


def queue_changed(cluster: ClusterState, name: str, queue: Queue | None) -> None:
    """Take a queue's newest version; None: it is gone. Its gangs are tried anew."""
    before, known = len(cluster.queues), cluster.queues.pop(name, None)
    if queue is not None:
        cluster.queues[name] = queue
        if known is not None and replace(known, allocated=queue.allocated) == queue:
            return  # it says what is taken of it, and we wrote that
    elif known is None:
        return
    are_first = 0 in (before, len(cluster.queues))  # while none is known, none is asked for
    for key, gang in cluster.gangs.items():
        if gang.spec is not None and gang.spec.queue and (are_first or gang.spec.queue == name):
            cluster.touched.add(key)


def priority_class_changed(
    cluster: ClusterState, name: str, priority_class: PriorityClass | None
) -> None:
    """Take a priority class's newest version; None: it is gone. Its gangs are put in order anew."""
    value = priority_class.value if priority_class is not None else None
    if cluster.priority_classes.get(name) == value:
        return
    if value is None:
        del cluster.priority_classes[name]
    else:
        cluster.priority_classes[name] = value
    for key, gang in cluster.gangs.items():
        if gang.spec is not None and gang.spec.priority_class == name:
            _rank(gang, cluster)
            cluster.touched.add(key)


def _rank(gang: GangEntry, cluster: ClusterState) -> None:
    """Give the gang the priority of the class that its object names, if there is such a class."""
    named = gang.spec.priority_class if gang.spec is not None else ""
    gang.class_priority = cluster.priority_classes.get(named)


def _touch_namesakes(cluster: ClusterState, key: GangKey) -> None:
    """Touch gangs with the same name in other APIs: the reason of a missing object names them."""
    for dialect in cluster.served:
        if key._replace(dialect=dialect) in cluster.gangs:
            cluster.touched.add(key._replace(dialect=dialect))


def dialect_served(cluster: ClusterState, change: changes.DialectServed) -> None:
    """Note whether the API server serves the objects of a dialect, and lets us list them."""
    unserved.note(cluster, change.dialect, change.problem, change.hint)
    if cluster.served.get(change.dialect) == change.served:
        return
    cluster.served[change.dialect] = change.served
    cluster.touched.update(key for key in cluster.gangs if key.dialect == change.dialect)


HANDLERS: dict[type[changes.Change], Callable[..., None]] = {
    changes.GangChanged: gang_changed,
    changes.GangGone: gang_gone,
    changes.DialectServed: dialect_served,
}
