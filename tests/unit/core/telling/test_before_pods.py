"""What is said of gangs without pods, whose clients make none before there is room.

Method: real worlds and explanations; the clock is a number. Sayings are counted.
"""

import pytest

from quorate.core.model import Queue, policy
from quorate.core.model.changes import ObjectChanged
from quorate.core.model.reasons import Reason
from quorate.core.telling.sayings import SayCondition, SayEvent, SayStatus
from tests.unit.core.telling.told import Told, of
from tests.unit.core.world import GPU, VOLCANO, X_K8S


@pytest.fixture
def told():
    return Told()


def empty_gang(told, *, gpus=1, dialect=VOLCANO, name="g"):
    w = told.world
    if not w.nodes:
        w.node("n0", cpu=8)
    spec = {"min_resources": ((GPU, gpus),), "uid": f"uid-of-{name}", "created_s": 900.0}
    gang = w.gang(name, 2, 0, gang_spec=spec, dialect=dialect)
    told.touch()
    return gang


def words(said):
    return [(one.reason, one.message, one.count) for one in of(SayEvent, said)]


SHORT = "minResources ask for 1 nvidia.com/gpu (0 free)"
NO_PODS = "0 of 2 members exist"


def test_a_gang_without_pods_that_waits_for_room_has_its_event_and_counts(told):
    """Nobody said why it stays Pending: no Event, no condition, no metric."""
    gang = empty_gang(told)
    said = told.run(2)
    (event,) = of(SayEvent, said)
    assert (event.reason, event.message) == (Reason.MIN_RESOURCES_SHORT, SHORT)
    assert event.of_gang
    assert event.explanation.message == SHORT
    pod = event.pod
    assert (pod.namespace, pod.name, pod.scheduler, pod.uid) == ("team", "g", "volcano", "")
    assert of(SayCondition, said) == []
    counted = told.telling.counted
    assert counted.reasons[Reason.MIN_RESOURCES_SHORT] == 1
    assert counted.oldest_s(Reason.MIN_RESOURCES_SHORT) == 900.0
    assert told.telling.is_before_pods(gang)
    told.telling.settle(gang)
    assert counted.reasons[Reason.MIN_RESOURCES_SHORT] == 0


def test_a_gang_without_pods_whose_queue_is_not_there_has_its_event_and_counts_until_it_is(told):
    w = told.world
    w.node("n0", cpu=8)
    w.observe(ObjectChanged(Queue("default")))
    w.gang("g", 2, 0, gang_spec={"queue": "research", "uid": "u"}, dialect=VOLCANO)
    told.touch()
    missing = (Reason.QUEUE_MISSING, "queue research (spec.queue) does not exist", 1)
    assert words(told.run(2)) == [missing]
    assert told.telling.counted.reasons[Reason.QUEUE_MISSING] == 1
    w.observe(ObjectChanged(Queue("research", closed=True)))
    told.touch()
    closed = (Reason.QUEUE_CLOSED, "queue research (spec.queue) is closed", 1)
    assert words(told.run(2)) == [closed]
    w.observe(ObjectChanged(Queue("research")))
    told.touch()
    assert words(told.run(2)) == [(Reason.NOT_ENOUGH_MEMBERS, NO_PODS, 1)]
    assert not any(told.telling.counted.reasons.values())


def test_the_object_of_another_gang_without_pods_has_its_status_told_once_it_is_quiet(told):
    gang = empty_gang(told, dialect=X_K8S)
    (status,) = of(SayStatus, told.run(2))
    assert (status.key, status.view.scheduler_known) == (gang, False)
    told.world.running("foreign", "n0", gang=gang)
    told.touch()
    assert of(SayStatus, told.run(2)) == []


def test_other_gangs_without_pods_have_no_event_and_count_nowhere(told):
    gang = empty_gang(told, dialect=X_K8S)
    fits = empty_gang(told, gpus=0, name="fits")
    assert of(SayEvent, told.run(2)) == []
    assert not any(map(told.telling.is_before_pods, (gang, fits)))
    assert not any(told.telling.counted.reasons.values())


def test_a_touch_is_no_reason_to_say_again_that_room_is_short_and_time_is(told):
    empty_gang(told)
    told.run(2)
    for _ in range(20):
        told.touch()
        assert of(SayEvent, told.run(2)) == []
    assert words(told.run(policy.STILL_SO_S)) == [(Reason.MIN_RESOURCES_SHORT, SHORT, 2)]


def test_the_numbers_follow_the_nodes_though_nobody_touches_the_gang(told):
    empty_gang(told, gpus=2)
    told.run(2)
    told.world.node("gpu", cpu=8, gpu=1)
    told.world.decide()
    last = "minResources ask for 2 nvidia.com/gpu (1 free)"
    assert words(told.run(policy.AGAIN_S + 2)) == [(Reason.MIN_RESOURCES_SHORT, last, 2)]


def test_a_gang_that_is_admitted_before_its_pods_exist_is_told_so_once(told):
    gang = empty_gang(told)
    told.run(2)
    told.world.node("gpu", cpu=8, gpu=1)
    told.touch()
    assert words(told.run(2)) == [(Reason.NOT_ENOUGH_MEMBERS, NO_PODS, 1)]
    assert told.telling.is_before_pods(gang), "else what is queued would be dropped"
    assert not any(told.telling.counted.reasons.values()), "nobody waits"
    told.touch()
    assert of(SayEvent, told.run(2 * policy.STILL_SO_S)) == []
    told.world.lose_node("gpu")
    told.touch()
    assert words(told.run(2)) == [(Reason.MIN_RESOURCES_SHORT, SHORT, 2)]


def test_that_a_gang_is_admitted_is_said_again_if_that_was_lost(told):
    gang = empty_gang(told)
    told.run(2)
    told.world.node("gpu", cpu=8, gpu=1)
    told.touch()
    told.run(2)
    told.telling.event_lost(gang, told.now_s)
    assert words(told.run(policy.AGAIN_S + 2)) == [(Reason.NOT_ENOUGH_MEMBERS, NO_PODS, 2)]


def test_when_pods_came_at_once_and_are_gone_again_the_old_words_are_not_the_last(told):
    """The Event of before the pods would be the newest, and say that room is short."""
    w, gang = told.world, empty_gang(told)
    told.run(2)
    w.node("gpu", cpu=8, gpu=1)
    for name in ("a", "b"):
        w.pod(name, gang)
    w.cycle()
    told.touch()
    assert of(SayEvent, told.run(2)) == []
    assert not told.telling.is_before_pods(gang)
    w.delete("a", "b")
    told.touch()
    assert words(told.run(2)) == [(Reason.NOT_ENOUGH_MEMBERS, NO_PODS, 1)]


def test_an_object_that_is_made_anew_at_once_has_an_event_of_its_own(told):
    """The series would go on at the old object, which nobody can look at any more."""
    gang = empty_gang(told)
    told.run(2)
    told.world.drop_object(gang)
    spec = {"min_resources": ((GPU, 1),), "uid": "uid-of-another-g"}
    told.world.gang("g", 2, 0, gang_spec=spec, dialect=VOLCANO)
    told.touch()
    assert words(told.run(2)) == [(Reason.MIN_RESOURCES_SHORT, SHORT, 1)]


def test_a_thousand_gangs_without_pods_cost_no_more_than_as_many_pods(told):
    """A tenant may make as many as it likes; what is said is bounded as for all others."""

    def cost(make):
        one = Told()
        one.world.node("n0", cpu=8)
        for number in range(1000):
            make(one, number)
        one.touch()
        for number in range(20):
            one.run(3)
            one.world.node(f"small-{number}", cpu=1)
            one.touch()
        one.run(60)
        return len([one for _, one in one.said if not isinstance(one, SayStatus)])

    pods = cost(lambda one, number: one.world.pod(f"p{number}", cpu=99))
    spec = {"min_resources": ((GPU, 1),)}
    gangs = cost(
        lambda one, number: one.world.gang(f"g{number}", 1, 0, gang_spec=spec, dialect=VOLCANO)
    )
    assert 1000 <= gangs <= pods
