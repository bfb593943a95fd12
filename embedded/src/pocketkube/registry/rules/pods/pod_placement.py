"""Checks of what decides where a pod may run: affinity, spread, tolerations, gates, groups.

Source: kubernetes ``pkg/apis/core/validation`` of 1.36, with the feature gates at their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import duplicate, forbidden, invalid, required, unsupported
from pocketkube.errors import Cause
from pocketkube.names import (
    dns_label,
    dns_subdomain,
    invalid_text,
    label_key,
    label_value,
)
from pocketkube.registry.rules.selectors import (
    label_selector_causes,
    node_selector_causes,
    node_term_causes,
)

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_POSITIVE = "must be greater than zero"


def affinity_causes(affinity: Mapping[str, Any], field: str) -> list[Cause]:
    """Check ``spec.affinity``."""
    causes: list[Cause] = []
    node = affinity.get("nodeAffinity")
    if node:
        where = f"{field}.nodeAffinity"
        if node.get(_REQUIRED) is not None:
            causes += node_selector_causes(node[_REQUIRED], f"{where}.{_REQUIRED}")
        for index, term in enumerate(node.get(_PREFERRED) or ()):
            at = f"{where}.{_PREFERRED}[{index}]"
            causes += _weight_causes(term, at)
            preference = term.get("preference") or {}
            causes += node_term_causes(preference, f"{at}.preference", any_value=True)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind)
        if terms:
            causes += _pod_affinity_causes(terms, f"{field}.{kind}")
    return causes


def _weight_causes(term: Mapping[str, Any], field: str) -> list[Cause]:
    weight = term.get("weight", 0)
    good = 1 <= weight <= 100
    return [] if good else [invalid(f"{field}.weight", weight, "must be in the range 1-100")]


def _pod_affinity_causes(affinity: Mapping[str, Any], field: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        causes += _pod_term_causes(term, f"{field}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{field}.{_PREFERRED}[{index}]"
        causes += _weight_causes(weighted, at)
        causes += _pod_term_causes(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")
    return causes


def _pod_term_causes(term: Mapping[str, Any], field: str) -> list[Cause]:
    causes = label_selector_causes(term.get("labelSelector"), f"{field}.labelSelector")
    causes += label_selector_causes(term.get("namespaceSelector"), f"{field}.namespaceSelector")
    for name in term.get("namespaces") or ():
        causes += invalid_text(f"{field}.namespace", name, dns_label)
    causes += _label_keys_causes(term, field)
    key = term.get("topologyKey", "")
    if not key:
        causes.append(required(f"{field}.topologyKey", "can not be empty"))
    return causes + invalid_text(f"{field}.topologyKey", key, label_key)


def _label_keys_causes(term: Mapping[str, Any], field: str) -> list[Cause]:
    """Check matchLabelKeys and mismatchLabelKeys, whose conditions are in the selector by now."""
    selector = term.get("labelSelector")
    match, mismatch = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    causes: list[Cause] = []
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            why = "must not be specified when labelSelector is not set"
            causes.append(forbidden(f"{field}.{name}", why))
        else:
            for index, key in enumerate(keys):
                causes += invalid_text(f"{field}.{name}[{index}]", key, label_key)
    seen = set((selector or {}).get("matchLabels") or {})
    for expression in (selector or {}).get("matchExpressions") or ():
        key = expression.get("key", "")
        if key in match and key in seen:
            where = f"{field}[{list(match).index(key)}]"
            causes.append(invalid(where, key, "exists in both matchLabelKeys and labelSelector"))
        seen.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            causes.append(invalid(f"{field}.matchLabelKeys[{index}]", key, why))
    return causes


def spread_causes(constraints: list[dict[str, Any]], field: str) -> list[Cause]:
    """Check ``spec.topologySpreadConstraints``."""
    causes: list[Cause] = []
    for index, one in enumerate(constraints):
        at = f"{field}[{index}]"
        skew, key = one.get("maxSkew", 0), one.get("topologyKey", "")
        action = one.get("whenUnsatisfiable", "")
        if skew <= 0:
            causes.append(invalid(f"{at}.maxSkew", skew, _POSITIVE))
        if not key:
            causes.append(required(f"{at}.topologyKey", "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            known = ("DoNotSchedule", "ScheduleAnyway")
            causes.append(unsupported(f"{at}.whenUnsatisfiable", action, known))
        if any(_kind(one) == _kind(other) for other in constraints[index + 1 :]):
            where = f"{at}.{{topologyKey, whenUnsatisfiable}}"
            causes.append(duplicate(where, f"{{{key}, {action}}}"))
        causes += _min_domains_causes(one.get("minDomains"), action, f"{at}.minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = one.get(name)
            if policy is not None and policy not in ("Honor", "Ignore"):
                causes.append(unsupported(f"{at}.{name}", policy, ("Honor", "Ignore")))
        if one.get("matchLabelKeys"):
            causes += _label_keys_causes({**one, "mismatchLabelKeys": ()}, at)
        causes += label_selector_causes(one.get("labelSelector"), f"{at}.labelSelector")
    return causes


def _kind(constraint: Mapping[str, Any]) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _min_domains_causes(domains: int | None, action: str, field: str) -> list[Cause]:
    if domains is None:
        return []
    causes = [invalid(field, domains, _POSITIVE)] if domains <= 0 else []
    if action != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        causes.append(invalid(field, domains, why))
    return causes


def toleration_causes(tolerations: list[dict[str, Any]], field: str) -> list[Cause]:
    """Check ``spec.tolerations``."""
    causes: list[Cause] = []
    for index, one in enumerate(tolerations):
        at = f"{field}[{index}]"
        key, operator = one.get("key", ""), one.get("operator", "")
        value, effect = one.get("value", ""), one.get("effect", "")
        if key:
            causes += invalid_text(f"{at}.key", key, label_key)
        elif operator != "Exists":
            why = (
                "operator must be Exists when `key` is empty, "
                'which means "match all values and all keys"'
            )
            causes.append(invalid(f"{at}.operator", operator, why))
        if one.get("tolerationSeconds") is not None and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(invalid(f"{at}.effect", effect, why))
        causes += _operator_causes(operator, value, f"{at}.operator")
        if effect and effect not in TAINT_EFFECTS:
            causes.append(unsupported(f"{at}.effect", effect, TAINT_EFFECTS))
    return causes


def _operator_causes(operator: str, value: str, field: str) -> list[Cause]:
    if operator in ("", "Equal"):
        wrong = label_value(value)
        return [invalid(field, value, ";".join(wrong))] if wrong else []
    if operator == "Exists":
        why = "value must be empty when `operator` is 'Exists'"
        return [invalid(field, value, why)] if value else []
    known: tuple[str, ...] = ("Equal", "Exists")
    if operator in ("Lt", "Gt"):  # known, but behind a feature gate that is off
        known += ("Lt", "Gt")
    return [unsupported(field, operator, known)]


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
