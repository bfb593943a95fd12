"""The table of the rules: what each row must have."""

import importlib
import pkgutil

import pytest

from quorate.core import rules
from quorate.core.rules import table
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.scoring import WEIGHTS

KUBE_FILTERS = (
    "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread",
    "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
)  # fmt: skip
"""kube-scheduler 1.36, in its order, but for NodeName: a pod that names its node is bound."""
HOOKS = {
    RuleKind.NODE: {"admits"},
    RuleKind.USE: {"cap", "fits", "fits_on", "on_node"},
    RuleKind.VOLUMES: {"concerns"},
    RuleKind.PODS: {"interests"},
    RuleKind.DEVICES: {"cap", "interests"},
}
"""What a rule that rules nodes out must have, besides ``judge``."""


def made() -> list[tuple[str, Rule]]:
    """Return all rules that the files of the room make, each with the path of its file."""
    found = []
    for one in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        module = importlib.import_module(one.name)
        if hasattr(module, "RULE"):
            found.append((one.name, module.RULE))
        if module is not table:
            found += [(one.name, rule) for rule in getattr(module, "RULES", ())]
    return found


def test_each_file_s_rule_has_one_row_and_is_named_as_its_file():
    assert sorted(id(rule) for _, rule in made()) == sorted(map(id, table.RULES))
    for path, rule in made():
        name = path.rpartition(".")[2].replace("_", "")
        assert name == rule.name.lower() or (name == "volumes" and rule.name in KUBE_FILTERS)


def test_kube_scheduler_s_rules_are_all_there_and_in_its_order():
    assert table.KUBE_FILTERS == KUBE_FILTERS
    assert {name for name, *_ in (*table.SCORES, *table.SCORES_OF_AMOUNTS)} == set(WEIGHTS)


@pytest.mark.parametrize("rule", table.FILTERS, ids=lambda rule: rule.name)
def test_a_rule_has_the_hooks_of_its_kind(rule):
    assert {hook for hook in HOOKS[rule.kind] if getattr(rule, hook) is None} == set()


@pytest.mark.parametrize("rule", table.RULES, ids=lambda rule: rule.name)
def test_a_rule_rules_nodes_out_or_scores_them(rule):
    assert rule.judge or rule.score or rule.score_amounts or rule.utilisation
    assert bool(rule.score_amounts) == bool(rule.score_one)


def test_each_filter_is_asked_by_one_group():
    groups = [name for name, _, _ in table.ON_ATTRIBUTES]
    groups += [rule.name for rule in (*table.ON_USE, *table.BEYOND_NODE)]
    assert sorted(groups) == sorted(rule.name for rule in table.FILTERS)
    assert {"NodeUnschedulable", "TaintToleration", "NodeAffinity"} <= table.ASKED_FIRST
    assert "NodeDeclaredFeatures" not in table.ASKED_BY_NODE, "pods come before it"
    assert {"PodTopologySpread", "InterPodAffinity"} == table.ON_PODS
