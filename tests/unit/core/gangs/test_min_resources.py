"""minResources: room in sum before a gang's first pod starts, and no gate after that."""

import pytest

from quorate.core.model import Owner, Toleration, policy
from quorate.core.model.changes import BindFailure
from quorate.core.model.reasons import Reason
from tests.unit.core.world import GPU, VOLCANO, X_K8S, World, fail, gangs_tried


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
        lambda w: w.node("n1", cpu=2),
        lambda w: w.node("closed", cpu=2),
        lambda w: w.delete("filler"),
        lambda w: w.node("n0", cpu=8),
        lambda w: w.object("job", 1, min_resources=(("cpu", 4000),)),
        lambda w: w.object("job", 1),
    ],
    ids=[
        "another node",
        "a node untainted",
        "a pod gone",
        "a larger node",
        "less asked",
        "nothing asked",
    ],
)
def test_the_gate_opens_when_the_sum_is_there(change):
    w = world(6)
    w.running("filler", "n0", cpu=2)
    w.node("closed", cpu=2, taints=["gpu:NoSchedule"])
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
    w.node("more", cpu=3)
    w.decide()
    w.node("more", cpu=4)
    assert not w.tries(w.decide(), gang)


# Where the members may run


TOLERANT = {"tolerations": (Toleration(key="t", operator="Exists"),)}
FOREIGN = {"node_selector": (("pool", "a"),)}


def two_nodes():
    """4 cpu that any member may use, and 4 of a pool of their own, with a taint."""
    w = World()
    w.node("open", cpu=4, labels={"pool": "a"})
    w.node("closed", cpu=4, labels={"pool": "b"}, taints=["t:NoSchedule"])
    return w


@pytest.mark.parametrize(
    ("spec", "starts"), [({}, False), (TOLERANT, True), (TOLERANT | FOREIGN, False)]
)
def test_the_room_that_the_members_may_use_is_added_up(spec, starts):
    """min is 1, so all that keeps half of a gang from starting is what minResources count."""
    w = two_nodes()
    gang = w.gang("job", 1, pods=2, cpu=4, gang_spec=asks(cpu=8), spec=spec)
    assert (len(w.cycle()) == 2) is starts
    if not starts:
        assert w.why(gang).reason is Reason.MIN_RESOURCES_SHORT
        assert w.why(gang).message == (
            "minResources ask for 8 cpu (4 free where its members may run)"
        )


def test_of_members_that_differ_each_counts_where_it_may_run():
    w = two_nodes()
    gang = w.object("job", 1, **asks(cpu=8))
    w.pod("driver", gang, cpu=4)
    assert w.cycle() == {}
    w.pod("worker", gang, cpu=4, spec=TOLERANT)
    assert len(w.cycle()) == 2


def test_members_that_are_yet_to_come_may_have_another_selector_but_tolerate_no_more():
    """Spark's executors follow their driver, and run on nodes of their own."""
    w = two_nodes()
    w.node("executors", cpu=4, labels={"pool": "b"})
    gang = w.gang("spark", 1, cpu=1, gang_spec=asks(cpu=9), spec=FOREIGN)
    assert w.cycle() == {}
    assert "9 cpu (8 free" in w.why(gang).message
    w.node("executors", cpu=5, labels={"pool": "b"})
    assert w.cycle() == {"spark-0": "open"}


@pytest.mark.parametrize("places", [1, 2, 3, policy.SUM_PLACES_MAX])
def test_each_gang_is_woken_by_the_room_that_its_own_members_may_use(monkeypatch, places):
    """With more kinds of gangs than sums they are woken too often, and never too seldom."""
    monkeypatch.setattr(policy, "SUM_PLACES_MAX", places)
    w = World()
    names = ["a", "b", "c", "d"]
    for name in names:
        w.node(name, cpu=1, labels={"pool": name})
        spec = {"node_selector": (("pool", name),)}
        w.gang(name, 1, pods=2, cpu=1, gang_spec=asks(cpu=2), spec=spec)
    assert w.cycle() == {}
    tried = gangs_tried(w, monkeypatch)
    for name in names:
        w.running(f"filler-{name}", name, cpu=1)
        w.node(name, cpu=2, labels={"pool": name})
        assert w.cycle() == {}
        if places > len(names):
            assert tried == []
    for name in reversed(names):
        w.delete(f"filler-{name}")
        assert set(w.cycle()) == {f"{name}-0", f"{name}-1"}
    assert places <= len(names) or len(tried) == len(names)


def test_a_gang_is_woken_when_its_room_grows_while_that_of_others_shrinks():
    """The sum over all nodes stays the same."""
    w = World()
    w.node("mine", cpu=4, labels={"pool": "a"})
    w.node("other", cpu=4)
    w.running("filler", "mine", cpu=2)
    w.gang("job", 1, pods=2, cpu=2, gang_spec=asks(cpu=4), spec=FOREIGN)
    assert w.cycle() == {}
    w.running("new", "other", cpu=2)
    w.delete("filler")
    assert len(w.cycle()) == 2


# Gangs without pods, whose clients wait to be admitted


def gang_without_pods(w, minimum=2, dialect=VOLCANO, **wanted):
    return w.gang("job", minimum, 0, gang_spec=asks(**(wanted or {GPU: 1})), dialect=dialect)


def test_where_clients_make_no_pod_before_there_is_room_the_missing_room_is_the_reason():
    """Was "0 of 2 members exist; create the other 2", which nobody does before there is room."""
    w = world(4)
    gang = gang_without_pods(w)
    w.decide()
    found = w.why(gang)
    assert (found.reason, found.message) == (
        Reason.MIN_RESOURCES_SHORT,
        "minResources ask for 1 nvidia.com/gpu (0 free)",
    )
    assert found.hint == "free or add that room, or lower spec.minResources"
    assert found.order == (), "it is not in line: nothing of it could be placed"
    assert not w.scheduler.explainer(w.now_s).view(gang, found).admitted


def test_what_an_operator_writes_is_to_be_changed_in_its_job():
    """It said "lower spec.minResources", which the operator writes again at each look."""
    w = world(4)
    job = Owner("kubeflow.org/v1", "PyTorchJob", "train")
    gang = w.gang("train", 1, gang_spec={**asks(cpu=5), "owner": job})
    assert w.why(gang).hint == "free or add that room, or have PyTorchJob train ask for less"


def test_a_cluster_without_nodes_is_short_of_everything():
    w = World()
    assert w.why(gang_without_pods(w, cpu=1)).message == "minResources ask for 1 cpu (0 free)"


def test_where_clients_wait_for_nobody_or_there_is_room_members_are_missing():
    w = world(4)
    for gang in (
        gang_without_pods(w, dialect=X_K8S),
        gang_without_pods(w, cpu=4),
        w.gang("no-min", 0, 0, gang_spec=asks(cpu=9), dialect=VOLCANO),
    ):
        assert w.why(gang).reason is Reason.NOT_ENOUGH_MEMBERS


def test_of_a_gang_that_was_admitted_or_has_ended_room_is_asked_no_more():
    """Its clients make pods now, or have cleaned them up."""
    w = world(4)
    more = {**asks(**{GPU: 1}), "admitted": True}
    gang = w.gang("job", 2, 0, gang_spec=more, dialect=VOLCANO)
    assert w.why(gang).reason is Reason.NOT_ENOUGH_MEMBERS
