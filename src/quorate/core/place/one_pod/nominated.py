"""Judge nodes for one pod where room is promised to others (``status.nominatedNodeName``).

In: a pod class and the room. Out: the nodes that take it, and why others do not. Called by
``turn.cycle``, ``preempt.preemption`` and ``words.diagnosis``. The rule is kube-scheduler's: a node
must fit the pod both with the node's nominated pods of equal or higher priority and without them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model.reasons import RuledOut
from quorate.core.model.steps import costs
from quorate.core.place.one_pod.trial import Trial
from quorate.core.room.promises import Promised
from quorate.core.room.room import Room
from quorate.core.rules.filtering import verdicts
from quorate.core.rules.masks import mask_of
from quorate.core.rules.table import ASKED_FIRST
from quorate.core.rules.verdict import Refused, Verdict


def room_less_nominated(
    room: Room, promised: Promised, pod_classes: list[PodClass], cluster: Cluster
) -> Room:
    """Return the room less what nominated pods ask for; one room for all pods of a gang.

    A gang with required affinity or hard spread must not rely on pods that may never start: they
    could satisfy its affinity or raise the minimum. So label rules do not count them.
    """
    if not promised:
        return room
    left = room.copy()
    attracted = any(
        pod_class.spec.affinity or any(one.hard for one in pod_class.spread)
        for pod_class in pod_classes
    )
    taken = _by_class(promised, cluster)
    for pod_class, on in taken:
        rows, pods = np.array(list(on), np.int64), np.array(list(on.values()), np.int64)
        (left.withhold_at if attracted else left.take_at)(pod_class, rows, pods)
    pods_all = sum(map(len, promised.values()))
    room.take_steps(
        len(taken) // costs.NOMINATED_CLASSES_PER_STEP + pods_all // costs.NOMINATED_PODS_PER_STEP
    )
    return left


def _by_class(promised: Promised, cluster: Cluster) -> list[tuple[PodClass, dict[int, int]]]:
    """Return for each class the number of its nominated pods, by row.

    Pods that choose volumes or devices come one by one, in their order: the first chooses first.
    """
    found: dict[int, tuple[PodClass, dict[int, int]]] = {}
    choosing: list[tuple[PodClass, dict[int, int]]] = []
    for row, entries in promised.items():
        for entry in entries:
            matched = cluster.neighbours.matched(entry.label_set)
            pod_class = cluster.classes.variant(entry.pod_class, matched)
            if pod_class.volume_needs is not None or pod_class.device_needs is not None:
                choosing.append((pod_class, {row: 1}))
                continue
            _, on = found.setdefault(pod_class.id, (pod_class, {}))
            on[row] = on.get(row, 0) + 1
    return [*found.values(), *choosing]


@dataclass(slots=True)
class NodeVerdicts:
    """What all rules say of all nodes for one pod; masks are bool[n].

    ``resolvable`` are the nodes that refuse it and might take it with fewer pods there.
    ``prefilter_message`` is set when PreFilter rejects the pod, so that no node was filtered.
    """

    feasible: Mask
    resolvable: Mask
    rules: list[str]
    verdicts: list[Verdict]
    refused: dict[int, Refused] = field(default_factory=dict)
    """By row: the refusal of nodes that only nominated pods keep from taking the pod."""
    prefilter_message: str = ""
    unresolvable_by: str = ""
    """The rule that rejected the pod in PreFilter, if preemption cannot help."""


def judge_nodes(
    pod_class: PodClass, room: Room, cluster: Cluster, promised: Promised
) -> NodeVerdicts:
    """Judge every node for one more pod of the class."""
    judged = list(verdicts(pod_class, room))
    found = [verdict for _, verdict in judged]
    left = room.snapshot.alive.copy()
    resolvable = np.zeros(len(left), np.bool_)
    seen = NodeVerdicts(left, resolvable, [name for name, _ in judged], found)
    rejections = [(name, verdict) for name, verdict in judged if verdict.prefilter_message]
    if rejections:
        hopeless = [one for one in rejections if not one[1].refusals[0].resolvable]
        seen.unresolvable_by = hopeless[0][0] if hopeless else ""
        seen.prefilter_message = (hopeless or rejections)[0][1].prefilter_message
        if not hopeless:
            resolvable |= left & mask_of(pod_class, room)
        left[:] = False
        return seen
    for verdict in found:
        if verdict.prefilter_code:
            left &= verdict.codes != verdict.prefilter_code
    allowed = left.copy()
    for name, verdict in judged:
        if name in ASKED_FIRST:
            allowed &= verdict.codes == 0
    for verdict in found:
        for code, refusal in enumerate(verdict.refusals, start=1):
            if refusal.resolvable:
                resolvable |= left & (verdict.codes == code)
        left &= verdict.codes == 0
    _refuse_for_nominated(promised, allowed, seen, pod_class, room, cluster)
    return seen


def _refuse_for_nominated(
    promised: Promised,
    allowed: Mask,
    seen: NodeVerdicts,
    pod_class: PodClass,
    room: Room,
    cluster: Cluster,
) -> None:
    asked = [(row, entries) for row, entries in promised.items() if allowed[row]]
    room.take_steps(len(promised) // costs.NOMINATED_ROWS_PER_STEP + 2 * len(asked) // 3)
    for row, entries in asked:
        refused = Trial(pod_class, row, room, cluster, seen.rules, entries).refused()
        if refused is not None:
            seen.feasible[row] = False
            seen.resolvable[row] = refused.resolvable
            seen.refused[row] = refused


def ruled_out(seen: NodeVerdicts, room: Room, *, among: Mask | None = None) -> tuple[RuledOut, ...]:
    """Count nodes by the reason that rules them out, as kube-scheduler's FitError does.

    A node counts for the first rule that it fails; resources may count it several times. ``among``
    is bool[n], the nodes that count; None: all.
    """
    if seen.prefilter_message:
        return (RuledOut(seen.prefilter_message, 0),)
    left = (room.snapshot.alive if among is None else among).copy()
    counts: Counter[str] = Counter()
    for refused in seen.refused.values():
        counts.update(refused.texts)
    left[list(seen.refused)] = False
    for verdict in seen.verdicts:
        if verdict.prefilter_code:
            early = left & (verdict.codes == verdict.prefilter_code)
            counts[verdict.refusals[verdict.prefilter_code - 1].message] += int(early.sum())
            left &= ~early
    for verdict in seen.verdicts:
        for text, nodes in verdict.several:
            counts[text] += int((left & nodes).sum())
        if not verdict.several:
            for code, refusal in enumerate(verdict.refusals, start=1):
                counts[refusal.message] += int((left & (verdict.codes == code)).sum())
        left &= verdict.codes == 0
    return tuple(RuledOut(message, count) for message, count in sorted(counts.items()) if count)
