"""Fields of a pod that no node and no pod can ever satisfy, whatever the cluster has.

In: a pod's shape. Out: the field and what is wrong with it. kube-scheduler has its own sentence for
such pods ("didn't match Pod's node affinity/selector") and this says which field it is. Called by
``diagnosis``. More nodes would not help such a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorate.core.model import LabelSelector, PodShape, Requirement, SelectorTerm
from quorate.core.model.selectors import parse_int64

_NODE_TERMS = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)
POD_TERMS = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
"""Where a pod has its required affinity to other pods."""
_SPREAD = "spec.topologySpreadConstraints"
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_SHOWN_CHARS_MAX = 60


def impossible_field(shape: PodShape) -> str:
    """Return the first field that keeps the pod from every node, and why; "" if there is none."""
    found = (_of_nodes(shape), _of_pods(shape), _of_spread(shape))
    return next((one for one in found if one), "")


def _of_nodes(shape: PodShape) -> str:
    """Judge required node affinity: every one of its terms has to be impossible."""
    if shape.required_terms is None:
        return ""
    selector = tuple(Requirement(key, "In", (value,)) for key, value in shape.node_selector)
    return impossible_terms(shape.required_terms, selector, _NODE_TERMS)


def impossible_terms(
    terms: tuple[SelectorTerm, ...], selector: tuple[Requirement, ...], path: str
) -> str:
    """Return why none of the terms at ``path`` can match, a ``selector`` besides; "" if one can."""
    if not terms:
        return f"{path} is empty"
    faults = [_of_term(term, selector, f"{path}[{i}]") for i, term in enumerate(terms)]
    return faults[0] if all(faults) else ""


def _of_term(term: SelectorTerm, selector: tuple[Requirement, ...], path: str) -> str:
    if not (term.expressions or term.fields):
        return f"{path} is empty and matches nothing"
    for index, one in enumerate(term.expressions):
        if fault := _of_expression(one):
            return f"{path}.matchExpressions[{index}]{fault}"
    for index, one in enumerate(term.fields):
        if fault := _of_field(one):
            return f"{path}.matchFields[{index}]{fault}"
    if key := contradicted(term.expressions):
        return f"{path}.matchExpressions contradict one another in label {shown(key)}"
    if contradicted(term.fields):
        return f"{path}.matchFields contradict one another in metadata.name"
    if key := contradicted((*selector, *term.expressions)):
        return f"spec.nodeSelector and {path} contradict one another in label {shown(key)}"
    return ""


def _of_expression(one: Requirement) -> str:
    """Say what is wrong with an expression of a node selector, by kube-scheduler's rules."""
    if one.operator not in _OPERATORS:
        return f".operator {shown(one.operator)} is none of {', '.join(_OPERATORS)}"
    if one.operator in ("Gt", "Lt"):
        if len(one.values) != 1:
            return f".values: {one.operator} takes one integer, not {len(one.values)} values"
        if parse_int64(one.values[0]) is None:
            return f".values {shown(one.values[0])} is no integer, which {one.operator} needs"
    if one.operator == "In" and not one.values:
        return ".values is empty, and In matches nothing"
    return ""


def _of_field(one: Requirement) -> str:
    if one.key != "metadata.name":
        return f".key {shown(one.key)} is not metadata.name, the only field there is"
    if one.operator not in ("In", "NotIn"):
        return f".operator {shown(one.operator)} is neither In nor NotIn"
    return "" if len(one.values) == 1 else f".values has {len(one.values)} names instead of one"


def _of_pods(shape: PodShape) -> str:
    """Judge required affinity to pods: a selector that matches none waits for ever."""
    for index, term in enumerate(shape.affinity):
        path = f"{POD_TERMS}[{index}]"
        if not term.topology_key:
            return f"{path}.topologyKey is empty"
        if term.selector.labels is None:
            return f"{path}.labelSelector is absent and matches no pod"
        if key := _contradiction(term.selector.labels):
            return f"{path}.labelSelector contradicts itself in label {shown(key)}"
        by_labels = term.selector.namespace_selector
        if not term.selector.namespaces and (key := _contradiction(by_labels)):
            return f"{path}.namespaceSelector contradicts itself in label {shown(key)}"
    return ""


def _of_spread(shape: PodShape) -> str:
    for index, one in enumerate(shape.spread):
        if one.hard and not one.topology_key:
            return f"{_SPREAD}[{index}].topologyKey is empty"
    return ""


def _contradiction(selector: LabelSelector | None) -> str:
    return contradicted(selector.requirements) if selector is not None else ""


def contradicted(requirements: Iterable[Requirement]) -> str:
    """Return a key of which no value, nor its absence, satisfies all requirements; "" if none."""
    by_key: dict[str, list[Requirement]] = {}
    for one in requirements:
        by_key.setdefault(one.key, []).append(one)
    return next((key for key, alike in by_key.items() if not _satisfiable(alike)), "")


def _satisfiable(alike: list[Requirement]) -> bool:
    """Whether a label can satisfy all requirements on its key."""
    if all(one.operator in ("NotIn", "DoesNotExist") for one in alike):
        return True  # a label that is absent
    if any(one.operator == "DoesNotExist" for one in alike):
        return False
    listed = [set(one.values) for one in alike if one.operator == "In"]
    values = set.intersection(*listed) if listed else None
    if values is not None:
        return any(all(one.holds_for_node({one.key: value}) for one in alike) for value in values)
    return _has_integer(alike)


def _has_integer(alike: list[Requirement]) -> bool:
    """Whether Gt and Lt leave an integer between them; NotIn cannot name all ways to write it."""
    bounds = dict(_bounds(alike))
    return len(bounds) < 2 or bounds["Gt"] + 1 < bounds["Lt"]


def _bounds(alike: list[Requirement]) -> Iterator[tuple[str, int]]:
    """Yield the tightest bound of each kind; the operators' values are integers by now."""
    for operator, tightest in (("Gt", max), ("Lt", min)):
        bounds = [parse_int64(one.values[0]) for one in alike if one.operator == operator]
        if found := [bound for bound in bounds if bound is not None]:
            yield operator, tightest(found)


def shown(text: str) -> str:
    """Return what somebody wrote, quoted, and cut where it is long."""
    cut = text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}..."
    return f'"{cut}"'
