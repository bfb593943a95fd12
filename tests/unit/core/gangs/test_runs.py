"""A run goes on when its last life is over: what succeeded counts towards min (ADR 14)."""

from itertools import product

import pytest

from quorate.core.lifecycle.advancing import hold_next_runs
from quorate.core.model import Owner
from quorate.core.model.changes import BindFailure, OwnerChanged
from quorate.core.model.reasons import Reason
from tests.invariants import check_all
from tests.unit.core.held_world import full_world, held, lose, replace
from tests.unit.core.world import TEAM, Unwalked, World, fail, key, world

OF_ONE, OF_NEXT = {"run": "one"}, {"run": "next"}


def test_the_last_of_a_run_is_replaced_alone_when_the_others_have_succeeded():
    """It waited for ever: "1 of 3 members exist"."""
    w = world(cpu=8)
    gang = w.gang("tune", 3, **OF_ONE)
    w.cycle()
    w.edit("tune-0", phase="Succeeded")
    w.edit("tune-1", phase="Succeeded")
    w.edit("tune-2", phase="Failed")
    w.pod("again", gang, **OF_ONE)
    assert set(w.cycle()) == {"again"}
    assert w.cluster.gangs[gang].started


def test_those_that_failed_together_start_together_and_what_succeeded_counts():
    w = world(cpu=3)
    gang = w.gang("tune", 3, **OF_ONE)
    w.cycle()
    w.edit("tune-0", phase="Succeeded")
    w.pod("other", cpu=2)
    w.edit("tune-1", phase="Failed")
    w.edit("tune-2", phase="Failed")
    w.pod("again-1", gang, **OF_ONE)
    assert set(w.cycle()) == {"other"}
    assert w.why(gang).message.startswith("2 of 3 members exist; 1 of them has succeeded")
    w.pod("again-2", gang, **OF_ONE)
    assert w.cycle() == {}
    assert "2 members must start together and 1 fit" in w.why(gang).message
    w.delete("other")
    assert set(w.cycle()) == {"again-1", "again-2"}


def test_the_smaller_last_wave_of_a_job_starts():
    """Of 5 completions, 4 at a time, the last waited for ever."""
    w = world(cpu=8)
    gang = w.gang("waves", 4, **OF_ONE)
    w.cycle()
    for index in range(4):
        w.edit(f"waves-{index}", phase="Succeeded")
    w.pod("last", gang, **OF_ONE)
    assert set(w.cycle()) == {"last"}


@pytest.mark.parametrize("owners", [(OF_NEXT,), (OF_ONE, OF_NEXT), ({},)])
def test_what_succeeded_counts_for_nothing_in_another_run(owners):
    """Pods of another run, pods without a controller, or such among those of one that goes on."""
    w = world(cpu=8)
    gang = w.gang("tune", 3, **OF_ONE)
    w.cycle()
    for index in range(3):
        w.edit(f"tune-{index}", phase="Succeeded")
    for index, owner in enumerate(owners):
        w.pod(f"again-{index}", gang, **owner)
    assert w.cycle() == {}
    assert w.why(gang).message.startswith(f"{len(owners)} of 3 members exist")


def test_a_successor_counts_what_succeeded_too():
    w = world(cpu=8)
    gang = w.object("tune", 3)
    ended = {"node": "n0", "attempt": "old-1", "attempt_size": 3, "started": True}
    w.pod("tune-0", gang, phase="Succeeded", **ended, **OF_ONE)
    w.pod("tune-1", gang, phase="Succeeded", **ended, **OF_ONE)
    w.pod("tune-2", gang, phase="Failed", **ended, **OF_ONE)
    w.pod("again", gang, **OF_ONE)
    assert set(w.cycle()) == {"again"}


def test_min_resources_ask_nothing_again_for_what_succeeded():
    w = world(cpu=3)
    gang = w.gang("spark", 3, gang_spec={"min_resources": (("cpu", 3000),)}, **OF_ONE)
    w.cycle()
    w.pod("other", cpu=1)
    w.edit("spark-0", phase="Succeeded")
    w.edit("spark-1", phase="Succeeded")
    w.cycle()
    w.edit("spark-2", phase="Failed")
    w.pod("again", gang, **OF_ONE)
    assert set(w.cycle()) == {"again"}


# Runs of a CronJob, which all have its gang's name

FIRST, SECOND = Owner("batch/v1", "Job", "nightly-1"), Owner("batch/v1", "Job", "nightly-2")
OF_FIRST, OF_SECOND = {"run": "one", "owner": FIRST}, {"run": "two", "owner": SECOND}


def told(w, first="nightly", second="nightly"):
    """Tell which CronJobs made the Jobs."""
    w.observe(OwnerChanged(TEAM, FIRST, 4, first), OwnerChanged(TEAM, SECOND, 4, second))


def overlapping(w):
    """Start a run of 4, and make the pods of the next; return the gang."""
    gang = w.gang("nightly", 4, **OF_FIRST)
    assert len(w.cycle()) == 4
    for index in range(4):
        w.pod(f"next-{index}", gang, **OF_SECOND)
    return gang


def test_the_next_run_starts_as_a_whole_when_the_first_has_ended():
    """2 of its 4 pods started, where there was room for 6."""
    w = world(cpu=6)
    gang = overlapping(w)
    told(w)
    assert w.cycle() == {}
    assert w.why(gang).reason is Reason.EARLIER_RUN
    for index in range(4):
        w.edit(f"nightly-{index}", phase="Succeeded")
    assert sorted(w.cycle()) == [f"next-{index}" for index in range(4)]


@pytest.mark.parametrize("heard_of", [FIRST, SECOND])
def test_no_pod_of_the_next_run_starts_while_the_cron_job_of_one_is_unknown(heard_of):
    """When only the second had been looked up, 2 of its 4 pods started beside the first."""
    w = world(cpu=6)
    gang = overlapping(w)
    w.observe(OwnerChanged(TEAM, heard_of, 4, "nightly"))
    assert w.cycle() == {}
    assert w.why(gang).message.startswith("Job nightly-2 may be a next run of Job nightly-1")


CASES = list(product(("", "n0"), ("", "nightly", "weekly"), (False, True)))
"""Of a Job: its members' node, who made it, and whether that is known."""


@pytest.mark.parametrize("of_third", CASES)
def test_whatever_is_known_of_jobs_no_run_is_let_go_beside_another_of_its_cron_job(of_third):
    for cases in product(CASES, CASES, [of_third]):
        w = world(cpu=8)
        gang = w.object("nightly", 1)
        answers = {}
        for index, (node, made_by, is_known) in enumerate(cases):
            job = Owner("batch/v1", "Job", str(index))
            w.pod(f"pod-{index}", gang, owner=job, run=str(index), node=node)
            answers[job] = made_by if is_known else None
        w.decide()
        held = w.cluster.gangs[gang].runs.to_hold(answers.get, 1)
        for cron_job in ("nightly", "weekly"):
            runs = {i: node for i, (node, by, _) in enumerate(cases) if by == cron_job}
            go_on = [node for index, node in runs.items() if str(index) not in held]
            assert len(go_on) < 2 or all(go_on), cases


def test_a_lost_member_of_the_run_that_goes_on_is_replaced_meanwhile():
    w = world(cpu=6)
    gang = overlapping(w)
    told(w)
    w.delete("nightly-0")
    w.pod("again", gang, **OF_FIRST)
    assert set(w.cycle()) == {"again"}


@pytest.mark.parametrize("made_by", [("", ""), ("nightly", ""), ("nightly", "weekly")])
def test_jobs_of_no_common_cron_job_are_one_gang(made_by):
    """Such as a driver and its workers. Their pods wait until it is known."""
    w = world(cpu=6)
    gang = overlapping(w)
    assert w.cycle() == {}
    assert set(w.scheduler.explainer(w.now_s).owners(gang)) == {FIRST, SECOND}
    assert w.why(gang).reason is Reason.EARLIER_RUN
    told(w, *made_by)
    assert len(w.cycle()) == 2


def test_what_could_not_be_read_is_asked_again():
    w = world(cpu=6)
    gang = overlapping(w)
    told(w, None, None)
    assert gang in w.decide().touched
    told(w, None, None)
    assert gang in w.decide().touched
    assert set(w.scheduler.explainer(w.now_s).owners(gang)) == {FIRST, SECOND}


def test_of_two_runs_that_wait_one_starts():
    """Two pods of each could have been taken for the gang."""
    w = world(cpu=3)
    gang = w.gang("nightly", 4, **OF_FIRST)
    for index in range(4):
        w.pod(f"next-{index}", gang, **OF_SECOND)
    told(w)
    assert w.cycle() == {}
    w.node("n1", cpu=2)
    assert sorted(w.cycle()) == [f"nightly-{index}" for index in range(4)]
    assert w.cycle() == {}


def test_a_run_that_lacks_members_does_not_hold_a_whole_one():
    w = world(cpu=8)
    gang = w.gang("nightly", 4, 2, **OF_FIRST)
    for index in range(4):
        w.pod(f"next-{index}", gang, **OF_SECOND)
    told(w)
    assert sorted(w.cycle()) == [f"next-{index}" for index in range(4)]


def test_each_pod_of_the_next_run_is_told_its_reason():
    w = world(cpu=3)
    gang = w.gang("nightly", 4, **OF_FIRST)
    w.pod("next-0", gang, **OF_SECOND)
    told(w)
    w.cycle()
    explainer = w.scheduler.explainer(w.now_s)
    of_gang = explainer.explain(gang)
    assert of_gang.reason is Reason.NOT_ENOUGH_ROOM
    entry = w.cluster.pods[w.pods["next-0"].uid]
    reason, message = explainer.pod_message(entry, of_gang)
    assert reason is Reason.EARLIER_RUN
    assert message.startswith("Job nightly-2 is of CronJob nightly")


def test_pods_of_the_next_run_cost_the_same_however_many_there_are():
    """Each news of the gang walked through all members, and so did the message of each pod."""
    w = world(cpu=6)
    gang = overlapping(w)
    told(w)
    w.cycle()
    entry = w.cluster.pods[w.pods["next-0"].uid]
    of_gang = w.why(gang)
    entry.gang.members = Unwalked(entry.gang.members)
    hold_next_runs(entry.gang, w.cluster)
    words = w.scheduler.explainer(w.now_s).pod_message(entry, of_gang)
    assert words == (Reason.EARLIER_RUN, of_gang.message)


def test_owners_that_say_one_uid_are_counted_as_who_they_are():
    """A tenant writes any uid: of a run that others share, the Job's part did not end with it."""
    w = world(cpu=8)
    gang = w.gang("owned", 4, 1, owner=FIRST, run="u")
    w.pod("same", gang, owner=SECOND, run="u")
    w.pod("other", gang, owner=Owner("apps/v1", "Deployment", "web"), run="u")
    for name in ("owned-0", "same", "other"):
        w.delete(name)
        assert check_all(w.scheduler, w.now_s) == []


# The room of the last


def world_whose_last_has_failed() -> World:
    """All others of the gang ``a`` have succeeded, and other pods have their room."""
    w = full_world(**OF_ONE)
    for index in range(3):
        w.edit(f"a-{index}", phase="Succeeded")
        w.running(f"other-{index}", w.where(f"a-{index}"), cpu=1)
    w.edit("a-3", phase="Failed")
    return w


def test_room_is_held_for_the_last_member_that_fails_when_the_others_have_succeeded():
    """Another pod took it, and the run never came to its end."""
    w = world_whose_last_has_failed()
    node = w.where("a-3")
    assert w.cycle() == {}
    assert held(w) == [node]
    replace(w, **OF_ONE)
    w.delete("a-3")
    w.cycle(outcome=fail(BindFailure.REFUSED), after_s=1.0)
    assert held(w) == [node]
    w.now_s += 5.0
    assert w.cycle() == {"a-new": node}
    assert held(w) == []
    assert w.cluster.reservations.missing(key("a")) == 0


def test_the_room_stays_when_the_replacement_of_the_last_is_deleted_while_it_is_bound():
    """An operator may delete the new pod for the old one, which had its name."""
    w = world_whose_last_has_failed()
    node = w.where("a-3")
    w.delete("a-3")
    replace(w, **OF_ONE)
    w.decide()
    w.delete("a-new")
    assert w.cycle() == {}
    assert held(w) == [node]
    replace(w, "a-newer", **OF_ONE)
    assert w.cycle() == {"a-newer": node}


def test_nothing_is_held_for_workers_that_are_told_to_go_once_the_others_have_succeeded():
    """An operator cleans up what still runs when the launcher has ended."""
    w = full_world(**OF_ONE)
    w.edit("a-0", phase="Succeeded")
    for index in (1, 2, 3):
        lose(w, f"a-{index}")
    w.cycle()
    assert held(w) == []


def test_nothing_is_held_for_a_run_that_has_failed_as_a_whole():
    w = full_world(**OF_ONE)
    for index in range(4):
        w.edit(f"a-{index}", phase="Failed")
    assert list(w.cycle()) == ["b-0"]
    assert held(w) == []


def test_what_failed_last_is_held_for_its_own_run_alone():
    w = world_whose_last_has_failed()
    w.cycle()
    replace(w, **OF_NEXT)
    assert list(w.cycle()) == ["b-0"]
    assert held(w) == []
