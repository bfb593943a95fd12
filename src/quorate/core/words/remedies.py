"""The smallest change of nodes that gives a gang the room that it lacks.

In: a gang's waiting members and the room. Out: nodes to uncordon, or the node that comes nearest to
holding one member more. Called by ``diagnosis``; ``fixes`` has what is to be mended in objects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import structs

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.nodes.slots import slots_of
from quorate.core.model import policy
from quorate.core.model.life_cycle import LifeCycleLabels, NodeLife
from quorate.core.model.policy import Policy
from quorate.core.model.quantity import format_amount
from quorate.core.model.reasons import ClosedNodes
from quorate.core.model.selectors import SelectorTerm, Toleration
from quorate.core.model.steps import Steps
from quorate.core.place.gang import place_gang_within
from quorate.core.place.greedy import Demand, Placement
from quorate.core.room.room import Room
from quorate.core.rules.filtering import verdicts
from quorate.core.rules.masks import mask_of
from quorate.core.rules.nodes.node_unschedulable import CORDON
from quorate.core.rules.pods import inter_pod_affinity, pod_topology_spread
from quorate.core.rules.resources.node_resources_fit import free_of
from quorate.core.rules.rule import RuleKind
from quorate.core.rules.table import BEYOND_NODE
from quorate.core.words.counting import counted

_CORDONED = Toleration(key=CORDON.key, operator="Exists")
"""What pods would need to run on cordoned nodes."""
_OF_BROKEN_NODES = (
    Toleration(operator="Exists", effect="NoExecute"),
    Toleration("node.kubernetes.io/not-ready", "Exists"),
    Toleration("node.kubernetes.io/unreachable", "Exists"),
)
"""What pods would need to run on nodes that are not ready, or are being emptied."""


def usable_by(pod_class: PodClass, room: Room, labels: LifeCycleLabels) -> Mask:
    """Return bool[n]: nodes that pass the rules about attributes, were they not cordoned.

    They bear the labels of the topologies that the pods' rules name. A cordon that the labels of
    the life-cycle ask for stays.
    """
    usable: Mask = mask_of(pod_class.tolerating(_CORDONED), room).copy()
    usable &= mask_of(pod_class, room) | ~_to_stay_cordoned(room, labels)
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
    sizes = [room.snapshot.sizes(name) for name, _ in pod_class.asked]
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


def closed_to(pod_class: PodClass, room: Room, labels: LifeCycleLabels) -> tuple[ClosedNodes, ...]:
    """Count the nodes that would take such a pod, were they empty, but for what their labels say.

    They are counted by reason. A node that is only cordoned is none of them, unless its labels
    close it too.
    """
    marked = _marked(room, labels)
    if not marked.any():
        return ()
    rows = np.flatnonzero(marked & ~mask_of(pod_class, room) & _would_take(pod_class, room, labels))
    if not len(rows):
        return ()
    # Where nothing but the reservation keeps the pod away, its words may be said.
    of_others = mask_of(_regardless(pod_class, labels, (_CORDONED,)), room)
    of_others = of_others & ~mask_of(pod_class.tolerating(_CORDONED), room)
    found = defaultdict[tuple[str, bool], list[int]](list)
    for alike in _by_labels(rows, of_others, labels, room):
        life = _life(alike[0], labels, room)
        words = life.words if of_others[alike[0]] else life.closed
        found[words, not life.closed] += alike
    told = [(*one, some) for one, some in found.items() if one[0]]
    told.sort(key=lambda one: (-len(one[2]), one[0]))
    few, others = told[: policy.CLOSED_KINDS_MAX], told[policy.CLOSED_KINDS_MAX :]
    if others:
        rest = [row for _, _, some in others for row in some]
        few.append(("closed for other reasons", all(one[1] for one in others), rest))
    return tuple(
        ClosedNodes(words, len(some), _some_names(some, room), for_others)
        for words, for_others, some in few
    )


def closed_words(closed: Sequence[ClosedNodes]) -> str:
    """Say which nodes are not open to a pod; "" if there are none."""
    named = ", ".join(f"{counted(one.nodes, 'node')} {one.why}" for one in closed)
    return f"not open to it: {named}" if closed else ""


def _some_names(rows: list[int], room: Room) -> tuple[str, ...]:
    return tuple(sorted(room.snapshot.node(row).name for row in rows[: policy.LISTED_MAX]))


def _life(row: int, labels: LifeCycleLabels, room: Room) -> NodeLife:
    cordoned = bool(room.snapshot.unschedulable[row])
    return labels.of(room.snapshot.labels_at(row), cordoned=cordoned)


def _marked(room: Room, labels: LifeCycleLabels) -> Mask:
    """Return bool[n]: nodes that have a label of the life-cycle."""
    marked = np.zeros(len(room.free), np.bool_)
    for key in labels.keys:
        marked |= room.has_label(key)
    return marked & room.snapshot.alive


def _would_take(pod_class: PodClass, room: Room, labels: LifeCycleLabels) -> Mask:
    """Return bool[n]: nodes that would take a pod if they were empty, in production and its own.

    What is wrong with a node that is out of production may have taints of its own.
    """
    changed = _regardless(pod_class, labels, (_CORDONED, *_OF_BROKEN_NODES))
    takes = mask_of(changed, room) & (_slots_now_and_empty(pod_class, room)[1] > 0)
    for rule in BEYOND_NODE:
        for _, verdict in verdicts(changed, room, (rule,)):
            if rule.kind is RuleKind.DEVICES:
                takes &= verdict.codes == 0
            for code, refusal in enumerate(verdict.refusals, start=1):
                takes &= refusal.resolvable | (verdict.codes != code)
    return takes


def _regardless(
    pod_class: PodClass, labels: LifeCycleLabels, tolerations: tuple[Toleration, ...]
) -> PodClass:
    """Return the class as it would be if it asked nothing of the labels, and tolerated all this."""
    spec = pod_class.spec
    own = Toleration(labels.reserved, "Exists")
    return pod_class.with_attributes(
        structs.replace(
            spec,
            node_selector=tuple(one for one in spec.node_selector if one[0] not in labels.keys),
            required_terms=_without(spec.required_terms, labels.keys),
            tolerations=(*spec.tolerations, own, *tolerations),
        )
    )


def _without(
    terms: tuple[SelectorTerm, ...] | None, keys: tuple[str, ...]
) -> tuple[SelectorTerm, ...] | None:
    """Return the terms without what they say of these labels; None: one of them says no more."""
    left = []
    for term in terms or ():
        expressions = tuple(one for one in term.expressions if one.key not in keys)
        if term.expressions and not (expressions or term.fields):
            return None
        left.append(structs.replace(term, expressions=expressions))
    return tuple(left) if terms is not None else None


def _by_labels(
    rows: Ints, differing: Mask, labels: LifeCycleLabels, room: Room
) -> Iterator[list[int]]:
    """Yield the rows, those together whose nodes have the same life and ``differing``."""
    key = differing[rows] + 2 * room.snapshot.unschedulable[rows].astype(np.int64)
    for name in labels.keys:
        column = room.snapshot.label(name)
        key = key * (len(column.values) + 1) + column.codes[rows] + 1
    order = np.argsort(key, kind="stable")
    for alike in np.split(rows[order], np.flatnonzero(np.diff(key[order])) + 1):
        yield alike.tolist()


def _to_stay_cordoned(room: Room, labels: LifeCycleLabels) -> Mask:
    """Return bool[n]: cordoned nodes that nobody should uncordon, as their labels close them."""

    def make() -> Mask:
        stays = np.zeros(len(room.free), np.bool_)
        rows = np.flatnonzero(room.snapshot.unschedulable & _marked(room, labels))
        for alike in _by_labels(rows, stays, labels, room) if len(rows) else ():
            stays[alike] = bool(_life(alike[0], labels, room).closed)
        return stays

    return room.cached(("to stay cordoned", labels), make)


def nodes_to_uncordon(demand: Demand, room: Room, wanted: Policy) -> list[str]:
    """Return the fewest cordoned nodes with which the gang would start; none if there are none.

    Of nodes that hold equally many members the first by name comes first. Nodes whose cordon the
    labels of the life-cycle ask for are none.
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
    cordoned = np.flatnonzero(_to_stay_cordoned(room, wanted.life_cycle)).tolist()
    holds[cordoned] = 0
    names = {row: snapshot.node(row).name for row in np.flatnonzero(holds).tolist()}
    rows = sorted(names, key=lambda row: (-int(holds[row]), names[row]))
    steps = Steps(policy.EXPLAIN_STEPS_MAX)

    def starts_with(count: int) -> bool:
        trial = room.copy()
        trial.close([*rows[count:], *cordoned])
        found = place_gang_within(wishes, trial, wanted.packing, steps)
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
