"""What is installed for the rules: from ``Rules`` to the values of manifests.

Called by ``quorate manifests --component``. The templates are ``deploy/cks-*.yaml``: policies in
CEL, which admission carries out, and the process that keeps nodes.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from quorate.cks.states import STEPS

if TYPE_CHECKING:
    from quorate.cks.rules import Rules

POLICIES = "cks-policies"
NODES = "cks-nodes"
COMPONENTS = (POLICIES, NODES)
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


TABLE = {
    "steps": json.dumps({state: list(following) for state, following in STEPS.items()}),
    "states": ", ".join(STEPS),
}
"""Placeholders for the life-cycle's table, which is the same in each cluster."""


def parts(component: str, kubernetes: tuple[int, int]) -> tuple[str, ...]:
    """Return a component's templates that an API server of this version takes, in their order."""
    mutates = component == POLICIES and kubernetes >= MUTATING_SINCE
    return (component, MUTATIONS) if mutates else (component,)


def values(rules: Rules, kubernetes: tuple[int, int]) -> dict[str, str]:
    """Return what stands for the placeholders of the templates; lists are lists of CEL."""
    unless_right = UNLESS_RIGHT.replace("${reserved_label}", rules.reserved_label)
    named = {name: getattr(rules, name) for name in rules.__struct_fields__}
    return {
        **TABLE,
        "unless_right": unless_right if kubernetes >= MUTATING_SINCE else "",
        **{name: one if isinstance(one, str) else _list(one) for name, one in named.items()},
        "checksum": hashlib.sha256(json.dumps(named).encode()).hexdigest()[:16],
    }


def _list(texts: tuple[str, ...]) -> str:
    return json.dumps(texts, separators=(",", ":"))
