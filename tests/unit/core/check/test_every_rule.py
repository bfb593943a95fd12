"""Every rule that rules nodes out is checked apart: a plan that breaks it is refused."""

import pytest
from msgspec.structs import replace

from quorate.core.check.verify import verify_gang
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.rules.table import FILTERS
from tests.unit.core.check.refusals import REFUSALS
from tests.unit.core.storage_world import StorageWorld

NAMES = [rule.name for rule in FILTERS]


def planned(case, profile):
    """Return the world after the case's plan and its change, what was said before, and after."""
    w = StorageWorld(scheduler_names=("quorate", "kube"), profiles=(("kube", profile),))
    w.node("n0", **case.node)
    case.before(w)
    w.pod("p", scheduler="kube", **case.pod)
    plan = w.scheduler.decide(w.now_s)
    [gang] = plan.gangs or plan.preparing
    before = verify_gang(gang, w.cluster)
    case.change(w)
    return before, verify_gang(gang, w.cluster)


def test_every_rule_has_a_case_and_every_case_a_rule():
    assert sorted(REFUSALS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_that_breaks_the_rule_is_refused_unless_the_profile_does_without(name):
    case = REFUSALS[name]
    assert planned(case, KUBE_SCHEDULER) == ([], [case.said])
    assert planned(case, replace(KUBE_SCHEDULER, disabled=(name,))) == ([], [])
