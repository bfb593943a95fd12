"""Whether a pod's template fits a node: selector, required affinity, tolerations. Pure functions.

Source: k8s.io/component-helpers ``scheduling/corev1`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pocketkube.matching.selectors import requirement_of

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
    own = {"metadata.name": node_name}
    return all(requirement_of(one).matches(labels) for one in expressions) and all(
        requirement_of(one).matches(own) for one in fields
    )
