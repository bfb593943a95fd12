"""What is said of waiting gangs, and when: by virtual time, with no shell.

Method: real worlds and explanations; the clock is a number. Sayings are counted.
"""

from collections import Counter
from itertools import pairwise

import pytest

from quorate.core.model import policy
from quorate.core.model.reasons import GangState, Reason
from quorate.core.telling import telling
from quorate.core.telling.sayings import SayCondition, SayEvent, SayStatus
from quorate.core.telling.telling import Now
from tests.unit.core.telling.told import WALL_S, Told, of
from tests.unit.core.world import key


@pytest.fixture
def told():
    return Told()


def waiting(told, pods=4):
    told.world.gang("g", pods, cpu=9)
    told.touch()


def joins(told, count=1):
    """Nodes join on which nothing fits: the count in the sentence is another one."""
    for _ in range(count):
        told.world.node(f"small-{len(told.world.cluster.nodes.rows)}", cpu=1)
    told.touch()


# What is counted


def test_waiting_gangs_are_counted_with_their_gpus_and_since_when(told):
    """Nobody could see how long gangs wait, nor for how many GPUs."""
    told.world.node("n0", cpu=64, gpu=8)
    told.world.gang("a", 2, gpu=8, created_s=30.0)
    told.world.gang("b", 3, gpu=8, created_s=20.0)
    told.world.pod("lonely", cpu=1, gpu=9, created_s=40.0)
    told.touch()
    told.run(2)
    counted = told.telling.counted
    assert counted.gpus == {"nvidia.com/gpu": 2 * 8 + 3 * 8 + 9}
    assert counted.states[GangState.WAITING] == 3
    (reason,) = [one for one, many in counted.reasons.items() if many == 2]
    assert counted.oldest_s(reason) == 20.0
    told.telling.settle(key("b"))
    assert counted.gpus == {"nvidia.com/gpu": 2 * 8 + 9}
    assert counted.oldest_s(reason) == 30.0
    told.world.node("n1", cpu=64, gpu=64)
    told.world.cycle()
    told.touch()
    told.run(2)
    assert counted.reasons[reason] == 0
    assert (counted.oldest_s(reason), counted.gpus) == (None, {})


# What, and of whom


def test_each_pod_has_its_condition_and_the_gang_its_event(told):
    joins(told)
    waiting(told)
    said = told.run(2)
    conditions = of(SayCondition, said)
    assert sorted(one.pod.name for one in conditions) == ["g-0", "g-1", "g-2", "g-3"]
    (of_gang,) = [one for one in of(SayEvent, said) if one.of_gang]
    assert of_gang.message == conditions[0].message
    assert of_gang.count == 1


def test_a_single_pod_has_one_event(told):
    joins(told)
    told.world.pod("lonely", cpu=9)
    told.touch()
    said = told.run(2)
    (event,) = of(SayEvent, said)
    assert event.of_gang
    assert event.pod.name == "lonely"
    assert of(SayStatus, said) == []


def test_a_pod_that_is_looked_at_while_there_is_room_for_a_moment_is_looked_at_again(told):
    """Nothing is said of a pod that is about to start; another took the room, and it heard none."""
    told.world.running("other", "n0", cpu=9)
    told.world.node("n0", cpu=9)
    told.world.pod("lonely", cpu=9)
    told.touch()
    told.world.delete("other")
    assert told.run(0.5) == []
    told.world.running("rival", "n0", cpu=9)
    (condition,) = of(SayCondition, told.run(2))
    assert condition.pod.name == "lonely"


def test_a_member_hears_each_reason_in_one_event_however_often_it_is_told(told):
    joins(told)
    waiting(told)
    told.run(2)
    for _ in range(6):
        joins(told)
        told.run(policy.AGAIN_S + 5)
    events = [one for _, one in told.said if isinstance(one, SayEvent)]
    assert Counter(one.of_gang for one in events if one.pod.name == "g-1") == {False: 1}
    counts = [one.count for one in events if one.of_gang]
    assert counts == list(range(1, 8))
    assert len({one.began_s for one in events if one.of_gang}) == 1


def test_what_stays_as_it_is_is_said_again_before_it_is_forgotten(told):
    """The API server forgets an Event an hour after it was written: ``why`` had nothing to say."""
    joins(told)
    waiting(told)
    (first,) = [one for one in of(SayEvent, told.run(2)) if one.of_gang]
    told.now_s += policy.STILL_SO_S - 4
    assert told.run(2) == []
    (again,) = of(SayEvent, told.run(3))
    assert (again.count, again.explanation) == (2, first.explanation)
    told.now_s += policy.STILL_SO_S - 4
    told.world.node("large", cpu=99)
    told.world.cycle()
    told.touch()
    told.run(2)
    assert [one for one in told.run(policy.STILL_SO_S) if isinstance(one, SayEvent)] == []


def test_the_event_of_a_gang_carries_its_explanation_and_comes_before_its_conditions(told):
    joins(told)
    waiting(told)
    first, *others = told.run(2)
    assert first.explanation == told.world.why(key("g"))
    assert not any(isinstance(one, SayEvent) and one.of_gang for one in others)


def test_a_reason_that_comes_back_is_in_event_and_conditions_at_once(told):
    """The Event waited for 30 s, and so ``why`` would have said something else meanwhile."""
    joins(told)
    waiting(told)
    told.run(2)
    for gone in (True, False):
        if gone:
            told.world.delete("g-3")
        else:
            told.world.pod("g-3", key("g"), cpu=9)
        told.touch()
        said = told.run(2)
        (event,) = [one for one in of(SayEvent, said) if one.of_gang]
        assert {one.reason for one in of(SayCondition, said)} == {event.reason}
    assert event.count == 2


def test_members_that_come_are_counted_in_the_event_though_its_words_are_the_same(told):
    told.world.gang("g", 1, 4, cpu=9)
    joins(told)
    told.run(2)
    told.world.pod("more", key("g"), cpu=9)
    told.touch()
    found = [one.explanation for one in of(SayEvent, told.run(policy.AGAIN_S + 2)) if one.of_gang]
    assert [one.members.total for one in found] == [5]


def test_an_event_that_was_lost_is_said_again_later(told):
    joins(told)
    waiting(told)
    (event,) = [one for one in of(SayEvent, told.run(2)) if one.of_gang]
    told.telling.event_lost(key("g"), told.now_s)
    assert told.run(policy.AFTER_LOSS_S - 1) == []
    (again,) = of(SayEvent, told.run(2))
    assert (again.explanation, again.count) == (event.explanation, 2)


# When


def test_counts_that_change_are_said_again_after_30_s_and_the_last_is_said(told):
    joins(told)
    waiting(told)
    assert len(of(SayCondition, told.run(2))) == 4
    sent = []
    for _ in range(20):
        joins(told)
        sent += of(SayCondition, told.run(1))
    assert sent == []
    last = of(SayCondition, told.run(policy.AGAIN_S))
    assert len(last) == 4
    assert {one.message.split()[0] for one in last} == {"0/21"}
    assert told.run(3 * policy.AGAIN_S) == []


def test_another_reason_is_said_at_once(told):
    joins(told)
    told.world.gang("g", 2, cpu=9)
    told.world.delete("g-1")
    told.touch()
    assert {one.reason for one in of(SayCondition, told.run(2))} == {Reason.NOT_ENOUGH_MEMBERS}
    told.world.pod("g-1", key("g"), cpu=9)
    told.touch()
    said = of(SayCondition, told.run(2))
    assert [(one.pod.name, one.reason) for one in said] == [
        ("g-0", Reason.REQUEST_TOO_LARGE),
        ("g-1", Reason.REQUEST_TOO_LARGE),
    ]


def test_a_reason_that_flaps_is_said_a_few_times_only(told):
    joins(told)
    told.world.gang("g", 2, cpu=9)
    for _ in range(60):
        told.world.delete("g-1")
        told.touch()
        told.run(1)
        told.world.pod("g-1", key("g"), cpu=9)
        told.touch()
        told.run(1)
    rewrites = [one for _, one in told.said if isinstance(one, SayCondition)]
    of_first = [one for one in rewrites if one.pod.name == "g-0"]
    assert len(of_first) <= (policy.CHANGES_AT_ONCE_MAX + 2) * (120 / policy.AGAIN_S + 1)
    assert told.run(2 * policy.AGAIN_S) is not None
    newest = [one for _, one in told.said if getattr(one, "pod", None) and one.pod.name == "g-0"]
    assert newest[-1].reason is Reason.REQUEST_TOO_LARGE


def test_what_was_lost_is_said_again_later_and_not_at_once(told):
    joins(told)
    waiting(told, pods=1)
    (condition,) = of(SayCondition, told.run(2))
    for _ in range(3):
        told.telling.lost(condition.key, condition.pod.uid, told.now_s)
        assert of(SayCondition, told.run(policy.AFTER_LOSS_S - 0.5)) == []
        assert of(SayCondition, told.run(1)) == [condition]


def test_a_pod_that_has_its_node_is_told_nothing_more(told):
    joins(told)
    waiting(told, pods=1)
    told.world.decide()
    telling = told.telling
    told.now_s += 1
    gang = told.world.cluster.gangs[key("g")]
    explainer = told.world.scheduler.explainer(told.now_s)
    telling.tell(gang, explainer, explainer.explain(key("g")), Now(1.0, WALL_S))
    assert len(telling) >= 2
    (entry,) = gang.members.values()
    telling.has_node(entry.pod)
    left = list(telling.take(1.0))
    assert of(SayCondition, left) == []


# How much


def test_requests_depend_on_time_and_not_on_pods_times_nodes(told):
    """300 pods wait and 200 nodes join, one each half second: 60,000 pairs."""
    joins(told)
    for number in range(300):
        told.world.pod(f"p{number}", cpu=9)
    told.touch()
    for _ in range(200):
        joins(told)
        told.run(0.5)
    told.run(2 * policy.AGAIN_S)
    seconds = told.now_s
    assert len(told.said) <= 2 * 300 * (seconds / policy.AGAIN_S + 1)
    last = {one.pod.uid: one.message for _, one in told.said if isinstance(one, SayCondition)}
    assert len(last) == 300
    assert {message.split()[0] for message in last.values()} == {"0/201"}


def test_all_gangs_together_say_so_much_a_second(told):
    joins(told)
    for number in range(policy.SAYINGS_AT_ONCE_MAX):
        told.world.pod(f"p{number}", cpu=9)
    told.touch()
    at = 0
    for second in range(1, 40):
        at += len(told.run(1))
        assert at <= policy.SAYINGS_AT_ONCE_MAX + second * policy.SAYINGS_PER_S
    assert at == 2 * policy.SAYINGS_AT_ONCE_MAX
    assert len({one.pod.uid for _, one in told.said if isinstance(one, SayCondition)}) == 2000


# What is renewed


def full(told, gangs=1, pods=2):
    told.world.node("n0", cpu=9)
    told.world.running("old", "n0", cpu=9)
    for number in range(gangs):
        told.world.gang(f"g{number}", pods, cpu=2)
    told.touch()
    told.run(2)


def test_who_holds_the_room_is_told_anew_when_another_does_though_nobody_is_woken(told):
    """The condition named a pod that was gone for as long as the gang waited."""
    full(told)
    told.world.delete("old")
    told.world.running("new", "n0", cpu=8.5)
    told.world.decide()  # nobody is touched here: there was never room
    said = told.run(policy.AGAIN_S + 5)
    assert {one.message.partition("held by ")[2] for one in of(SayCondition, said)} == {
        "pod team/new (8500m)"
    }


def test_words_that_are_still_true_are_not_said_again_and_nothing_is_looked_at(told, monkeypatch):
    full(told)
    looks = []
    monkeypatch.setattr(telling.Telling, "tell", lambda *_: looks.append(1))
    assert told.run(120) == []
    assert looks == []


@pytest.mark.parametrize("pods", [2, policy.PODS_RENEWED_PER_S - 1, policy.PODS_RENEWED_PER_S * 3])
def test_words_are_renewed_one_gang_after_the_other_at_a_pace(told, pods):
    full(told, gangs=4, pods=pods)
    told.world.delete("old")
    told.world.running("new", "n0", cpu=8.5)
    told.world.decide()
    at_s = []
    quiet, gangs = told.telling.quiet_gangs, told.world.cluster.gangs
    version, began_s = told.world.cluster.nodes.version, told.now_s
    while len(at_s) < 4 and told.now_s < began_s + 100:
        told.now_s += 0.1
        quiet.renew(gangs, version, told.now_s)
        for one in quiet.due(gangs, told.now_s, 500):
            quiet.note_explained(one, told.now_s)
            at_s.append(told.now_s)
    pace_s = max(policy.PATIENCE_S, pods / policy.PODS_RENEWED_PER_S)
    assert [b - a for a, b in pairwise(at_s)] == pytest.approx([pace_s] * 3, abs=0.15)
    told.now_s += 100
    quiet.renew(gangs, version, told.now_s)
    assert quiet.due(gangs, told.now_s, 500) == []


@pytest.mark.parametrize("gangs", [1, 30])
def test_a_cordon_is_told_to_all_that_wait_within_tens_of_seconds(told, gangs):
    """Nothing else happens and no gang is tried: "1 fit" was said long after it."""
    told.world.node("n0", cpu=9, labels={"zone": "a"})
    for number in range(gangs):
        told.world.gang(f"g{number}", 2, cpu=6)
    told.touch()
    assert "and 1 fit" in of(SayCondition, told.run(5))[0].message
    told.world.node("n0", cpu=9, labels={"zone": "a"}, cordoned=True)
    told.world.decide()
    said = of(SayCondition, told.run(policy.AGAIN_S + 5))
    assert {one.key.name for one in said} == {f"g{number}" for number in range(gangs)}
    assert all("1 node(s) were unschedulable" in one.message for one in said)
    assert all("and 0 fit" in one.message for one in said)
