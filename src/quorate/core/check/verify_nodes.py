"""Check node attributes again, by independent code: one check for each rule of kind NODE.

Called by ``verify``; it shares no code with the planner. In: a pod's spec, and a node as a
plain value. Out: messages. To add a check: a function and its row in ``NODE_CHECKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.core.model import Node, PodSpec, Requirement, SelectorTerm, SpreadConstraint, Taint


def node_problems(spec: PodSpec, node: Node) -> list[str]:
    """Return a message for each rule that keeps such a pod from the node."""
    return [problem for check in NODE_CHECKS.values() for problem in check(spec, node)]


def _taints(spec: PodSpec, node: Node) -> list[str]:
    return [
        f"node {node.name} has the taint {taint.key}"
        for taint in node.taints
        if taint.effect != "PreferNoSchedule" and not _is_tolerated(taint, spec)
    ]


_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def _cordon(spec: PodSpec, node: Node) -> list[str]:
    if not node.unschedulable or _is_tolerated(_CORDON, spec):
        return []
    return [f"node {node.name} has the taint {_CORDON.key}"]


def _affinity(spec: PodSpec, node: Node) -> list[str]:
    if not spec.node_selector and spec.required_terms is None:
        return []
    labels, problems = dict(node.labels), []
    if any(labels.get(key) != value for key, value in spec.node_selector):
        problems.append(f"node {node.name} does not match the node selector")
    terms = spec.required_terms
    if terms is not None and not any(term_holds(term, node.name, labels) for term in terms):
        problems.append(f"node {node.name} does not match the required node affinity")
    return problems


def _features(spec: PodSpec, node: Node) -> list[str]:
    return [
        f"node {node.name} does not declare the feature {one}"
        for one in spec.node_features
        if one not in node.declared_features
    ]


NODE_CHECKS: dict[str, Callable[[PodSpec, Node], list[str]]] = {
    "TaintToleration": _taints,
    "NodeUnschedulable": _cordon,
    "NodeAffinity": _affinity,
    "NodeDeclaredFeatures": _features,
}
"""By the name of the rule."""


def is_counted(spec: PodSpec, node: Node, constraint: SpreadConstraint) -> bool:
    """Whether a spread constraint of the pod counts the node, by its inclusion policies."""
    if constraint.honor_affinity and not _matches(spec, node, dict(node.labels)):
        return False
    taints = [taint for taint in node.taints if taint.effect != "PreferNoSchedule"]
    return not constraint.honor_taints or all(_is_tolerated(taint, spec) for taint in taints)


def _matches(spec: PodSpec, node: Node, labels: dict[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in spec.node_selector):
        return False
    terms = spec.required_terms
    return terms is None or any(term_holds(term, node.name, labels) for term in terms)


def _is_tolerated(taint: Taint, spec: PodSpec) -> bool:
    for toleration in spec.tolerations:
        if toleration.effect and toleration.effect != taint.effect:
            continue
        if toleration.key and toleration.key != taint.key:
            continue
        if toleration.operator == "Exists":
            return True
        if toleration.operator in ("Equal", "") and toleration.value == taint.value:
            return True
    return False


def term_holds(term: SelectorTerm, name: str, labels: dict[str, str]) -> bool:
    """Whether a node selector term holds for a node's name and labels."""
    if not (term.expressions or term.fields):
        return False
    return all(_holds(r, labels.get(r.key)) for r in term.expressions) and all(
        r.key == "metadata.name" and r.operator in ("In", "NotIn") and _holds(r, name)
        for r in term.fields
    )


def _holds(requirement: Requirement, value: str | None) -> bool:
    wanted: Sequence[str] = requirement.values
    match requirement.operator:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" if value is not None and len(wanted) == 1:
            mine, bound = _int64(value), _int64(wanted[0])
            if mine is None or bound is None:
                return False
            return mine > bound if requirement.operator == "Gt" else mine < bound
        case _:
            return False


def _int64(text: str) -> int | None:
    """Return the integer as Go's ParseInt reads it, base 10 and 64 bits; None for an error."""
    sign = -1 if text.startswith("-") else 1
    digits = text[1:] if text.startswith(("+", "-")) else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    number = sign * int(digits) if len(digits) < 20 else 2**64
    return number if (number + 2**63) >> 64 == 0 else None
