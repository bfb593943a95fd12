"""Gangs whose members constrain one another: placed jointly, woken by what helps, verified."""

import pytest

from quorate.core.check.verify import verify_gang
from quorate.core.model.reasons import Reason
from tests.unit.core.terms import apart, near, pods, spread
from tests.unit.core.world import World, key

JOB = {"job": "j"}
WEB, DB = {"app": "web"}, {"app": "db"}


def world(zones="aab", **node):
    w = World()
    for number, zone in enumerate(zones):
        w.node(f"n{number}", labels={"zone": zone, "host": f"n{number}"}, **node)
    return w


def zones_of(w, binds):
    return sorted(dict(w.nodes[node].labels)["zone"] for node in binds.values())


def test_members_that_keep_apart_get_a_node_each():
    w = world()
    gang = w.gang("job", 3, labels=WEB, spec=apart(pods(**WEB)))
    assert len(set(w.cycle().values())) == 3
    w.pod("more", gang, labels=WEB, spec=apart(pods(**WEB)))
    assert w.cycle() == {}


def test_more_members_that_keep_apart_than_nodes_is_no_fit_and_says_so():
    w = world()
    gang = w.gang("job", 4, labels=WEB, spec=apart(pods(**WEB)))
    assert w.cycle() == {}
    said = w.why(gang)
    assert said.reason is Reason.NOT_ENOUGH_ROOM
    assert "3 fit" in said.message
    assert "3 node(s) didn't match pod anti-affinity rules" in said.message


def test_a_gang_that_belongs_together_goes_where_all_of_it_fits():
    w = world("aabb", cpu=4)
    w.running("busy", "n0", cpu=3)
    w.gang("job", 7, labels=JOB, spec=near(pods(**JOB)))
    binds = w.cycle()
    assert zones_of(w, binds) == ["b"] * 7


def test_spread_members_are_level_over_zones():
    w = world("aaaab")
    w.gang("job", 7, labels=WEB, spec=spread(pods(**WEB)))
    assert zones_of(w, w.cycle()) == list("aaaabbb")


def test_what_cannot_be_level_does_not_start():
    w = world("aaaab", cpu=2)
    gang = w.gang("job", 6, labels=WEB, spec=spread(pods(**WEB)))
    assert w.cycle() == {}
    assert "didn't match pod topology spread constraints" in w.why(gang).message


def test_two_gangs_in_one_cycle_that_seek_one_another():
    w = world("ab")
    w.gang("first", 1, labels=DB, spec=near(pods(**WEB)), created_s=1.0)
    w.gang("second", 1, labels=WEB, created_s=2.0)
    w.cycle()
    w.cycle()
    assert w.where("first-0")
    zones = [dict(w.nodes[w.where(name)].labels)["zone"] for name in ("first-0", "second-0")]
    assert len(set(zones)) == 1


# Wake-ups


def waits_for_company():
    w = world("aab", cpu=2)
    w.gang("job", 2, cpu=2, labels=DB, spec=near(pods(**WEB)))
    assert w.cycle() == {}
    return w


def test_a_gang_that_seeks_a_pod_is_woken_by_it_on_another_node_of_the_zone():
    w = waits_for_company()
    w.running("stranger", "n0", cpu=0, labels=DB)
    assert not w.tries(w.decide(), key("job"))
    w.running("company", "n0", cpu=0, labels=WEB)
    assert zones_of(w, w.cycle()) == ["a", "a"]


def test_a_gang_that_waits_to_be_level_is_woken_by_a_pod_in_the_other_zone():
    w = world("ab", cpu=8)
    w.running("old", "n0", labels=WEB)
    w.running("full", "n1", cpu=8)
    gang = w.gang("job", 1, labels=WEB, spec=spread(pods(**WEB)))
    assert w.cycle() == {}
    w.running("other", "n0", cpu=0, labels=DB)
    assert not w.tries(w.decide(), gang)
    w.running("theirs", "n1", cpu=0, labels=WEB)
    assert w.cycle() == {"job-0": "n0"}


@pytest.mark.parametrize(
    "leave",
    [
        lambda w: w.delete("loner"),
        lambda w: w.edit("loner", labels=()),
        lambda w: w.edit("loner", phase="Succeeded"),
        lambda w: w.node("n0", labels={"zone": "c", "host": "n0"}),
    ],
    ids=["deleted", "relabelled", "finished", "its node is in another zone now"],
)
def test_a_gang_that_is_repelled_is_woken_when_it_is_not_any_more(leave):
    w = world("aa")
    w.running("loner", "n0", labels=WEB)
    gang = w.gang("job", 1, labels=DB, spec=apart(pods(**WEB), by="zone"))
    assert w.cycle() == {}
    w.running("nobody", "n1", labels={"app": "mq"})
    assert not w.tries(w.decide(), gang)
    leave(w)
    assert set(w.cycle()) == {"job-0"}


def test_a_namespaces_labels_wake_who_waits_for_its_pods():
    w = world("ab")
    w.running("company", "n0", labels=WEB, namespace="dev")
    of_env = pods(namespaces=(), of=pods(env="x").labels, **WEB)
    gang = w.gang("job", 1, labels=DB, spec=near(of_env))
    assert w.cycle() == {}
    w.namespace("other", {"env": "x"})
    assert not w.tries(w.decide(), gang)
    w.namespace("dev", {"env": "x"})
    assert w.cycle() == {"job-0": "n0"}


# Verification


@pytest.mark.parametrize(
    ("spec", "change", "problem"),
    [
        (
            apart(pods(**DB)),
            lambda w, node: w.running("late", node, labels=DB),
            "would be beside a pod that it keeps away from",
        ),
        (
            {},
            lambda w, node: w.running("late", node, spec=apart(pods(**WEB))),
            "would be beside a pod that keeps it away",
        ),
        (
            near(pods(**DB)),
            lambda w, _: w.delete("company"),
            "would not be beside the pods that it belongs to",
        ),
        (
            spread(pods(**WEB)),
            lambda w, node: [w.running(f"late{n}", node, labels=WEB) for n in range(2)],
            "would not be spread over zone",
        ),
    ],
)
def test_a_plan_that_others_made_wrong_is_found_out(spec, change, problem):
    w = world("aab")
    w.running("company", "n0", labels=DB, cpu=0)
    w.gang("job", 1, labels=WEB, spec=spec)
    (gang,) = w.decide().gangs
    change(w, gang.binds[0].node)
    [said] = verify_gang(gang, w.cluster)
    assert problem in said
