"""The smallest change of nodes that gives a gang the room that it lacks.

In: a gang's waiting members and the room. Out: nodes to uncordon, or the node that comes nearest to
holding one member more. Called by ``diagnosis``; ``fixes`` has what is to be mended in objects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.nodes.slots import slots_of
from quorate.core.model import policy
from quorate.core.model.quantity import format_amount
from quorate.core.model.selectors import Toleration
from quorate.core.model.steps import Steps
from quorate.core.place.gang import place_gang_within
from quorate.core.place.greedy import Demand, Placement
from quorate.core.place.packing.fill import Packing
from quorate.core.room.room import Room
from quorate.core.rules.masks import mask_of
from quorate.core.rules.nodes.node_unschedulable import CORDON
from quorate.core.rules.pods import inter_pod_affinity, pod_topology_spread
from quorate.core.rules.resources.node_resources_fit import free_of
from quorate.core.words.counting import counted

_CORDONED = Toleration(key=CORDON.key, operator="Exists")
"""What pods would need to run on cordoned nodes."""


def usable_by(pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: nodes that pass the rules about attributes, were they not cordoned.

    They bear the labels of the topologies that the pods' rules name.
    """
    usable: Mask = mask_of(pod_class.tolerating(_CORDONED), room).copy()
    for _, key in topology_keys(pod_class, room):
        usable &= room.has_label(key)
    return usable


def topology_keys(pod_class: PodClass, room: Room) -> list[tuple[str, str]]:
    """Return the fields with labels that a node must bear to take such a pod, and the labels."""
    hard = pod_topology_spread.hard_ones(pod_class)
    found = [
        (pod_topology_spread.topology_field(index), one.topology_key)
        for index, one in enumerate(pod_class.spec.spread)
        if one in hard
    ]
    if inter_pod_affinity.wants_pods_that_are_there(pod_class, room):
        found += [
            (inter_pod_affinity.topology_field(index), term.topology_key)
            for index, term in enumerate(pod_class.spec.affinity)
        ]
    return found


def unknown_key(pod_class: PodClass, room: Room) -> str:
    """Return the first such field whose label no node bears, and the label; "" if there is none."""
    for field, key in topology_keys(pod_class, room):
        if room.snapshot.nodes_alive and not (room.has_label(key) & room.snapshot.alive).any():
            return f"{field} is {key}, a label that no node has"
    return ""


def nearest_miss(pod_class: PodClass, room: Room, usable: Mask) -> str:
    """Name the node that lacks the smallest part of a request, and what it lacks.

    It is one of the ``usable`` nodes (bool[n]). Nodes that have nothing of a resource are none,
    while others have some; nor are nodes with room for a member that cannot hold another.
    """
    backed = room.snapshot.table.resources.backed
    sizes = [room.snapshot.sizes(name) for name, _ in pod_class.asked if name not in backed]
    has_some = usable & np.all([size > 0 for size in sizes], axis=0)
    candidates = has_some if has_some.any() else usable
    slots, most = _slots_now_and_empty(pod_class, room)
    return _lacks_least(pod_class, room, candidates & ((slots == 0) | (slots < most)))


def to_free(pod_class: PodClass, room: Room, usable: Mask) -> str:
    """Name the node where the least has to be freed for one member more, and what."""
    slots, most = _slots_now_and_empty(pod_class, room)
    return _lacks_least(pod_class, room, usable & (slots < most))


def _slots_now_and_empty(pod_class: PodClass, room: Room) -> tuple[Ints, Ints]:
    """Return how many members each node holds by its resources, now and were it empty."""
    size = np.maximum(room.snapshot.allocatable, room.snapshot.free)  # devices are not listed
    return slots_of(pod_class, room.free), slots_of(pod_class, size)


def _lacks_least(pod_class: PodClass, room: Room, nodes: Mask) -> str:
    """Name the node, of these that are not cordoned, that lacks least for one member more."""
    candidates = np.flatnonzero(nodes & mask_of(pod_class, room))
    if not len(candidates):
        return ""
    more = slots_of(pod_class, room.free[candidates]) + 1
    lacking = [
        (name, amount, amount * more - free_of(name, room, candidates))
        for name, amount in pod_class.asked
    ]
    missing = np.zeros(len(candidates))
    for _, amount, lack in lacking:
        missing += np.clip(lack, 0, None) / amount
    missing[missing == 0.0] = np.inf  # another rule refuses these nodes
    nearest = int(np.argmin(missing))
    if not np.isfinite(missing[nearest]):
        return ""
    lacks = [
        f"{format_amount(name, int(lack[nearest]))} {name}"
        for name, _, lack in lacking
        if lack[nearest] > 0
    ]
    node = room.snapshot.node(int(candidates[nearest])).name
    return f"node {node} lacks {' and '.join(lacks)}"


def nodes_to_uncordon(demand: Demand, room: Room, packing: Packing) -> list[str]:
    """Return the fewest cordoned nodes with which the gang would start; none if there are none.

    Of nodes that hold equally many members the first by name comes first.
    """
    snapshot = room.snapshot
    if not snapshot.unschedulable.any():
        return []
    classes = {one: one.tolerating(_CORDONED) for one, _ in demand.classes}
    wishes = Demand(
        tuple((classes[one], count) for one, count in demand.classes),
        demand.need,
        demand.task_minima,
    )
    holds = np.zeros(len(snapshot), np.int64)
    for (before, _), (after, _) in zip(demand.classes, wishes.classes, strict=True):
        opened = mask_of(after, room) & ~mask_of(before, room)
        holds[opened] += slots_of(after, room.free)[opened]
    names = {row: snapshot.node(row).name for row in np.flatnonzero(holds).tolist()}
    rows = sorted(names, key=lambda row: (-int(holds[row]), names[row]))
    steps = Steps(policy.EXPLAIN_STEPS_MAX)

    def starts_with(count: int) -> bool:
        trial = room.copy()
        trial.close(rows[count:])
        found = place_gang_within(wishes, trial, packing, steps)
        return isinstance(found, Placement) and found.placed >= (demand.need or demand.wanted)

    if not rows or not starts_with(len(rows)):
        return []
    count = 1 + bisect_left(range(1, len(rows)), True, key=starts_with)
    return sorted(names[row] for row in rows[:count])


def uncordon_words(nodes: Sequence[str]) -> str:
    """Say which nodes are to be uncordoned."""
    named = list(nodes[: policy.LISTED_MAX])
    if others := len(nodes) - len(named):
        return f"uncordon {', '.join(named)} and {counted(others, 'more node')}"
    *first, last = named
    return f"uncordon {', '.join(first)}{' and ' * bool(first)}{last}"


def rule_remedy(rule: str) -> str:
    """Return what people can do about a rule among the members; ``rule`` as in ``own_rule``."""
    if rule.startswith("Spread"):
        return pod_topology_spread.REMEDY
    return "free or add room for that rule, or loosen it"
