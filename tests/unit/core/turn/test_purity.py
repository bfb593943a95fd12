"""Planning changes nothing: it may be asked twice, or of what is not there."""

import pytest

from quorate.core.model import GangSpec, Membership, Node, Pod, PodSpec
from quorate.core.model.changes import GangChanged, NodeChanged, PodChanged
from quorate.core.model.policy import Policy
from quorate.core.turn.forking import fork
from tests.unit.core.world import amounts, binds_of, key, world


def hypothetical(pods, cpu=1000):
    which = key("dream")
    return [
        GangChanged(GangSpec(which, pods)),
        *(
            PodChanged(
                Pod(
                    f"uid-dream-{index}",
                    "team",
                    f"dream-{index}",
                    "quorate",
                    PodSpec(requests=(("cpu", cpu),)),
                    membership=Membership(which),
                )
            )
            for index in range(pods)
        ),
    ]


def test_a_plan_that_is_not_applied_is_made_again_the_same():
    w = world(nodes=2, cpu=4)
    w.gang("job", 3)
    first, second = w.scheduler.plan(w.now_s), w.scheduler.plan(w.now_s)
    assert first.plan == second.plan
    assert len(binds_of(first.plan)) == 3
    assert w.cluster.waiting == 3


@pytest.mark.parametrize(("pods", "starts"), [(8, True), (9, False)])
def test_what_if_a_gang_came(pods, starts):
    w = world(nodes=2, cpu=4)
    plan = w.scheduler.whatif(hypothetical(pods), w.now_s)
    assert (len(binds_of(plan)) == pods) is starts
    assert key("dream") not in w.cluster.gangs
    assert w.decide().gangs == ()


def test_what_if_a_node_came():
    w = world(nodes=2, cpu=4)
    w.gang("job", 9)
    assert w.cycle() == {}
    node = Node("dream", amounts(cpu=1, pods=10))
    assert len(binds_of(w.scheduler.whatif([NodeChanged(node)], w.now_s))) == 9
    assert "dream" not in w.cluster.nodes.rows
    assert w.cycle(after_s=100.0) == {}


def test_what_if_nodes_were_filled_one_after_the_other():
    w = world(nodes=2, cpu=4)
    w.pod("a", cpu=1)
    w.cycle()
    w.gang("job", 2)
    spread = w.scheduler.whatif([], w.now_s, Policy(packing="least-allocated"))
    assert {bind.node for bind in binds_of(spread)} == {"n0", "n1"}
    assert set(w.cycle().values()) == {"n0"}


def test_a_copy_decides_as_the_original_would_and_leaves_it_alone():
    w = world(nodes=2, cpu=4)
    w.gang("job", 3)
    w.gang("large", 50)
    other = fork(w.scheduler)
    plan = other.decide(w.now_s)
    assert w.cluster.waiting == 53
    assert w.scheduler.decide(w.now_s) == plan
