"""What is said of gangs whose schedulerName is not ours: nothing, unless nobody else says anything.

Method: real worlds and explanations; the clock is a number. Sayings are counted.
"""

import pytest

from quorate.core.model.reasons import Reason
from quorate.core.telling.sayings import SayCondition, SayEvent, SayStatus
from tests.unit.core.telling.told import WALL_S, Told, of
from tests.unit.core.world import VOLCANO

SILENT = (
    "3 pods have schedulerName nobodys; quorate does not own that name, and no scheduler that does "
    "has said anything"
)


@pytest.fixture
def told():
    one = Told()
    one.world.node("n0", cpu=8)
    return one


def gang_of_nobody(told, pods=3, **more):
    spec = {"uid": "uid-of-g"}
    known = {"scheduler": "nobodys", "unanswered": True, "created_s": WALL_S}
    gang = told.world.gang("g", 3, pods, gang_spec=spec, **known | more)
    told.touch()
    return gang


def test_a_gang_whose_scheduler_is_silent_is_told(told):
    """Neither the group nor its pods had an Event, and no metric counted it."""
    gang = gang_of_nobody(told)
    assert told.run(29) == []
    said = told.run(3)
    events = of(SayEvent, said)
    assert {(one.reason, one.message) for one in events} == {(Reason.OTHER_SCHEDULER, SILENT)}
    assert [one.of_gang for one in events].count(True) == 1
    assert sorted(one.pod.name for one in events if not one.of_gang) == ["g-0", "g-1", "g-2"]
    assert len(said) == len(events), "neither the conditions nor the status are ours to write"
    assert told.telling.counted.reasons[Reason.OTHER_SCHEDULER] == 1
    assert gang not in told.telling


@pytest.mark.parametrize("answer", [{"unanswered": False}, {"node": "n0"}])
def test_a_gang_whose_own_scheduler_says_or_does_something_hears_nothing(told, answer):
    gang_of_nobody(told)
    told.run(20)
    told.world.edit("g-1", **answer)
    told.touch()
    assert told.run(60) == []


def test_it_is_not_counted_any_more_when_its_own_scheduler_is_there(told):
    gang_of_nobody(told)
    told.run(40)
    for name in ("g-0", "g-1", "g-2"):
        told.world.edit(name, unanswered=False)
    told.touch()
    assert told.run(60) == []
    assert told.telling.counted.reasons[Reason.OTHER_SCHEDULER] == 0


def test_nobody_is_asked_to_answer_for_a_gang_that_cannot_be_whole_yet(told):
    """The default scheduler says nothing of a gang of its own that lacks pods."""
    gang_of_nobody(told, pods=2)
    assert told.run(60) == []


def test_the_time_counts_from_the_last_member(told):
    gang_of_nobody(told, pods=2)
    told.run(20)
    late = {"scheduler": "nobodys", "unanswered": True, "created_s": WALL_S + told.now_s}
    told.world.pod("g-2", told.world.cluster.pods["uid-g-0"].gang.key, **late)
    told.touch()
    assert told.run(28) == []
    assert of(SayEvent, told.run(4))


def test_a_group_that_no_scheduler_admits_hears_so_before_it_has_pods(told):
    """Its operator makes no pod, so nothing at all happened, and nothing was said."""
    spec = {"uid": "uid-of-g", "created_s": WALL_S, "unanswered_by": "volcano"}
    told.world.gang("g", 2, 0, gang_spec=spec, dialect=VOLCANO)
    told.touch()
    assert told.run(29) == []
    (event,) = told.run(3)
    assert (event.of_gang, event.reason, event.pod.uid) == (True, Reason.OTHER_SCHEDULER, "")
    assert "a scheduler named volcano admits it" in event.message
    assert told.telling.counted.reasons[Reason.OTHER_SCHEDULER] == 1


def test_pods_of_another_scheduler_that_go_leave_nothing_to_say_but_a_first_status(told):
    gang_of_nobody(told)
    told.run(40)
    told.world.delete("g-0", "g-1", "g-2")
    told.touch()
    (status,) = of((SayCondition, SayEvent, SayStatus), told.run(60))
    assert not status.view.scheduler_known
