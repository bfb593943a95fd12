"""Checks of what decides where a pod may run: affinity, spread, tolerations, gates, groups.

Source: kubernetes ``pkg/apis/core/validation`` of 1.36, with the feature gates at their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import duplicate, invalid, required, unsupported
from pocketkube.errors import Cause
from pocketkube.names import (
    dns_subdomain,
    invalid_text,
    label_key,
)
from pocketkube.registry.rules.selectors import (
    label_selector_causes,
    node_selector_causes,
    node_term_causes,
)

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity_causes(affinity: Mapping[str, Any], field: str) -> list[Cause]:
    """Check ``spec.affinity``."""
    causes: list[Cause] = []
    node = affinity.get("nodeAffinity") or {}
    where = f"{field}.nodeAffinity"
    if node.get(_REQUIRED) is not None:
        causes += node_selector_causes(node[_REQUIRED], f"{where}.{_REQUIRED}")
    for index, term in enumerate(node.get(_PREFERRED) or ()):
        at = f"{where}.{_PREFERRED}[{index}].preference"
        causes += node_term_causes(term.get("preference") or {}, at, any_value=True)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for index, term in enumerate(terms.get(_REQUIRED) or ()):
            causes += _pod_term_causes(term, f"{field}.{kind}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(terms.get(_PREFERRED) or ()):
            at = f"{field}.{kind}.{_PREFERRED}[{index}].podAffinityTerm"
            causes += _pod_term_causes(weighted.get("podAffinityTerm") or {}, at)
    return causes


def _pod_term_causes(term: Mapping[str, Any], field: str) -> list[Cause]:
    causes = label_selector_causes(term.get("labelSelector"), f"{field}.labelSelector")
    causes += label_selector_causes(term.get("namespaceSelector"), f"{field}.namespaceSelector")
    key = term.get("topologyKey", "")
    if not key:
        causes.append(required(f"{field}.topologyKey", "can not be empty"))
    return causes + invalid_text(f"{field}.topologyKey", key, label_key)


def spread_causes(constraints: list[dict[str, Any]], field: str) -> list[Cause]:
    """Check ``spec.topologySpreadConstraints``."""
    causes: list[Cause] = []
    for index, one in enumerate(constraints):
        at = f"{field}[{index}]"
        skew, action = one.get("maxSkew", 0), one.get("whenUnsatisfiable", "")
        if skew <= 0:
            causes.append(invalid(f"{at}.maxSkew", skew, "must be greater than zero"))
        if not one.get("topologyKey"):
            causes.append(required(f"{at}.topologyKey", "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            known = ("DoNotSchedule", "ScheduleAnyway")
            causes.append(unsupported(f"{at}.whenUnsatisfiable", action, known))
        causes += label_selector_causes(one.get("labelSelector"), f"{at}.labelSelector")
    return causes


def toleration_causes(tolerations: list[dict[str, Any]], field: str) -> list[Cause]:
    """Check ``spec.tolerations``."""
    causes: list[Cause] = []
    for index, one in enumerate(tolerations):
        at = f"{field}[{index}]"
        operator, effect = one.get("operator", ""), one.get("effect", "")
        if one.get("key"):
            causes += invalid_text(f"{at}.key", one["key"], label_key)
        elif operator != "Exists":
            why = (
                "operator must be Exists when `key` is empty, "
                'which means "match all values and all keys"'
            )
            causes.append(invalid(f"{at}.operator", operator, why))
        if operator not in ("", "Equal", "Exists"):
            causes.append(unsupported(f"{at}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in TAINT_EFFECTS:
            causes.append(unsupported(f"{at}.effect", effect, TAINT_EFFECTS))
    return causes


def gate_causes(gates: list[dict[str, Any]], field: str) -> list[Cause]:
    """Check ``spec.schedulingGates``."""
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        causes += invalid_text(f"{field}[{index}]", name, label_key)
        if name in seen:
            causes.append(duplicate(f"{field}[{index}]", name))
        seen.add(name)
    return causes


def group_causes(group: Mapping[str, Any], field: str) -> list[Cause]:
    """Check ``spec.schedulingGroup``, which names the pod's gang."""
    name = group.get("podGroupName")
    if name is None:
        why = "must specify one of: `podGroupName`"
        return [invalid(f"{field}.podGroupName", None, why)]
    return invalid_text(f"{field}.podGroupName", name, dns_subdomain)
