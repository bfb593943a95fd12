"""What could help a gang that was tried in vain, besides a row of its own that grows.

In: a pod class and the room. Out: names of what its rules look at on other nodes (interests), what
news there are by the same names, and how many pods there may be room for. Called by ``waking``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from quorate.core.cluster.labels.neighbours import Column
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodSelector, SpreadConstraint, all_of
from quorate.core.place.packing.domains import fixed_slots
from quorate.core.place.packing.fill import Packing
from quorate.core.place.packing.pack import is_exact, pack
from quorate.core.plan.filters import inter_pod_affinity, pod_topology_spread
from quorate.core.queue.wakeups.buckets import short_of
from quorate.core.room.room import Room

DEVICES = "devices"
"""Devices are free or new, or device classes are others."""
TAINTS = "taints"
"""A node came or went, or has other taints, or was cordoned, or not any more."""
RESOURCES = "resources"
"""Nodes have other resources than before, or devices stand for others."""
UNKNOWN = "unknown"
"""Any pod came or went that some selector means."""

Interest = tuple[str, str | int] | str


def label(key: str) -> Interest:
    """Name the news that a node has another value of a label, or came or went with one."""
    return "label", key


def selector(number: int) -> Interest:
    """Name the news that pods came or went that a selector means, or with a term of it."""
    return "selector", number


def interests_of(pod_class: PodClass, room: Room) -> set[Interest]:
    """Return what the rules of a class look at on other nodes than the one in question."""
    found: set[Interest] = set()
    for one in pod_topology_spread.hard_ones(pod_class):
        found |= _of_constraint(one, pod_class, room)
    if not inter_pod_affinity.is_disabled(pod_class):
        shape = pod_class.shape
        for term in (*shape.affinity, *shape.anti_affinity):
            found |= {label(term.topology_key), *_number(term.selector, room)}
        if shape.affinity:
            found |= _number(all_of(shape.affinity), room)
        for key in room.terms(pod_class, Column.REPELLING):
            found |= {label(key.topology), selector(key.selector)}
    if pod_class.ask is not None or pod_class.shape.extended:
        found.add(DEVICES)
    return found


def _of_constraint(one: SpreadConstraint, pod_class: PodClass, room: Room) -> set[Interest]:
    found = {label(one.topology_key), *_number(one.selector, room)}
    if one.honor_taints:
        found.add(TAINTS)
    if one.honor_affinity:
        shape = pod_class.shape
        found |= {label(key) for key, _ in shape.node_selector}
        for term in shape.required_terms or ():
            found |= {label(requirement.key) for requirement in term.expressions}
    return found


def _number(of: PodSelector, room: Room) -> set[Interest]:
    """Return the interest in a selector; one that nobody uses any more is of none."""
    try:
        return {selector(room.snapshot.neighbours.selector_id(of))}
    except KeyError:
        return {UNKNOWN}


def looks_further(pod_class: PodClass, room: Room) -> bool:
    """Whether more than room and attributes of a node decides if it takes a pod of the class."""
    has_own = pod_class.shape.host_ports or pod_class.wants is not None
    return bool(has_own or interests_of(pod_class, room))


def may_fit(
    classes: Sequence[tuple[PodClass, int]], need: int, room: Room, packing: Packing
) -> bool:
    """Whether there may be room for ``need`` of these pods (0: for any), by all rules.

    For pods of one class that is found out, where it can be without a search. Of several classes
    those rules are left out that further pods among them relax. What claims get is not added up:
    where one pod has room, all may.
    """
    movers = [pod_class for pod_class, _ in classes]
    counts = [count for _, count in classes]
    slots = []
    for pod_class, count in classes:
        if pod_class.wants is not None or pod_class.ask is not None:
            slots.append(count if fixed_slots(pod_class, room, movers).any() else 0)
        else:
            slots.append(int(fixed_slots(pod_class, room, movers).sum()))
    if short_of(counts, need, slots):
        return False
    pod_class, count = classes[0]
    if len(classes) > 1 or not is_exact(pod_class, room):
        return True
    return int(pack(pod_class, count, room.copy(), packing).sum()) >= max(need, 1)


def news_of(
    labels: Iterable[str], stirred: Collection[int], *, taints: bool, devices: bool
) -> list[Interest]:
    """Return the names of what happened."""
    found = [*map(label, sorted(labels)), *map(selector, sorted(stirred))]
    found += [TAINTS] if taints else []
    found += [DEVICES] if devices else []
    found += [UNKNOWN] if stirred else []
    return found
