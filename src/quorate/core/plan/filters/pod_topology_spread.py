"""PodTopologySpread: no domain may hold too many more matching pods than the emptiest one.

Source: kube-scheduler 1.36's plugin of that name. Terminating pods do not count. Only the hard
constraints (DoNotSchedule) are looked at here; the soft ones are a score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.labels.neighbours import Column, Key
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import SpreadConstraint
from quorate.core.plan.filters import node_affinity, taint_toleration
from quorate.core.plan.filters.verdict import Refusal, Verdict

if TYPE_CHECKING:
    from quorate.core.room.room import Room

REFUSALS = (
    Refusal(
        "node(s) didn't match pod topology spread constraints (missing required label)",
        resolvable=False,
    ),
    Refusal("node(s) didn't match pod topology spread constraints", resolvable=True),
)
_NO_LABEL, _SKEWED = 1, 2


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
    """Return the constraints that rule nodes out, unless the profile has disabled the rule."""
    if "PodTopologySpread" in pod_class.profile.disabled:
        return []
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
        mask &= node_affinity.passes(pod_class.shape, room.snapshot)
    if constraint.honor_taints:
        mask &= taint_toleration.passes(pod_class.shape, room.snapshot)
    return mask


def matching(constraint: SpreadConstraint, room: Room) -> Ints:
    """Return int64[n]: pods on each node that count; an empty selector counts none."""
    labels = constraint.selector.labels
    if labels is None or not labels.requirements:
        return np.zeros(len(room.free), np.int64)
    number = room.snapshot.neighbours.selector_id(constraint.selector)
    return room.counts(Key(Column.STAYING, number))


def matches_itself(constraint: SpreadConstraint, pod_class: PodClass, room: Room) -> bool:
    """Whether the pod's own labels match: an empty selector does match it."""
    labels = constraint.selector.labels
    if labels is None:
        return False
    if not labels.requirements:
        return True
    return room.snapshot.neighbours.selector_id(constraint.selector) in pod_class.matched


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
    return room.masks.kept(room, ("counted", pod_class.attributes, keys, policies), make)


def pods_by_domain(constraint: SpreadConstraint, counted: Counted, room: Room) -> Ints:
    """Return int64[n]: pods that count in the node's domain; 0 without the label."""
    labels = constraint.selector.labels
    if labels is None or not labels.requirements:
        return np.zeros(len(counted.nodes), np.int64)
    if counted.is_all:
        number = room.snapshot.neighbours.selector_id(constraint.selector)
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
