"""What could help a gang that was tried in vain, besides a row of its own that grows.

In: a pod class and the room. Out: names of what its rules look at on other nodes (interests), what
news there are by the same names, and how many pods there may be room for. Called by ``waking``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.place.packing.domains import fixed_slots
from quorate.core.place.packing.fill import Packing
from quorate.core.place.packing.pack import is_exact, pack
from quorate.core.queue.wakeups.buckets import short_of
from quorate.core.room.room import Room
from quorate.core.rules.interests import DEVICES, TAINTS, UNKNOWN, Interest, label, selector
from quorate.core.rules.table import FILTERS


def interests_of(pod_class: PodClass, room: Room) -> set[Interest]:
    """Return what the rules of a class look at on other nodes than the one in question."""
    found: set[Interest] = set()
    for rule in FILTERS:
        if rule.interests is not None and rule.name not in pod_class.profile.disabled:
            found |= rule.interests(pod_class, room)
    return found


def looks_further(pod_class: PodClass, room: Room) -> bool:
    """Whether more than room and attributes of a node decides if it takes a pod of the class."""
    is_concerned = any(
        rule.concerns is not None and rule.concerns(pod_class)
        for rule in FILTERS
        if rule.name not in pod_class.profile.disabled
    )
    return is_concerned or bool(interests_of(pod_class, room))


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
        if pod_class.volume_needs is not None or pod_class.device_needs is not None:
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
    labels: Iterable[str], changed_selectors: Collection[int], *, taints: bool, devices: bool
) -> list[Interest]:
    """Return the names of what happened."""
    found = [*map(label, sorted(labels)), *map(selector, sorted(changed_selectors))]
    found += [TAINTS] if taints else []
    found += [DEVICES] if devices else []
    found += [UNKNOWN] if changed_selectors else []
    return found
