"""Goal: a gang starts only from an open queue, and the class that its object names orders the line.

Method: the core is told of queues, priority classes and gangs, in either order.
"""

import pytest

from quorate.core.model import Owner, PriorityClass, Queue
from quorate.core.model.changes import KindServed, ObjectChanged, ObjectGone
from quorate.core.model.reasons import Reason
from quorate.dialects import by_name
from tests.invariants import check_all
from tests.unit.core.world import VOLCANO, World, key, world

JOB = key("job", VOLCANO)
DEFAULT, RESEARCH = Queue("default"), Queue("research")
CLOSED = Queue("research", closed=True)
GONE = ObjectGone("Queue", "", "research")


def told(w: World, *objects: Queue | PriorityClass) -> None:
    w.observe(*(ObjectChanged(one) for one in objects))


def of_queue(w: World, queue: str = "research", pods: int = 2, **fields) -> None:
    w.gang("job", 2, pods, gang_spec={"queue": queue, **fields}, dialect=VOLCANO)


def is_sound(w: World) -> bool:
    return list(check_all(w.scheduler, w.now_s)) == []


@pytest.mark.parametrize(
    ("known", "reason"), [(DEFAULT, Reason.QUEUE_MISSING), (CLOSED, Reason.QUEUE_CLOSED)]
)
def test_a_gang_waits_for_its_queue_and_starts_when_it_is_there_and_open(known, reason):
    w = world(1)
    told(w, known)
    of_queue(w)
    w.gang("other", 2)
    assert sorted(w.cycle()) == ["other-0", "other-1"], "others are unaffected"
    assert w.why(JOB).reason is reason
    assert is_sound(w)
    told(w, RESEARCH)
    assert sorted(w.cycle()) == ["job-0", "job-1"]
    assert is_sound(w)


def test_who_made_the_group_is_told_to_name_another_queue():
    """Its operator would put the group back."""
    w = world(1)
    told(w, DEFAULT)
    of_queue(w, owner=Owner("kubeflow.org/v1", "TFJob", "mnist"))
    w.cycle()
    assert w.why(JOB).hint == "create Queue research, or name another queue in TFJob mnist"


def test_a_queue_that_goes_or_closes_holds_what_waits_and_stops_nothing_that_has_started():
    w = world(1)
    told(w, DEFAULT, RESEARCH)
    of_queue(w)
    assert len(w.cycle()) == 2
    w.observe(GONE)
    w.delete("job-1")
    w.pod("job-2", JOB)
    assert list(w.cycle()) == ["job-2"], "the replacement of a lost member"
    w.gang("late", 2, gang_spec={"queue": "research"}, dialect=VOLCANO)
    assert w.cycle() == {}
    assert w.why(key("late", VOLCANO)).reason is Reason.QUEUE_MISSING
    told(w, CLOSED)
    assert w.cycle() == {}
    assert w.why(key("late", VOLCANO)).reason is Reason.QUEUE_CLOSED
    assert is_sound(w)


@pytest.mark.parametrize("queue", ["", "research"])
def test_where_no_queue_is_known_none_is_asked_for(queue):
    """Volcano is not installed, or its queues cannot be listed."""
    w = world(1)
    of_queue(w, queue)
    assert len(w.cycle()) == 2


@pytest.mark.parametrize(
    "news",
    [
        ObjectGone("Queue", "", "default"),
        KindServed("Queue", "queues cannot be listed", "grant it"),
    ],
    ids=["the last one goes", "they cannot be listed"],
)
def test_when_no_queue_is_known_any_more_none_is_asked_for(news):
    w = world(1)
    told(w, DEFAULT)
    of_queue(w)
    assert w.cycle() == {}
    w.observe(news)
    assert len(w.cycle()) == 2
    assert is_sound(w)


def test_clients_that_wait_for_admission_make_no_pod_before_the_queue_is_there():
    """Its phase stays Pending and a condition says why; the phase is Inqueue when it is there."""
    w = world(1)
    told(w, DEFAULT)
    of_queue(w, pods=0)
    status = by_name(VOLCANO).object.status
    raw = b'{"metadata":{"name":"job","namespace":"team"},"status":{"phase":"Pending"}}'
    view = w.scheduler.explainer(w.now_s).view(JOB, w.why(JOB))
    assert not view.admitted
    said = status(view, raw, w.now_s).body.decode()
    assert '"phase"' not in said
    assert "queue research (spec.queue) does not exist" in said
    told(w, RESEARCH)
    view = w.scheduler.explainer(w.now_s).view(JOB, w.why(JOB))
    assert '"phase":"Inqueue"' in status(view, raw, w.now_s).body.decode()


# Priority classes


def classed(w: World, name: str, priority_class: str, **of_pods) -> None:
    spec = {"priority_class": priority_class, "mixed": True}
    w.gang(name, 2, gang_spec=spec, dialect=VOLCANO, cpu=4, **of_pods)


def first_of(w: World) -> str:
    """Return the gang that starts in room for one."""
    w.node("n0", cpu=8)
    (name,) = {pod.rpartition("-")[0] for pod in w.cycle()}
    return name


@pytest.mark.parametrize("is_early", [True, False], ids=["classes first", "gangs first"])
def test_the_class_that_the_object_names_orders_the_line_whatever_the_pods_have(is_early):
    w = World()
    classes = PriorityClass("low", 10), PriorityClass("high", 20)
    if is_early:
        told(w, *classes)
    classed(w, "a", "low", priority=1000)
    classed(w, "b", "high")
    w.cycle()
    if not is_early:
        told(w, *classes)
    assert (w.why(key("a", VOLCANO)).priority, w.why(key("b", VOLCANO)).priority) == (10, 20)
    assert is_sound(w)
    assert first_of(w) == "b"


def test_a_class_that_is_made_anew_with_another_value_changes_the_line():
    w = World()
    told(w, PriorityClass("low", 10), PriorityClass("high", 20))
    classed(w, "a", "low")
    classed(w, "b", "high")
    w.cycle()
    w.observe(ObjectGone("PriorityClass", "", "low"))
    told(w, PriorityClass("low", 30))
    assert is_sound(w)
    assert first_of(w) == "a"


def test_a_class_that_does_not_exist_is_warned_of_and_the_pods_own_priority_counts():
    w = World()
    classed(w, "a", "hihg", priority=5)
    assert w.why(key("a", VOLCANO)).warnings == (), "no class is known yet"
    told(w, PriorityClass("high", 20))
    why = w.why(key("a", VOLCANO))
    assert why.priority == 5
    assert why.warnings == (
        'spec.priorityClassName is "hihg", and there is no PriorityClass of that name: the '
        "priority of the pods counts; create it, or name another one",
    )
    w.observe(KindServed("PriorityClass", "they cannot be listed", "grant that"))
    assert w.why(key("a", VOLCANO)).warnings == ()
    assert first_of(w) == "a"


def test_tasks_of_a_volcano_job_may_differ_in_priority_and_the_highest_counts():
    """A master is often more important than its workers; the gang was held for that."""
    w = World()
    spec = {"mixed": True}
    job = w.gang("job", 2, 1, gang_spec=spec, dialect=VOLCANO, cpu=4, priority=7)
    w.pod("job-master", job, cpu=4, priority=9)
    assert w.why(job).priority == 9
    assert first_of(w) == "job"


def test_room_that_is_held_for_a_lost_member_is_as_important_as_its_gang():
    w = world(1)
    told(w, PriorityClass("high", 20))
    spec = {"priority_class": "high", "mixed": True}
    job = w.gang("job", 2, gang_spec=spec, dialect=VOLCANO, cpu=4, owner=Owner("v", "Job", "j"))
    assert len(w.cycle()) == 2
    w.delete("job-1")
    w.decide()
    (held,) = w.cluster.reservations.of(job)
    assert held.priority == 20
