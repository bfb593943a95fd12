"""Whether a pod's template fits a node: selector, required affinity, tolerations. Pure functions.

Source: k8s.io/component-helpers ``scheduling/corev1`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Taint = Mapping[str, Any]
Toleration = Mapping[str, Any]


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether a toleration is for a taint: an empty effect or key is for any."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    same = toleration.get("value", "") == taint.get("value", "")
    return toleration.get("operator", "Equal") == "Equal" and bool(same)


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], effects: tuple[str, ...]
) -> bool:
    """Tell whether some taint with one of the effects is not tolerated."""
    known = list(tolerations)
    return any(
        taint.get("effect") in effects and not any(tolerates(t, taint) for t in known)
        for taint in taints
    )


def fits(pod_spec: Mapping[str, Any], node_name: str, labels: Mapping[str, str]) -> bool:
    """Tell whether the pod's nodeName, nodeSelector and required affinity allow the node."""
    wanted = pod_spec.get("nodeName")
    if wanted and wanted != node_name:
        return False
    selector = pod_spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    terms = required.get("nodeSelectorTerms") or []
    return any(_matches_term(term, node_name, labels) for term in terms)


def _matches_term(term: Mapping[str, Any], node_name: str, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # an empty term matches nothing
    return all(_matches(e, labels.get(e["key"])) for e in expressions) and all(
        _matches(f, node_name if f["key"] == "metadata.name" else None) for f in fields
    )


def _matches(requirement: Mapping[str, Any], value: str | None) -> bool:
    values = requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return _compares(requirement["operator"], value, values)


def _compares(operator: str, value: str | None, values: Any) -> bool:
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound
