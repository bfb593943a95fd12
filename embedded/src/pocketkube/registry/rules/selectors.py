"""Checks of label selectors and node selectors.

Source: k8s.io/apimachinery ``apis/meta/v1/validation`` and kubernetes ``core/validation`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import forbidden, invalid, required
from pocketkube.errors import Cause
from pocketkube.names import (
    dns_subdomain,
    invalid_text,
    label_causes,
    label_key,
    label_value,
)

_NO_OPERATOR = "not a valid selector operator"


def _values_causes(requirement: Mapping[str, Any], field: str) -> list[Cause] | None:
    """Check the values that an operator needs; None for an operator that is not known."""
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in ("In", "NotIn"):
        why = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [required(f"{field}.values", why)]
    if operator in ("Exists", "DoesNotExist"):
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden(f"{field}.values", why)] if values else []
    return None


def _text_causes(requirement: Mapping[str, Any], field: str, *, any_value: bool) -> list[Cause]:
    causes = invalid_text(f"{field}.key", requirement.get("key", ""), label_key)
    if not any_value:
        for index, value in enumerate(requirement.get("values") or ()):
            causes += invalid_text(f"{field}.values[{index}]", value, label_value)
    return causes


def label_selector_causes(selector: Mapping[str, Any] | None, field: str) -> list[Cause]:
    """Check a LabelSelector; None is fine."""
    if not selector:
        return []
    causes = label_causes(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = f"{field}.matchExpressions[{index}]"
        found = _values_causes(requirement, where)
        if found is None:
            found = [invalid(f"{where}.operator", requirement.get("operator", ""), _NO_OPERATOR)]
        causes += found + _text_causes(requirement, where, any_value=False)
    return causes


def node_term_causes(term: Mapping[str, Any], field: str, *, any_value: bool) -> list[Cause]:
    """Check one term of a node selector; ``any_value``: what can never match may stand there."""
    causes: list[Cause] = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        where = f"{field}.matchExpressions[{index}]"
        operator, values = requirement.get("operator", ""), requirement.get("values") or ()
        found = _values_causes(requirement, where)
        if found is None:
            found = []
            if operator not in ("Gt", "Lt"):
                found.append(invalid(f"{where}.operator", operator, _NO_OPERATOR))
            elif len(values) != 1:
                why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                found.append(required(f"{where}.values", why))
        causes += found + _text_causes(requirement, where, any_value=any_value)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        causes += _node_field_causes(requirement, f"{field}.matchFields[{index}]")
    return causes


def _node_field_causes(requirement: Mapping[str, Any], field: str) -> list[Cause]:
    operator, key = requirement.get("operator", ""), requirement.get("key", "")
    values = requirement.get("values") or ()
    causes: list[Cause] = []
    if operator not in ("In", "NotIn"):
        causes.append(invalid(f"{field}.operator", operator, _NO_OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.append(required(f"{field}.values", why))
    if key != "metadata.name":
        return [*causes, invalid(f"{field}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        causes += invalid_text(f"{field}.values[{index}]", value, dns_subdomain)
    return causes


def node_selector_causes(
    selector: Mapping[str, Any], field: str, *, any_value: bool = False
) -> list[Cause]:
    """Check a NodeSelector: at least one term."""
    terms = selector.get("nodeSelectorTerms")
    where = f"{field}.nodeSelectorTerms"
    if not terms:
        return [required(where, "must have at least one node selector term")]
    causes: list[Cause] = []
    for index, term in enumerate(terms):
        causes += node_term_causes(term, f"{where}[{index}]", any_value=any_value)
    return causes
