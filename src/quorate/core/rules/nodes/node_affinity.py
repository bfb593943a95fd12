"""NodeAffinity: node selector and required node affinity, with match fields.

Score: nodes that match more weight of the preferred terms are better.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.nodes.terms import matches_any_term, matches_label, matches_term
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import PodSpec, PreferredTerm, Requirement, SelectorTerm
from quorate.core.room.room import Room
from quorate.core.rules.faults import impossible_terms
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Verdict, rejected

REFUSALS = (
    Refusal("node(s) didn't match Pod's node affinity/selector", resolvable=False),
    Refusal("node(s) didn't satisfy plugin(s) [NodeAffinity]", resolvable=False),
)
_OWN, _NOT_NAMED = 1, 2
_TERMS = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return which nodes fail the pod's selectors."""
    spec = pod_class.spec
    if not spec.node_selector and spec.required_terms is None:
        return None
    codes = np.zeros(len(room.free), np.int8)
    codes[~passes(spec, room.snapshot)] = _OWN
    names = _named_nodes(spec.required_terms or ())
    if names is None:
        return Verdict(codes, REFUSALS)
    if not names:
        return rejected("pod affinity terms conflict", len(codes))
    others = np.ones(len(codes), np.bool_)
    others[room.snapshot.rows_named(tuple(names))] = False
    codes[others] = _NOT_NAMED
    return Verdict(codes, REFUSALS, prefilter_code=_NOT_NAMED)


def admits(pod_class: PodClass, snapshot: Snapshot, row: int) -> bool:
    """Whether the node at ``row`` matches the pod's selectors."""
    spec, labels = pod_class.spec, snapshot.labels_at(row)
    if any(labels.get(key) != value for key, value in spec.node_selector):
        return False
    terms, name = spec.required_terms, snapshot.node(row).name
    return terms is None or any(term.matches(name, labels) for term in terms)


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


def passes(spec: PodSpec, snapshot: Snapshot) -> Mask:
    """Return bool[n]: nodes with all labels of the selector that match one of the terms."""
    mask = np.ones(len(snapshot), np.bool_)
    for key, value in spec.node_selector:
        mask &= matches_label(Requirement(key, "In", (value,)), snapshot)
    if spec.required_terms is not None:
        mask &= matches_any_term(spec.required_terms, snapshot)
    return mask


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: ``100 * weight / max`` over the feasible nodes."""
    preferred = pod_class.spec.preferred_terms
    if not preferred:
        return None
    raw = room.cached(("preferred", preferred), lambda: _raw(preferred, room.snapshot))
    highest = int(raw[feasible].max(initial=0))
    return 100 * raw // highest if highest else np.zeros(len(raw), np.int64)


def _raw(preferred: tuple[PreferredTerm, ...], snapshot: Snapshot) -> Ints:
    """Return int64[n]: the sum of the weights of the terms that the node matches."""
    raw = np.zeros(len(snapshot), np.int64)
    for one in preferred:
        if one.term.expressions or one.term.fields:
            raw += one.weight * matches_term(one.term, snapshot)
    return raw


def fault(spec: PodSpec) -> str:
    """Return why no node can match required node affinity; "" if one could."""
    if spec.required_terms is None:
        return ""
    selector = tuple(Requirement(key, "In", (value,)) for key, value in spec.node_selector)
    return impossible_terms(spec.required_terms, selector, _TERMS)


RULE = Rule(
    name="NodeAffinity",
    kind=RuleKind.NODE,
    judge=judge,
    admits=admits,
    score=score,
    fault=fault,
)
