"""The rules that admission carries out, as policies in CEL: from ``Rules`` to manifests.

Called by ``quorate manifests --component cks-policies``. The templates are ``deploy/cks-*.yaml``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.cks.rules import Rules

COMPONENT = "cks-policies"
MUTATIONS = "cks-mutations"
"""The part that adds what pods and namespaces need; it asks for mutating policies."""
MUTATING_SINCE = (1, 36)
"""MutatingAdmissionPolicy v1 is there from this version on; v1beta1 of 1.34 and 1.35 is off."""
VALIDATING_SINCE = (1, 30)

UNLESS_RIGHT = """
  # The mutation leaves the selector only where it is right, so most pods are done with here: what
  # comes below would cost the API server twice as much.
  matchConditions:
    - name: unless-right
      expression: >-
        !("${reserved_label}" in object.spec.?nodeSelector.orValue({}))
        || has(object.spec.nodeName)"""
"""What the policy on pods has beside the mutation."""


def parts(kubernetes: tuple[int, int]) -> tuple[str, ...]:
    """Return the templates that an API server of this version takes, in their order."""
    return (COMPONENT, MUTATIONS) if kubernetes >= MUTATING_SINCE else (COMPONENT,)


def values(rules: Rules, kubernetes: tuple[int, int]) -> dict[str, str]:
    """Return what stands for the placeholders of the templates; lists are lists of CEL."""
    unless_right = UNLESS_RIGHT.replace("${reserved_label}", rules.reserved_label)
    return {
        "unless_right": unless_right if kubernetes >= MUTATING_SINCE else "",
        "organization_label": rules.organization_label,
        "reserved_label": rules.reserved_label,
        "cpu_taint": rules.cpu_taint,
        "group_prefix": rules.group_prefix,
        "organizations": _list(rules.organizations),
        "domains": _list(rules.domains),
        "gpu_resources": _list(rules.gpu_resources),
    }


def _list(texts: tuple[str, ...]) -> str:
    return json.dumps(texts, separators=(",", ":"))
