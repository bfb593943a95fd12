"""What preemption has to know of pods and of disruption budgets, from their JSON."""

import json

import pytest

from quorate.core.model import LabelSelector, Requirement
from quorate.core.model.budgets import PodDisruptionBudget
from quorate.shell.watch.objects import watched_kinds
from tests.unit.shell.decoded import decode, manifest

BUDGETS = watched_kinds(frozenset())["/apis/policy/v1/poddisruptionbudgets"]


def pod(*, spec=None, status=None, **meta):
    return decode(manifest({"schedulerName": "another", **(spec or {})}, status, **meta))


def test_a_nomination_and_a_start():
    found = pod(status={"nominatedNodeName": "n0", "startTime": "2026-01-01T00:00:00Z"})
    assert (found.nominated, found.start_time) == ("n0", "2026-01-01T00:00:00Z")


def test_a_pod_with_a_node_is_not_nominated_any_more():
    assert pod(spec={"nodeName": "n1"}, status={"nominatedNodeName": "n0"}).nominated == ""


@pytest.mark.parametrize(("policy", "never"), [("Never", True), ("PreemptLowerPriority", False)])
def test_the_preemption_policy(policy, never):
    assert pod(spec={"preemptionPolicy": policy}).never_preempts is never


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"reason": "EvictionByEvictionAPI"}, False),
        ({"status": "False"}, False),
        ({"type": "Other"}, False),
    ],
)
def test_a_victim_is_known_by_its_condition(change, expected):
    by = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert pod(status={"conditions": [by | change]}, **going).preempted is expected
    assert pod(status={"conditions": [by | change]}).preempted is False, "it does not terminate"


def test_a_budget():
    raw = {
        "metadata": {"namespace": "team", "name": "db"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 2},
        "status": {"disruptionsAllowed": 1, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
    }
    selector = LabelSelector((Requirement("app", "In", ("db",)),))
    expected = PodDisruptionBudget("team", "db", selector, allowed=1, disrupted=("p",))
    assert BUDGETS.changed(json.dumps(raw).encode()).object == expected


def test_a_budget_that_nobody_has_looked_at_yet_allows_nothing():
    raw = {"metadata": {"namespace": "team", "name": "db"}}
    expected = PodDisruptionBudget("team", "db")
    assert BUDGETS.changed(json.dumps(raw).encode()).object == expected
