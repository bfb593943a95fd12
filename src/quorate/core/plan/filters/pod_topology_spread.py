"""PodTopologySpread: no domain may hold too many more matching pods than the emptiest one.

Source: kube-scheduler 1.36's plugin of that name. Terminating pods do not count. Only the hard
constraints (DoNotSchedule) are looked at here; the soft ones are a score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.model import SpreadConstraint
from quorate.core.plan.filters import node_affinity, taint_toleration
from quorate.core.plan.filters.verdict import Refusal, Verdict
from quorate.core.state.encoding import Ints, Mask, PodClass
from quorate.core.state.neighbours import Column, Key

if TYPE_CHECKING:
    from quorate.core.plan.room import Room

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


def counted(constraint: SpreadConstraint, pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: nodes that count: with the labels of all hard constraints, and included."""
    return has_labels(hard_ones(pod_class), room) & included(constraint, pod_class, room)


def is_skewed(constraint: SpreadConstraint, pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: nodes whose domain would exceed the emptiest one by more than maxSkew."""
    counts = counted(constraint, pod_class, room)
    if not counts.any():
        return np.zeros(len(counts), np.bool_)
    codes = room.snapshot.label(constraint.topology_key).codes[: len(counts)]
    pods = np.where(counts, matching(constraint, room), 0)
    sums = room.domain_sums(constraint.topology_key, pods)
    domains = len(np.unique(codes[counts]))
    fewest = int(sums[counts].min()) if domains >= constraint.min_domains else 0
    after = sums + matches_itself(constraint, pod_class, room)
    skewed: Mask = after - fewest > constraint.max_skew
    return skewed
