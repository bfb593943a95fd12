"""Takes changes of gang objects, and of the APIs that serve them, into the cluster.

Called by ``cluster`` with itself.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.cluster import unlisted_kinds as unserved
from quorate.core.cluster.state import ClusterState
from quorate.core.model import GangKey, changes


def gang_changed(cluster: ClusterState, change: changes.GangChanged) -> None:
    """Take a gang object's newest version."""
    gang = cluster.gang(change.spec.key)
    if gang.spec != change.spec:
        if gang.spec is not None and change.spec.min_count < gang.spec.min_count:
            cluster.reservations.end_all_of(gang.key)
        gang.set_spec(change.spec)
        cluster.owners.lacking.note(gang)
        cluster.touched.add(gang.key)
        _touch_namesakes(cluster, gang.key)


def gang_gone(cluster: ClusterState, change: changes.GangGone) -> None:
    """Forget a gang object; its pods stay."""
    gang = cluster.gangs.get(change.key)
    if gang is None or gang.spec is None:
        return
    gang.set_spec(None)
    cluster.owners.lacking.note(gang)
    cluster.touched.add(gang.key)
    _touch_namesakes(cluster, gang.key)
    cluster.drop_if_empty(gang)


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
