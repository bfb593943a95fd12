"""Counts what pods use of a resource again when the resource gets a column, or another one.

A resource has a column while a node lists it. When it gets one, pods on nodes that request it are
counted. This reads each pod with a node once, and only if a pod requests the resource. Called by
``state`` after each change of a node.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.nodes.encoding import PodClasses
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.cluster.priorities.precedence import Precedence


def recount(
    nodes: NodeTable, classes: PodClasses, pods: Mapping[str, PodEntry], precedence: Precedence
) -> None:
    """Count what pods use in columns that have come, gone or moved since the last call."""
    news = nodes.take_relisted()
    if news is None:
        return
    added = {name for name in news.added if classes.is_asked_for(name)}
    if not (added or news.renumbered or any(map(classes.is_asked_for, news.removed))):
        return
    entries = [entry for entry in pods.values() if entry.row >= 0]
    for entry in entries if added else ():
        amounts = [one for one in entry.pod_class.asked if one[0] in added]
        nodes.add_used(entry.row, amounts)
    precedence.recount(entries)
