"""What in a node selector term, or in requirements, no node and no label can ever satisfy.

In: terms and requirements. Out: the field, and what is wrong with it. Used by rules, for
``Rule.fault``, and by ``words.fixes``. kube-scheduler has one message for such pods ("didn't match
Pod's node affinity/selector"), and this says which field it is. More nodes would not help it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorate.core.model import Requirement, SelectorTerm, policy
from quorate.core.model.selectors import parse_int64

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


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
    cut = text if len(text) <= policy.TERM_CHARS_MAX else f"{text[: policy.TERM_CHARS_MAX]}..."
    return f'"{cut}"'
