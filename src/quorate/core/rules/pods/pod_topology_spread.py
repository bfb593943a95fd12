"""PodTopologySpread: no domain may hold too many more matching pods than the emptiest one.

The hard constraints (DoNotSchedule) rule nodes out. Score: of the soft ones (ScheduleAnyway) nodes
whose domains hold fewer matching pods are better. Source: kube-scheduler 1.36's plugin of that
name. Terminating pods do not count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.labels.neighbours import Column, Key
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodSpec, SpreadConstraint
from quorate.core.room.room import Room
from quorate.core.rules.interests import TAINTS, Interest, label, pods_of
from quorate.core.rules.nodes import node_affinity, taint_toleration
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Verdict

REFUSALS = (
    Refusal(
        "node(s) didn't match pod topology spread constraints (missing required label)",
        resolvable=False,
    ),
    Refusal("node(s) didn't match pod topology spread constraints", resolvable=True),
)
_NO_LABEL, _SKEWED = 1, 2
_HOSTNAME = "kubernetes.io/hostname"
_CONSTRAINTS = "spec.topologySpreadConstraints"


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node for one more pod of the class; None: nothing."""
    hard = hard_ones(pod_class)
    if not hard:
        return None
    codes = np.zeros(len(room.free), np.int8)
    for constraint in reversed(hard):  # a node is refused by the first one that it fails
        codes[is_skewed(constraint, pod_class, room)] = _SKEWED
        codes[~room.has_label(constraint.topology_key)] = _NO_LABEL
    return Verdict(codes, REFUSALS)


def hard_ones(pod_class: PodClass) -> list[SpreadConstraint]:
    """Return the constraints that rule nodes out."""
    return [one for one in pod_class.spread if one.hard]


def has_labels(constraints: list[SpreadConstraint], room: Room) -> Mask:
    """Return bool[n]: nodes that bear the topology labels of all the constraints."""
    mask = np.ones(len(room.free), np.bool_)
    for one in constraints:
        mask &= room.has_label(one.topology_key)
    return mask


def included(constraint: SpreadConstraint, pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: nodes that its inclusion policies count."""
    mask = room.snapshot.alive.copy()
    if constraint.honor_affinity:
        mask &= node_affinity.passes(pod_class.spec, room.snapshot)
    if constraint.honor_taints:
        mask &= taint_toleration.passes(pod_class.spec, room.snapshot)
    return mask


def matching(constraint: SpreadConstraint, room: Room) -> Ints:
    """Return int64[n]: pods on each node that count; an empty selector counts none.

    In a trial it counts those that are added or removed, and no others. So it is in kube-scheduler:
    its PreFilter counts no pods for an empty selector, but its AddPod and RemovePod do.
    """
    labels = constraint.selector.labels
    if labels is None:
        return np.zeros(len(room.free), np.int64)
    number = room.snapshot.neighbours.selector_id(constraint.selector)
    if not labels.requirements:
        supposed = room.supposed(number)
        return np.zeros(len(room.free), np.int64) if supposed is None else supposed
    return room.counts(Key(Column.STAYING, number))


def matches_itself(constraint: SpreadConstraint, pod_class: PodClass, room: Room) -> bool:
    """Whether the pod's own labels match: an empty selector does match it."""
    labels = constraint.selector.labels
    if labels is None:
        return False
    if not labels.requirements:
        return True
    return room.snapshot.neighbours.selector_id(constraint.selector) in pod_class.matched


def empty_selectors(pod_class: PodClass, room: Room) -> frozenset[int]:
    """Return the numbers of the hard constraints' empty selectors; see ``matching``."""
    numbers = room.snapshot.neighbours.selector_id
    selectors = (one.selector for one in hard_ones(pod_class))
    return frozenset(
        numbers(one) for one in selectors if one.labels is not None and not one.labels.requirements
    )


def counts_pods_of(constraint: SpreadConstraint, other: PodClass, room: Room) -> bool:
    """Whether a pod of the other class adds to what is counted: not if the selector is empty."""
    labels = constraint.selector.labels
    return bool(labels and labels.requirements) and matches_itself(constraint, other, room)


class Counted(NamedTuple):
    """Which nodes a constraint counts (bool[n]), and in how many domains."""

    nodes: Mask
    domains: int
    is_all: bool
    """Whether these are all nodes that bear its label."""


def counted(constraint: SpreadConstraint, pod_class: PodClass, room: Room) -> Counted:
    """Return the nodes that count: with the labels of all hard constraints, and included."""
    return counted_with(hard_ones(pod_class), constraint, pod_class, room)


def counted_with(
    labelled: list[SpreadConstraint] | None,
    constraint: SpreadConstraint,
    pod_class: PodClass,
    room: Room,
) -> Counted:
    """Return the nodes that count: with the labels of some constraints (None: any), and included.

    Those without the constraint's own label are in no domain.
    """

    def make() -> Counted:
        nodes = included(constraint, pod_class, room)
        if labelled is not None:
            nodes &= has_labels(labelled, room)
        has_label = room.has_label(constraint.topology_key)
        column = room.snapshot.label(constraint.topology_key)
        domains = np.unique(column.codes[: len(nodes)][nodes & has_label])
        is_all = bool((nodes >= (has_label & room.snapshot.alive)).all())
        nodes.setflags(write=False)
        return Counted(nodes, len(domains), is_all)

    keys = None if labelled is None else tuple(one.topology_key for one in labelled)
    policies = constraint.topology_key, constraint.honor_affinity, constraint.honor_taints
    return room.cached(("counted", pod_class.attributes, keys, policies), make)


def pods_by_domain(constraint: SpreadConstraint, counted: Counted, room: Room) -> Ints:
    """Return int64[n]: pods that count in the node's domain; 0 without the label."""
    labels = constraint.selector.labels
    if labels is None:
        return np.zeros(len(counted.nodes), np.int64)
    number = room.snapshot.neighbours.selector_id(constraint.selector)
    if not labels.requirements and room.supposed(number) is None:
        return np.zeros(len(counted.nodes), np.int64)
    if labels.requirements and counted.is_all:
        return room.sums(Key(Column.STAYING, number, constraint.topology_key))
    here = np.where(counted.nodes, matching(constraint, room), 0)
    return room.domain_sums(constraint.topology_key, here)


def is_skewed(constraint: SpreadConstraint, pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: nodes whose domain would exceed the emptiest one by more than maxSkew."""
    counts = counted(constraint, pod_class, room)
    if not counts.domains:
        return np.zeros(len(counts.nodes), np.bool_)
    sums = pods_by_domain(constraint, counts, room)
    is_enough = counts.domains >= constraint.min_domains
    fewest = int(sums[counts.nodes].min()) if is_enough else 0
    most = constraint.max_skew + fewest - matches_itself(constraint, pod_class, room)
    skewed: Mask = sums > most
    return skewed


def interests(pod_class: PodClass, room: Room) -> set[Interest]:
    """Name what it looks at: the labels of topologies, who counts there, and which nodes do."""
    found: set[Interest] = set()
    for one in hard_ones(pod_class):
        found |= {label(one.topology_key), *pods_of(one.selector, room)}
        if one.honor_taints:
            found.add(TAINTS)
        if one.honor_affinity:
            spec = pod_class.spec
            found |= {label(key) for key, _ in spec.node_selector}
            for term in spec.required_terms or ():
                found |= {label(requirement.key) for requirement in term.expressions}
    return found


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: ``100 * (max + min - raw) / max``; None: nothing is soft.

    Nodes that lack a topology label of the pod's own constraints score 0.
    """
    constraints = [one for one in pod_class.spread if not one.hard]
    if not constraints or not feasible.any():
        return None
    needed = constraints if pod_class.spec.spread else None
    labelled = has_labels(constraints, room) if needed else None
    scored = feasible if labelled is None else feasible & labelled
    raw = np.zeros(len(feasible))
    for one in constraints:
        raw += _one(one, pod_class, room, scored, needed)
    rounded = np.floor(raw + 0.5).astype(np.int64)
    among = rounded[scored]
    if not len(among):
        return np.zeros(len(feasible), np.int64)
    least, most = int(among.min()), int(among.max())
    if most == 0:
        return np.where(scored, 100, 0)
    return np.where(scored, 100 * (most + least - rounded) // most, 0)


def _one(
    constraint: SpreadConstraint,
    pod_class: PodClass,
    room: Room,
    scored: Mask,
    needed: list[SpreadConstraint] | None,
) -> npt.NDArray[np.float64]:
    """Return float64[n]: pods in the node's domain, weighted by how many domains there are.

    Only nodes with the labels of the ``needed`` constraints (None: any) count.
    """
    key = constraint.topology_key
    if key == _HOSTNAME:
        pods, size = matching(constraint, room), int(np.count_nonzero(scored))
    else:
        pods = pods_by_domain(constraint, counted_with(needed, constraint, pod_class, room), room)
        size = room.domains(key, scored)
    weighted = pods.astype(np.float64)
    weighted *= math.log(size + 2)
    weighted += constraint.max_skew - 1
    weighted[~room.has_label(key)] = 0.0
    return weighted


def fault(spec: PodSpec) -> str:
    """Return a hard constraint without a topology key, which no node can bear; or ""."""
    for index, one in enumerate(spec.spread):
        if one.hard and not one.topology_key:
            return f"{topology_field(index)} is empty"
    return ""


def topology_field(index: int) -> str:
    """Return the field that names the topology of a constraint."""
    return f"{_CONSTRAINTS}[{index}].topologyKey"


def spread_words(constraint: SpreadConstraint, domains: int | None, most: int, count: int) -> str:
    """Say that a constraint lets ``most`` of ``count`` members in.

    ``domains`` is how many there are, if that is fewer than minDomains; else None.
    """
    why = f"maxSkew {constraint.max_skew}"
    if domains is not None:
        why += f" and minDomains {constraint.min_domains} (there are {domains})"
    key = constraint.topology_key
    return f"spread over {key} with {why} lets {most} of {count} members in"


REMEDY = "free or add room in the emptiest domains, or raise maxSkew"
"""What people can do if ``spread_words`` are what is in the way."""

RULE = Rule(
    name="PodTopologySpread",
    kind=RuleKind.PODS,
    judge=judge,
    score=score,
    interests=interests,
    fault=fault,
)
