"""minResources: room in sum before a gang's first pod starts, and no gate after that."""

import pytest

from quorate.core.model.changes import BindFailure
from quorate.core.model.reasons import Reason
from tests.unit.core.world import GPU, VOLCANO, X_K8S, World, fail


def world(*cpus):
    w = World()
    for index, cpu in enumerate(cpus):
        w.node(f"n{index}", cpu=cpu)
    return w


def asks(cpu=None, **more):
    wanted = {"cpu": None if cpu is None else cpu * 1000, **more}
    return {"min_resources": tuple(sorted((k, v) for k, v in wanted.items() if v is not None))}


@pytest.mark.parametrize("dialect", [X_K8S, VOLCANO])
@pytest.mark.parametrize(
    ("wanted", "starts"),
    [
        (asks(cpu=7), True),
        (asks(cpu=7.001), False),
        (asks(cpu=1, **{GPU: 1}), False),
        (asks(pods=220), True),
        (asks(pods=221), False),
        (asks(), True),
    ],
)
def test_the_room_of_all_nodes_is_added_up(dialect, wanted, starts):
    w = world(3, 4)
    gang = w.gang("job", 1, gang_spec=wanted, dialect=dialect)
    assert (len(w.cycle()) == 1) is starts
    assert (w.why(gang).reason is not Reason.MIN_RESOURCES_SHORT) is starts


def test_cordoned_and_overcommitted_nodes_add_nothing():
    w = world(3, 4)
    w.running("glutton", "n0", cpu=9)
    w.node("n2", cpu=50, cordoned=True)
    w.gang("job", 1, gang_spec=asks(cpu=5))
    assert w.cycle() == {}
    w.node("n2", cpu=1)
    assert len(w.cycle()) == 1


def test_the_gate_is_closed_for_a_gang_that_fits_by_itself():
    """Spark's driver: min is 1, the executors are in minResources."""
    w = world(4)
    gang = w.gang("driver", 1, gang_spec=asks(cpu=5))
    assert w.cycle() == {}
    assert w.why(gang).message == "minResources ask for 5 cpu (4 free)"


def test_a_gang_that_started_passes_without_a_gate():
    w = world(4)
    gang = w.gang("job", 1, pods=1, gang_spec=asks(cpu=4))
    w.cycle()
    w.running("other", "n0", cpu=2)
    w.pod("executor", gang)
    assert w.cycle() == {"executor": "n0"}


def test_the_gangs_own_pods_do_not_count_as_used():
    w = world(4)
    gang = w.gang("job", 3, gang_spec=asks(cpu=4))
    w.cycle(job_2=fail(BindFailure.REFUSED))
    assert w.why(gang).members.bound == 2
    assert w.cycle() == {"job-2": "n0"}


def test_gangs_of_one_cycle_do_not_use_the_same_room_twice():
    w = world(4)
    w.gang("a", 1, cpu=3, gang_spec=asks(cpu=4))
    w.gang("b", 1, cpu=1, gang_spec=asks(cpu=4))
    assert set(w.cycle()) == {"a-0"}


def test_a_gang_at_the_gate_holds_up_no_other():
    w = world(4)
    w.gang("a", 1, gang_spec=asks(cpu=9), priority=100)
    w.gang("b", 4)
    assert len(w.cycle()) == 4


def test_gangs_without_pods_hear_of_room_too():
    w = world(4)
    gang = w.object("job", 2, dialect=VOLCANO, min_resources=(("cpu", 6000),))
    w.decide()
    w.node("n1", cpu=2)
    assert gang in w.decide().touched


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.node("n1", cpu=2, taints=["gpu:NoSchedule"]),
        lambda w: w.delete("filler"),
        lambda w: w.node("n0", cpu=8),
        lambda w: w.object("job", 1, min_resources=(("cpu", 4000),)),
        lambda w: w.object("job", 1),
    ],
    ids=["a tainted node", "a pod gone", "a larger node", "less asked", "nothing asked"],
)
def test_the_gate_opens_when_the_sum_is_there(change):
    w = world(6)
    w.running("filler", "n0", cpu=2)
    w.gang("job", 1, cpu=3, gang_spec=asks(cpu=6))
    assert w.cycle() == {}
    change(w)
    assert w.cycle() == {"job-0": "n0"}


def test_room_that_is_still_too_little_wakes_nobody():
    w = world(2)
    gang = w.gang("job", 1, cpu=2, gang_spec=asks(cpu=9))
    w.cycle()
    w.gang("other", 1, pods=0)
    w.decide()
    w.node("tainted", taints=["t:NoSchedule"], cpu=3)
    w.decide()
    w.node("tainted", taints=["t:NoSchedule"], cpu=4)
    assert not w.tries(w.decide(), gang)
