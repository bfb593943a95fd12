"""Pods that quorate must not place as they are: it holds them and says which rule it lacks."""

import pytest

from quorate.core.model.reasons import Reason
from tests.unit.core.terms import apart, pods
from tests.unit.core.world import World, key

WEB = {"app": "web"}


def world():
    w = World()
    w.node("n0", labels={"host": "n0"})
    return w


@pytest.mark.parametrize(
    "leave",
    [lambda w: w.delete("loner"), lambda w: w.edit("loner", phase="Succeeded")],
    ids=["deleted", "finished"],
)
def test_a_running_pod_repels_others_until_it_goes(leave):
    w = world()
    w.running("loner", "n0", spec=apart(pods(**WEB)))
    gang = w.gang("job", 2, labels=WEB)
    w.gang("other", 2)
    assert set(w.cycle()) == {"other-0", "other-1"}
    assert w.why(gang).reason is Reason.NOT_ENOUGH_ROOM
    assert "didn't satisfy existing pods anti-affinity rules" in w.why(gang).message
    leave(w)
    assert len(w.cycle()) == 2


def test_a_pod_that_does_not_run_repels_nobody():
    w = world()
    w.pod("pending", scheduler="default-scheduler", spec=apart(pods(**WEB)))
    w.gang("job", 2, labels=WEB)
    assert len(w.cycle()) == 2


def test_a_started_gang_holds_only_the_replacement_that_is_repelled():
    w = world()
    gang = w.gang("job", 2, labels=WEB)
    w.cycle()
    w.running("loner", "n0", spec=apart(pods(**WEB)))
    w.pod("again", gang, labels=WEB)
    assert w.cycle() == {}
    assert w.why(gang).members.bound == 2


def test_a_held_member_does_not_count_towards_quorum():
    w = world()
    gang = w.gang("job", 2, pods=1)
    w.pod("odd", gang, defect="no containers")
    assert w.cycle() == {}
    w.pod("good", gang)
    assert set(w.cycle()) == {"job-0", "good"}
    assert w.where("odd") == ""


def test_a_held_member_is_placed_when_it_is_mended():
    w = world()
    gang = w.gang("job", 2, pods=1)
    w.pod("odd", gang, defect="no containers")
    w.cycle()
    w.edit("odd", defect="")
    assert set(w.cycle()) == {"job-0", "odd"}


def test_a_defect_of_the_object_holds_replacements_but_nothing_that_runs():
    w = world()
    gang = w.gang("job", 2)
    w.cycle()
    w.object("job", 2, defect="spec.minMember: -1")
    w.pod("again", gang)
    plan = w.decide()
    assert (plan.gangs, plan.evictions) == ((), ())
    assert w.why(gang).reason is Reason.GANG_OBJECT_INVALID


def test_pods_of_a_gang_of_another_scheduler_are_left_alone():
    w = world()
    gang = key("theirs")
    for index in range(3):
        w.pod(f"p{index}", gang, scheduler="default-scheduler")
    w.object("theirs", 2)
    plan = w.decide()
    assert plan.gangs == ()
    assert w.cluster.gangs[gang].ours == 0


def test_names_that_are_owned_by_configuration():
    w = World(scheduler_names=("volcano",))
    w.node("n0")
    w.pod("ours", scheduler="volcano")
    w.pod("theirs", scheduler="quorate")
    assert set(w.cycle()) == {"ours"}
