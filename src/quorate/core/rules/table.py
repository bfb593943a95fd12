"""The table of the rules, and every group of them, derived from the rows.

To add a rule: its file and its row here (docs/maintainers/add-a-rule.md). Rules that rule nodes out
stand in kube-scheduler's order: a node is ruled out by the first one that it fails. Which rules are
asked when, and by whom, follows from each rule's kind and hooks.
"""

from __future__ import annotations

from itertools import takewhile

from quorate.core.rules import volumes
from quorate.core.rules.devices import dynamic_resources
from quorate.core.rules.nodes import (
    node_affinity,
    node_declared_features,
    node_unschedulable,
    taint_toleration,
)
from quorate.core.rules.pods import inter_pod_affinity, pod_topology_spread
from quorate.core.rules.resources import (
    node_ports,
    node_resources_balanced_allocation,
    node_resources_fit,
    packing,
)
from quorate.core.rules.rule import Rule, RuleKind

RULES: tuple[Rule, ...] = (
    node_unschedulable.RULE,
    taint_toleration.RULE,
    node_affinity.RULE,
    node_ports.RULE,
    node_resources_fit.RULE,
    *volumes.RULES,
    pod_topology_spread.RULE,
    inter_pod_affinity.RULE,
    dynamic_resources.RULE,
    node_declared_features.RULE,
    node_resources_balanced_allocation.RULE,
    packing.RULE,
)

BY_NAME = {rule.name: rule for rule in RULES}
FILTERS = tuple(rule for rule in RULES if rule.judge is not None)
"""Rules that rule nodes out; the others are scores alone."""
KUBE_FILTERS = tuple(rule.name for rule in FILTERS if not rule.is_ours)
"""Names of the filters of kube-scheduler."""

ON_ATTRIBUTES = tuple(
    (rule.name, rule.judge, rule.admits)
    for rule in FILTERS
    if rule.kind is RuleKind.NODE and rule.judge is not None and rule.admits is not None
)
"""Name and hooks of the rules whose verdicts are kept as one mask."""
ASKED_FIRST = frozenset(
    rule.name for rule in takewhile(lambda rule: rule.kind is RuleKind.NODE, FILTERS)
)
"""Rules that no pod changes, and that are asked before all that pods change."""
ON_USE = tuple(rule for rule in FILTERS if rule.kind is RuleKind.USE)
BEYOND_NODE = tuple(
    rule for rule in FILTERS if rule.kind in (RuleKind.VOLUMES, RuleKind.PODS, RuleKind.DEVICES)
)
"""Rules that look further than one node."""
BUT_FOR_PODS = tuple(rule for rule in BEYOND_NODE if rule.kind is not RuleKind.PODS)
ON_PODS = frozenset(rule.name for rule in FILTERS if rule.kind is RuleKind.PODS)
"""Rules that look at what pods there are, by their labels: ``Neighbours.log`` says what changes."""
ASKED_BY_NODE = ASKED_FIRST | {rule.name for rule in ON_USE}
"""Rules that a trial on one node need not ask about all nodes."""

SCORES = tuple((rule.name, rule.score) for rule in RULES if rule.score is not None)
"""Scores that do not depend on amounts, so that a placement elsewhere seldom changes them."""
SCORES_OF_AMOUNTS = tuple(
    (rule.name, rule.score_amounts, rule.score_one)
    for rule in RULES
    if rule.score_amounts is not None and rule.score_one is not None
)
