"""The rules that a node must pass, one file each, named as kube-scheduler's plugins are.

``ATTRIBUTE_RULES`` look at what nodes are (their answer is kept until a node changes); ports and
resources look at what is used, ``VOLUME_RULES`` at storage, ``NEIGHBOUR_RULES`` at which pods are
where. To add a rule: one file, and a row in the table. The NodeName rule needs no file: a pod that
names its node is bound to it, and is counted there.
"""

from __future__ import annotations

from quorate.core.plan.filters import (
    inter_pod_affinity,
    node_affinity,
    node_ports,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    pod_topology_spread,
    taint_toleration,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from quorate.core.state.encoding import Ints, Mask, PodClass
from quorate.core.state.snapshot import Snapshot

ATTRIBUTE_RULES = (node_unschedulable, taint_toleration, node_affinity)
"""In kube-scheduler's order: a node is ruled out by the first one that it fails."""
VOLUME_RULES = (volume_restrictions, node_volume_limits, volume_binding, volume_zone)
"""In kube-scheduler's order; of interest only to pods that use claims or disks."""
NEIGHBOUR_RULES = (pod_topology_spread, inter_pod_affinity)
"""They change with each pod that is placed, ours of the same gang included."""


class AttributeMasks:
    """Which nodes pass the attribute rules, by class, kept until a node's attributes change."""

    def __init__(self) -> None:
        self._masks: dict[int, tuple[int, int, Mask]] = {}

    def of(self, pod_class: PodClass, snapshot: Snapshot) -> Mask:
        """Return bool[n]: alive nodes that pass every attribute rule for the class."""
        version, rows, mask = self._masks.get(pod_class.base, (-1, -1, snapshot.alive))
        if version == snapshot.attributes_version and rows == len(snapshot):
            return mask
        mask = snapshot.alive.copy()
        for rule in ATTRIBUTE_RULES:
            mask &= rule.passes(pod_class.shape, snapshot)
        mask.setflags(write=False)
        self._masks[pod_class.base] = snapshot.attributes_version, len(snapshot), mask
        return mask


def pod_slots(pod_class: PodClass, free: Ints, mask: Mask, snapshot: Snapshot) -> Ints:
    """Return int64[n]: how many pods of the class each node takes, all rules considered.

    ``free`` is int64[n, r] (it may differ from the snapshot's while a gang is being placed) and
    ``mask`` is the class's attribute mask. A class with host ports takes one slot a node.
    """
    count = node_resources_fit.slots(pod_class, free)
    count[~mask] = 0
    if pod_class.shape.host_ports:
        count[~node_ports.passes(pod_class.shape, snapshot)] = 0
        count = count.clip(max=1)
    return count
