"""Which nodes match labels, expressions and node selector terms: masks over all nodes.

In: a requirement or a term, and the snapshot. Out: bool[n], n rows. Used by the rules and by the
room for volumes. For one node ask ``SelectorTerm.matches``.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import Requirement, SelectorTerm


def matches_any_term(terms: tuple[SelectorTerm, ...], snapshot: Snapshot) -> Mask:
    """Return bool[n]: nodes that match one of the terms or more."""
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

    The requirement is evaluated once for each distinct value, then looked up for each node.
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
    """Return bool[n] for ``metadata.name``, the only field: In or NotIn with exactly one value."""
    mask = np.zeros(len(snapshot), np.bool_)
    valid = requirement.key == "metadata.name" and len(requirement.values) == 1
    if not valid or requirement.operator not in ("In", "NotIn"):
        return mask
    mask[snapshot.rows_named(requirement.values)] = True
    return mask if requirement.operator == "In" else ~mask
