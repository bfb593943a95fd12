"""Ask all rules of the table: which nodes take a pod, how many pods each takes, and why not.

In: a pod class and the room. Out: verdicts, counts (int64[n]) and masks (bool[n]), n rows. What
rules of kind NODE say is kept as a mask (``masks``); the others look at what runs where, and at
what this decision has placed. NodeName needs no rule: a pod that names its node is bound already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.nodes.slots import SLOTS_MAX
from quorate.core.room.room import Room
from quorate.core.rules.masks import mask_of, mask_on
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.table import BEYOND_NODE, BUT_FOR_PODS, FILTERS, ON_USE
from quorate.core.rules.verdict import Verdict


def verdicts(
    pod_class: PodClass, room: Room, rules: Iterable[Rule] = FILTERS
) -> Iterator[tuple[str, Verdict]]:
    """Yield the name and the verdict of each of the rules that applies, in their order."""
    for rule in rules:
        if rule.judge is None:
            continue
        verdict = rule.judge(pod_class, room)
        if verdict is not None:
            yield rule.name, verdict


def pod_slots(pod_class: PodClass, room: Room) -> Ints:
    """Return int64[n]: how many more pods of the class each node takes, by all rules.

    Of a class whose pods constrain one another, that holds for the next one alone.
    """
    return _slots(pod_class, room, BEYOND_NODE)


def own_slots(pod_class: PodClass, room: Room) -> Ints:
    """Return int64[n]: as ``pod_slots``, but for the rules that look at other pods' labels."""
    return _slots(pod_class, room, BUT_FOR_PODS)


def _slots(pod_class: PodClass, room: Room, further: tuple[Rule, ...]) -> Ints:
    count = np.full(len(room.free), SLOTS_MAX, np.int64)
    together = pod_class.profile.packs_gangs
    for rule in ON_USE:
        if rule.cap is not None:
            rule.cap(pod_class, room, count, together)
    count[~mask_of(pod_class, room)] = 0
    _cap_further(pod_class, room, count, further, together=together)
    return count


def _cap_further(
    pod_class: PodClass, room: Room, count: Ints, rules: tuple[Rule, ...], *, together: bool
) -> None:
    """Lower ``count`` by rules that look further than one node."""
    for rule in rules:
        if rule.cap is not None:
            rule.cap(pod_class, room, count, together)
        if rule.kind is not RuleKind.DEVICES and rule.judge is not None:
            verdict = rule.judge(pod_class, room)
            if verdict is not None:
                count[verdict.codes > 0] = 0


def fits_alone(pod_class: PodClass, room: Room, rows: Ints | None = None) -> Mask:
    """Return bool[m]: nodes (of these rows; None: all) that pass the rules that look at one node.

    Together with ``open_to`` that is where ``pod_slots`` has a slot.
    """
    if rows is None:
        mask = mask_of(pod_class, room).copy()
    else:
        mask = mask_on(pod_class, room, rows.tolist())
    for rule in ON_USE:
        if rule.fits is not None:
            rule.fits(pod_class, room, rows, mask)
    return mask


def fits_on(pod_class: PodClass, room: Room, row: int, free: list[int]) -> bool:
    """Whether a node passes the rules that look at one node; ``free`` is its room by resource."""
    if not mask_of(pod_class, room)[row]:
        return False
    return all(rule.fits_on is None or rule.fits_on(pod_class, room, row, free) for rule in ON_USE)


def open_to(pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: nodes that pass the rules that look further than one node."""
    count = np.ones(len(room.free), np.int64)
    _cap_further(pod_class, room, count, BEYOND_NODE, together=False)
    return count > 0
