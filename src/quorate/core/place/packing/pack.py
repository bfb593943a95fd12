"""Place pods of one class, and take their room. Called by ``place.greedy`` class by class.

In: a class, a count, the room. Out: pods per node. Pods that do not constrain one another are
distributed over all nodes at once; others over domains first, then over the nodes of each domain.
Only volumes are chosen pod by pod.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import SpreadConstraint, all_of
from quorate.core.model.profile import Packing
from quorate.core.model.steps import costs
from quorate.core.place.packing.domains import (
    Cells,
    domain_codes,
    even_quotas,
    fixed_slots,
    levels_of,
    most_by_cell,
    one_by_domain,
)
from quorate.core.place.packing.fill import fill, fill_cells
from quorate.core.place.packing.one_by_one import place_one_by_one
from quorate.core.room.room import Room
from quorate.core.rules.filtering import pod_slots
from quorate.core.rules.pods import inter_pod_affinity, pod_topology_spread
from quorate.core.rules.scoring import standing_score


def steps_for(nodes: int, *, is_dealt: bool) -> int:
    """Return the steps to place pods of one class, in addition to those that ``pack`` takes."""
    return (
        40 + nodes // costs.SPREAD_NODES_PER_STEP
        if is_dealt
        else 10 + nodes // costs.PACKED_NODES_PER_STEP
    )


def pack(pod_class: PodClass, count: int, room: Room, packing: Packing) -> Ints:
    """Return int64[n]: how many of ``count`` pods each node gets. Takes their room from ``room``.

    Raises OutOfStepsError if the room's steps run out while pods that constrain one another are
    placed.
    """
    count = min(count, room.volumes.most(pod_class))
    if not constrain_one_another(pod_class, room):
        pods = fill(pod_class, count, pod_slots(pod_class, room), room, packing)
        room.take(pod_class, pods)
        return pods
    if not _is_one_by_one(pod_class, room):
        pods = _pack_by_domain(pod_class, count, room, packing)
        room.take(pod_class, pods)
        return pods
    if _is_free_of_others(pod_class, room):
        return _pack_as_served(pod_class, count, room, packing)
    return _pack_one_by_one(pod_class, count, room, packing)


def constrain_one_another(pod_class: PodClass, room: Room) -> bool:
    """Whether placing one pod of the class changes where the next one may go."""
    return _is_one_by_one(pod_class, room) or _is_in_its_own_way(pod_class, room)


def _is_in_its_own_way(pod_class: PodClass, room: Room) -> bool:
    """Whether the class's rules about other pods match pods of the class itself."""
    spec = pod_class.spec
    if not pod_class.matched:
        return False
    used = [one.selector for one in pod_topology_spread.hard_ones(pod_class)]
    used += [term.selector for term in spec.anti_affinity]
    used += [all_of(spec.affinity)] if spec.affinity else []
    number = room.snapshot.neighbours.selector_id
    return any(number(selector) in pod_class.matched for selector in used)


def _pack_one_by_one(pod_class: PodClass, count: int, room: Room, packing: Packing) -> Ints:
    """Place pods one by one until the remaining ones need no choice of volumes or devices."""
    pods = np.zeros(len(room.free), np.int64)
    while (left := count - int(pods.sum())) and _is_one_by_one(pod_class, room):
        one = fill(pod_class, 1, pod_slots(pod_class, room), room, packing)
        if not one.any():
            return pods
        room.take(pod_class, one)
        pods += one
    return pods + pack(pod_class, left, room, packing) if left else pods


def _is_free_of_others(pod_class: PodClass, room: Room) -> bool:
    """Whether only the volumes that are left decide where the pods go."""
    return not _shares_a_claim(pod_class, room) and not _is_in_its_own_way(pod_class, room)


def _pack_as_served(pod_class: PodClass, count: int, room: Room, packing: Packing) -> Ints:
    """Distribute pods, choose volumes for as many as possible, and retry the others elsewhere.

    In each round either all pods get volumes, or some node runs out of volumes in its reach.
    """
    pods = np.zeros(len(room.free), np.int64)
    while (left := count - int(pods.sum())) and room.volumes.constrains(pod_class):
        slots = pod_slots(pod_class, room)
        if room.volumes.gathers(pod_class):  # on a node with room for all of them, or for most
            slots[slots < min(left, slots.max(initial=0))] = 0
        tried = fill(pod_class, left, slots, room, packing)
        served = room.volumes.served(pod_class, tried)
        if not served.any():
            return pods
        room.take(pod_class, served)
        pods += served
    return pods + pack(pod_class, left, room, packing) if left else pods


def _is_one_by_one(pod_class: PodClass, room: Room) -> bool:
    """Whether one pod's volumes or devices limit the next pod's choice on other nodes."""
    return _shares_a_claim(pod_class, room) or room.volumes.constrains(pod_class)


def _shares_a_claim(pod_class: PodClass, room: Room) -> bool:
    """Whether the first pod decides on the devices of a claim that others use too."""
    device_needs = pod_class.device_needs
    return device_needs is not None and room.device_room.is_tied(device_needs)


def is_exact(pod_class: PodClass, room: Room) -> bool:
    """Whether ``pack`` places as many pods of the class as can be placed.

    It does where pods constrain one another along one topology, not counting affinity and
    hostname. With spread along two topologies, or spread and anti-affinity along different ones,
    it is greedy.
    """
    if room.volumes.most(pod_class) <= 1:
        return True
    return not _is_one_by_one(pod_class, room) and _is_along_one_topology(pod_class, room)


def _is_along_one_topology(pod_class: PodClass, room: Room) -> bool:
    spread = _spread_over(pod_class, room)
    apart = {key for key in _apart_by(pod_class, room) if not _is_per_node(key, room)}
    return len(spread) <= 1 and len(apart | {one.topology_key for one in spread}) <= 1


def _apart_by(pod_class: PodClass, room: Room) -> set[str]:
    """Return the topologies along which the class has anti-affinity to itself."""
    number = room.snapshot.neighbours.selector_id
    return {
        term.topology_key
        for term in pod_class.spec.anti_affinity
        if number(term.selector) in pod_class.matched
    }


def _spread_over(pod_class: PodClass, room: Room) -> list[SpreadConstraint]:
    """Return the hard constraints that count its own pods."""
    return [
        one
        for one in pod_topology_spread.hard_ones(pod_class)
        if pod_topology_spread.counts_pods_of(one, pod_class, room)
    ]


def _is_per_node(topology: str, room: Room) -> bool:
    codes = room.snapshot.label(topology).codes[: len(room.free)]
    return bool(np.bincount(codes[codes >= 0], minlength=1).max() <= 1)


def _pack_by_domain(pod_class: PodClass, count: int, room: Room, packing: Packing) -> Ints:
    slots = fixed_slots(pod_class, room, [pod_class])
    if not pod_class.spec.affinity:
        return _spread_out(pod_class, count, slots, room, packing)
    near = inter_pod_affinity.attracted(pod_class, room)
    if inter_pod_affinity.is_first(pod_class, room):
        return _together(pod_class, count, np.where(near, slots, 0), room, packing)
    return _spread_out(pod_class, count, np.where(near, slots, 0), room, packing)


def _together(pod_class: PodClass, count: int, slots: Ints, room: Room, packing: Packing) -> Ints:
    """Place pods with affinity to themselves, of which none is placed yet.

    The first pod decides on the domains. A cell with room for all pods is preferred: the tightest,
    or the roomiest if pods are to be spread. Otherwise it is the cell that places the most pods,
    then the one with the most slots. Cells are tried in order of an upper bound by single rules;
    mostly the bound is reached, and one try is enough.
    """
    cells = Cells.of([term.topology_key for term in pod_class.spec.affinity], room)
    has = cells.sums(slots)
    sign = np.where((has >= count) & (packing == "most-allocated"), 1, -1)
    rank = np.empty(cells.number, np.int64)
    rank[np.lexsort((sign * has, has < count))] = np.arange(cells.number)
    most = np.minimum(_most_by_cell(pod_class, cells, slots, room), count)
    best, placed, best_rank = np.zeros(len(slots), np.int64), 0, -1
    for cell in np.lexsort((rank, -most)).tolist():
        if most[cell] < placed or (most[cell] == placed and rank[cell] > best_rank):
            break
        if room.steps is not None and best_rank >= 0:  # the first try is paid for already
            room.steps.expect()
            room.steps.take(steps_for(len(slots), is_dealt=True))
        pods = _spread_out(pod_class, count, np.where(cells.codes == cell, slots, 0), room, packing)
        here = int(pods.sum())
        if here > placed or (here == placed and rank[cell] < best_rank):
            best, placed, best_rank = pods, here, int(rank[cell])
    return best


def _most_by_cell(pod_class: PodClass, cells: Cells, slots: Ints, room: Room) -> Ints:
    """Return int64[cells]: an upper bound on the pods that each cell takes, if all go there.

    Rules between the pods are bounded one by one; spread and anti-affinity along one topology are
    combined. For a class that ``is_exact``, the bound is the number that is placed.
    """
    alone = {}
    for topology in _apart_by(pod_class, room):
        domains = Cells.of([topology], room)
        if domains.is_per_node:
            slots = np.where(domains.codes >= 0, np.minimum(slots, 1), slots)
        else:
            alone[topology] = domains
    most = cells.sums(slots)
    for domains in alone.values():
        most = np.minimum(most, cells.sums(one_by_domain(slots, cells, domains)))
    for one in _spread_over(pod_class, room):
        domains = Cells.of([one.topology_key], room)
        levels = levels_of(one, pod_class, room, domains)
        is_alone = one.topology_key in alone
        left = one_by_domain(slots, cells, domains) if is_alone else slots
        most = np.minimum(most, most_by_cell(cells, left, domains, levels))
    return most


def _place_one_by_one(pod_class: PodClass, count: int, slots: Ints, room: Room) -> Ints:
    """Place pods one by one, each into the emptiest domains of several constraints."""
    spread = []
    for one in _spread_over(pod_class, room):
        cells = Cells.of([one.topology_key], room)
        spread.append((cells, levels_of(one, pod_class, room, cells)))
    apart = []
    for topology in sorted(_apart_by(pod_class, room)):
        if _is_per_node(topology, room):
            slots = np.where(room.has_label(topology), np.minimum(slots, 1), slots)
        else:
            apart.append(Cells.of([topology], room))
    score = standing_score(pod_class, room, slots > 0)
    order = np.argsort(-score, kind="stable")
    return place_one_by_one(count, slots, order[slots[order] > 0], spread, apart, room.steps)


def _one_for_each(
    topology: str, pod_class: PodClass, slots: Ints, room: Room, packing: Packing
) -> Ints:
    """Keep one slot in each domain, on the node with the best score for one pod."""
    codes = domain_codes(topology, room)
    if _is_per_node(topology, room):
        return np.where(codes >= 0, np.minimum(slots, 1), slots)
    quotas = np.zeros(codes.max(initial=-1) + 1, np.int64)
    quotas[codes[(codes >= 0) & (slots > 0)]] = 1
    return np.where(codes < 0, slots, fill_cells(pod_class, quotas, codes, slots, room, packing))


def _spread_out(pod_class: PodClass, count: int, slots: Ints, room: Room, packing: Packing) -> Ints:
    """Distribute the pods, domain by domain if a spread constraint counts them."""
    if not _is_along_one_topology(pod_class, room):
        return _place_one_by_one(pod_class, count, slots, room)
    for topology in sorted(_apart_by(pod_class, room)):
        slots = _one_for_each(topology, pod_class, slots, room, packing)
    spread = _spread_over(pod_class, room)
    if not spread:
        return fill(pod_class, count, slots, room, packing)
    [constraint] = spread
    cells = Cells.of([constraint.topology_key], room)
    levels = levels_of(constraint, pod_class, room, cells)
    quotas = even_quotas(count, levels, cells.sums(slots))
    if cells.is_per_node:
        return np.append(quotas, 0)[cells.codes]  # the last quota is for nodes without the label
    return fill_cells(pod_class, quotas, cells.codes, slots, room, packing)
