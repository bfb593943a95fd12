"""Which rule between a gang's own members keeps some of them from fitting, though nodes have room.

In: a class of the gang and the room before it is placed. Out: a phrase with the rule and the
counts, or "". Called by ``words.diagnosis`` for a class whose pods do not all fit.
"""

from __future__ import annotations

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodTerm, SpreadConstraint
from quorate.core.place.packing.domains import Cells, even_quotas, fixed_slots, levels_of
from quorate.core.room.room import Room
from quorate.core.rules.pods import inter_pod_affinity, pod_topology_spread
from quorate.core.rules.resources import node_ports


def own_rule(pod_class: PodClass, count: int, room: Room) -> str:
    """Say which rule between the pods admits fewer than ``count`` of them; "" if none does.

    Each rule is tested alone, together with the rules that are not between the pods. If those
    leave too little room already, the rule is not the cause.
    """
    if node_ports.concerns(pod_class):
        return ""  # each node takes one; the filter's message says so already
    slots = fixed_slots(pod_class, room, [pod_class])
    if int(slots.sum()) < count:
        return ""
    found, spec = [], pod_class.spec
    found += [_apart(term, pod_class, count, slots, room) for term in spec.anti_affinity]
    for one in pod_topology_spread.hard_ones(pod_class):
        if pod_topology_spread.counts_pods_of(one, pod_class, room):
            found.append(_spread(one, pod_class, count, slots, room))
    if spec.affinity:
        found.append(_together(pod_class, count, slots, room))
    words = "; ".join(one for one in found if one)
    return words[:1].upper() + words[1:]


def _apart(term: PodTerm, pod_class: PodClass, count: int, slots: Ints, room: Room) -> str:
    number = room.snapshot.neighbours.selector_id(term.selector)
    if number not in pod_class.matched:
        return ""
    cells = Cells.of([term.topology_key], room)
    if slots[cells.codes < 0].any():
        return ""  # nodes without the label take any number
    domains = int((cells.sums(slots) > 0).sum())
    if domains >= count:
        return ""
    needed = f"{count} {_called(cells)}"
    return inter_pod_affinity.apart_words(term.topology_key, needed, domains)


def _spread(
    constraint: SpreadConstraint, pod_class: PodClass, count: int, slots: Ints, room: Room
) -> str:
    cells = Cells.of([constraint.topology_key], room)
    levels = levels_of(constraint, pod_class, room, cells)
    most = int(even_quotas(count, levels, cells.sums(slots)).sum())
    if most >= count:
        return ""
    has = int(levels.in_minimum.sum()) if levels.too_few else None
    return pod_topology_spread.spread_words(constraint, has, most, count)


def _together(pod_class: PodClass, count: int, slots: Ints, room: Room) -> str:
    if not inter_pod_affinity.attracts(pod_class, pod_class, room):
        return ""
    keys = [term.topology_key for term in pod_class.spec.affinity]
    cells = Cells.of(keys, room)
    if inter_pod_affinity.is_first(pod_class, room):
        most = int(cells.sums(slots).max(initial=0))
        where = "the roomiest domain has"
    else:
        most = int(slots[inter_pod_affinity.attracted(pod_class, room)].sum())
        where = "the domains where such pods run have"
    if most >= count:
        return ""
    return inter_pod_affinity.together_words(keys, where, most, count)


def _called(cells: Cells) -> str:
    return "nodes" if cells.is_per_node else "domains"
