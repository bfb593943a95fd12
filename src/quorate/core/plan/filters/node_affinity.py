"""NodeAffinity: node selector and required node affinity, with match fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import PodShape, Requirement, SelectorTerm
from quorate.core.plan.filters.verdict import Refusal, Verdict, rejected

if TYPE_CHECKING:
    from quorate.core.room.room import Room

REFUSALS = (
    Refusal("node(s) didn't match scheduler-enforced node affinity", resolvable=False),
    Refusal("node(s) didn't match Pod's node affinity/selector", resolvable=False),
    Refusal("node(s) didn't satisfy plugin(s) [NodeAffinity]", resolvable=False),
)
_ADDED, _OWN, _NOT_NAMED = 1, 2, 3


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return which nodes fail the pod's own selectors, or those that its profile adds."""
    shape, added = pod_class.shape, pod_class.profile.added_required
    if not shape.node_selector and shape.required_terms is None and added is None:
        return None
    codes = np.zeros(len(room.free), np.int8)
    codes[~passes(shape, room.snapshot)] = _OWN
    if added is not None:
        codes[~_any_term(added, room.snapshot)] = _ADDED
    names = _named_nodes(shape.required_terms or ())
    if names is None:
        return Verdict(codes, REFUSALS)
    if not names:
        return rejected("pod affinity terms conflict", len(codes))
    others = np.ones(len(codes), np.bool_)
    others[room.snapshot.rows_named(tuple(names))] = False
    codes[others] = _NOT_NAMED
    return Verdict(codes, REFUSALS, early=_NOT_NAMED)


def admits(pod_class: PodClass, snapshot: Snapshot, row: int) -> bool:
    """Whether the node at ``row`` matches the pod's own selectors, and those of its profile."""
    shape, labels = pod_class.shape, snapshot.labels_at(row)
    if any(labels.get(key) != value for key, value in shape.node_selector):
        return False
    name = snapshot.node(row).name
    return all(
        terms is None or any(term.matches(name, labels) for term in terms)
        for terms in (shape.required_terms, pod_class.profile.added_required)
    )


def _named_nodes(terms: tuple[SelectorTerm, ...]) -> set[str] | None:
    """Return the only nodes that can match, where every term names some; else None."""
    found: set[str] = set()
    for term in terms:
        named = [set(one.values) for one in term.fields if _names(one)]
        if not named:
            return None
        found |= set.intersection(*named)
    return found if terms else None


def _names(field: Requirement) -> bool:
    return field.key == "metadata.name" and field.operator == "In"


def passes(shape: PodShape, snapshot: Snapshot) -> Mask:
    """Return bool[n]: nodes with all labels of the selector that match one of the terms."""
    mask = np.ones(len(snapshot), np.bool_)
    for key, value in shape.node_selector:
        mask &= matches_label(Requirement(key, "In", (value,)), snapshot)
    if shape.required_terms is not None:
        mask &= _any_term(shape.required_terms, snapshot)
    return mask


def _any_term(terms: tuple[SelectorTerm, ...], snapshot: Snapshot) -> Mask:
    mask = np.zeros(len(snapshot), np.bool_)
    for term in terms:
        mask |= matches_term(term, snapshot)
    return mask


def matches_term(term: SelectorTerm, snapshot: Snapshot) -> Mask:
    """Return bool[n]: nodes that match every expression and field; an empty term matches none."""
    if not term.expressions and not term.fields:
        return np.zeros(len(snapshot), np.bool_)
    mask = np.ones(len(snapshot), np.bool_)
    for requirement in term.expressions:
        mask &= matches_label(requirement, snapshot)
    for requirement in term.fields:
        mask &= _matches_name(requirement, snapshot)
    return mask


def matches_label(requirement: Requirement, snapshot: Snapshot) -> Mask:
    """Return bool[n]: nodes whose label satisfies the requirement.

    Decided once for each distinct value of the label, then looked up for each node.
    """
    column = snapshot.label(requirement.key)
    operator, wanted = requirement.operator, requirement.values
    verdicts = np.zeros(len(column.values) + 1, np.bool_)  # the last one is for an absent label
    if operator in ("In", "NotIn"):
        codes = [column.code_of[value] for value in wanted if value in column.code_of]
        verdicts[codes] = True
        if operator == "NotIn":
            verdicts = ~verdicts
    elif operator == "Exists":
        verdicts[:-1] = True
    elif operator == "DoesNotExist":
        verdicts[-1] = True
    elif operator in ("Gt", "Lt"):
        verdicts[:-1] = requirement.beyond(cast("list[str]", column.values))
    return verdicts[column.codes[: len(snapshot)]]


def _matches_name(requirement: Requirement, snapshot: Snapshot) -> Mask:
    """``metadata.name`` is the one field there is, In or NotIn with exactly one value."""
    mask = np.zeros(len(snapshot), np.bool_)
    valid = requirement.key == "metadata.name" and len(requirement.values) == 1
    if not valid or requirement.operator not in ("In", "NotIn"):
        return mask
    mask[snapshot.rows_named(requirement.values)] = True
    return mask if requirement.operator == "In" else ~mask
