"""What pods use of a resource is counted anew when the resource gets a column, or another one.

A resource has a column while some node lists it. Pods that asked for it before are counted then:
one look at each pod that has a node, only if some pod asks for it. Called by ``state.cluster``
after each change of a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.core.state.cluster import Cluster


def recount(cluster: Cluster) -> None:
    """Count what pods use in columns that have come, gone or moved since the last call."""
    news = cluster.nodes.take_relisted()
    if news is None:
        return
    came = {name for name in news.came if cluster.classes.is_asked_for(name)}
    if not (came or news.renumbered or any(map(cluster.classes.is_asked_for, news.went))):
        return
    entries = [entry for entry in cluster.pods.values() if entry.row >= 0]
    for entry in entries if came else ():
        amounts = [one for one in entry.pod_class.asked if one[0] in came]
        cluster.nodes.add_used(entry.row, amounts)
    cluster.precedence.recount(entries)
