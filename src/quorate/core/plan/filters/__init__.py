"""The rules that a node must pass, one file each, named as kube-scheduler's plugins are.

Each file has ``judge(pod_class, room)``: a verdict on every node for one more pod of the class, or
None where kube-scheduler would skip the rule. What the rules of ``masks`` say is kept until a node
changes; the others look at what runs where, and at what the cycle has placed. To add a rule: one
file, and a row in ``RULES``. NodeName needs no file: a pod that names its node is bound to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.plan.filters import (
    dynamic_resources,
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
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
from quorate.core.plan.filters.masks import AttributeMasks as AttributeMasks
from quorate.core.plan.filters.verdict import Verdict

if TYPE_CHECKING:
    from quorate.core.room.room import Room


class Rule(Protocol):
    """A module of this folder."""

    def judge(self, pod_class: PodClass, room: Room) -> Verdict | None:
        """Return what the rule says of each node for one more pod of the class."""


RULES: dict[str, Rule] = {
    "NodeUnschedulable": node_unschedulable,
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "NodePorts": node_ports,
    "NodeResourcesFit": node_resources_fit,
    "VolumeRestrictions": volume_restrictions,
    "NodeVolumeLimits": node_volume_limits,
    "VolumeBinding": volume_binding,
    "VolumeZone": volume_zone,
    "PodTopologySpread": pod_topology_spread,
    "InterPodAffinity": inter_pod_affinity,
    "DynamicResources": dynamic_resources,
    "NodeDeclaredFeatures": node_declared_features,
}
"""In kube-scheduler's order: a node is ruled out by the first one that it fails."""
FIRST_RULES = ("NodeUnschedulable", "TaintToleration", "NodeAffinity")
VOLUME_RULES = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
"""Of interest only to pods that use claims or disks."""
_COUNTED = (*VOLUME_RULES, "PodTopologySpread", "InterPodAffinity")
"""Rules that a number of slots does not express: they say whether one more pod may come."""


def verdicts(
    pod_class: PodClass, room: Room, names: tuple[str, ...] | None = None
) -> Iterator[tuple[str, Verdict]]:
    """Yield what each rule (of ``names``; None: all) says that applies, in their order."""
    for name in RULES if names is None else names:
        if name in pod_class.profile.disabled:
            continue
        verdict = RULES[name].judge(pod_class, room)
        if verdict is not None:
            yield name, verdict


def pod_slots(pod_class: PodClass, room: Room, counted: tuple[str, ...] = _COUNTED) -> Ints:
    """Return int64[n]: how many pods of the class each node takes, all rules considered.

    A class with host ports takes one slot a node. Of a class whose pods constrain one another,
    that holds for the next one alone. ``counted`` are the rules to consider of those that no number
    of slots expresses.
    """
    if "NodeResourcesFit" in pod_class.profile.disabled:
        count = np.full(len(room.free), node_resources_fit.SLOTS_MAX, np.int64)
    else:
        count = node_resources_fit.slots(pod_class, room.free)
    count[~room.mask(pod_class)] = 0
    if pod_class.shape.host_ports and "NodePorts" not in pod_class.profile.disabled:
        count[node_ports.taken(pod_class, room)] = 0
        count = count.clip(max=1)
    if pod_class.wants is not None:
        np.minimum(count, room.volumes.slots(pod_class), out=count)
    for _, verdict in verdicts(pod_class, room, counted):
        count[verdict.codes > 0] = 0
    if pod_class.ask is not None and "DynamicResources" not in pod_class.profile.disabled:
        together = pod_class.profile.packs_gangs
        count = dynamic_resources.limit(pod_class.ask, count, room, together=together)
    return count


def fits_alone(pod_class: PodClass, room: Room, rows: Ints | None = None) -> Mask:
    """Return bool[m]: nodes (of these rows; None: all) that pass the rules that look at one node.

    Together with ``open_to`` that is where ``pod_slots`` has a slot.
    """
    if rows is None:
        mask, free = room.mask(pod_class).copy(), room.free
    else:
        mask, free = room.masks.on(pod_class, room, rows.tolist()), room.free[rows]
    if "NodeResourcesFit" not in pod_class.profile.disabled:
        for column, amount in pod_class.checked:
            mask &= free[:, column] >= amount
        if pod_class.missing:
            mask[:] = False
    if pod_class.shape.host_ports and "NodePorts" not in pod_class.profile.disabled:
        mask &= ~node_ports.taken(pod_class, room, rows)
    return mask


def fits_on(pod_class: PodClass, room: Room, row: int, free: Sequence[int]) -> bool:
    """Whether a node passes the rules that look at one node; ``free`` is its room by resource."""
    if not room.mask(pod_class)[row]:
        return False
    disabled = pod_class.profile.disabled
    if "NodeResourcesFit" not in disabled and (
        pod_class.missing or any(free[c] < a for c, a in pod_class.checked)
    ):
        return False
    if not pod_class.shape.host_ports or "NodePorts" in disabled:
        return True
    return not node_ports.taken(pod_class, room, np.array([row])).any()


def open_to(pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: nodes that pass the rules that look at other pods, volumes or devices."""
    mask = np.ones(len(room.free), np.bool_)
    if pod_class.wants is not None:
        mask &= room.volumes.slots(pod_class) > 0
    for _, verdict in verdicts(pod_class, room, _COUNTED):
        mask &= verdict.codes == 0
    if pod_class.ask is not None and "DynamicResources" not in pod_class.profile.disabled:
        count = dynamic_resources.limit(pod_class.ask, mask.astype(np.int64), room, together=False)
        mask &= count > 0
    return mask
