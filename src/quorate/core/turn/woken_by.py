"""Which changes may help a gang that was tried in vain, besides more room on its nodes.

In: a pod class and the room. Out: interests (names of what its rules read on other nodes), news by
the same names, and whether there may be room. Called by ``waking``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model.profile import Packing
from quorate.core.place.packing.domains import fixed_slots
from quorate.core.place.packing.pack import is_exact, pack
from quorate.core.queue.wakeups.buckets import short_of
from quorate.core.room.room import Room
from quorate.core.rules.interests import DEVICES, TAINTS, UNKNOWN, Interest, label, selector
from quorate.core.rules.table import FILTERS


def interests_of(pod_class: PodClass, room: Room) -> set[Interest]:
    """Return what the rules of a class read on other nodes than the one being filtered."""
    found: set[Interest] = set()
    for rule in FILTERS:
        if rule.interests is not None:
            found |= rule.interests(pod_class, room)
    return found


def looks_further(pod_class: PodClass, room: Room) -> bool:
    """Whether a rule for the class reads more than a node's room and attributes."""
    is_concerned = any(rule.concerns is not None and rule.concerns(pod_class) for rule in FILTERS)
    return is_concerned or bool(interests_of(pod_class, room))


def may_fit(
    classes: Sequence[tuple[PodClass, int]], need: int, room: Room, packing: Packing
) -> bool:
    """Whether there may be room for ``need`` of these pods (0: for any one), by all rules.

    For pods of one class the answer is exact where that needs no search. For several classes, rules
    are left out that placing other pods among them may relax. Claims are not summed up: if one pod
    with claims has room, all may have.
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
    """Return news as interests: keys of labels, numbers of selectors, taints, devices."""
    found = [*map(label, sorted(labels)), *map(selector, sorted(changed_selectors))]
    found += [TAINTS] if taints else []
    found += [DEVICES] if devices else []
    found += [UNKNOWN] if changed_selectors else []
    return found
