"""Affinity, anti-affinity and spread rule out the nodes that kube-scheduler 1.36 rules out."""

import pytest

from quorate.core.model import LabelSelector, PodTerm
from quorate.core.room.room import Room
from quorate.core.rules.pods import inter_pod_affinity, pod_topology_spread
from tests.unit.core.terms import apart, labels, near, pods, spread
from tests.unit.core.world import World

WEB, DB = {"app": "web"}, {"app": "db"}
SKEWED = "node(s) didn't match pod topology spread constraints"


def world(*running, namespaces=None):
    """Two nodes in zone a, one in zone b, one without labels; pods as (node, fields)."""
    w = World()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        w.node(name, labels={"zone": zone, "host": name})
    w.node("bare")
    for name, said in (namespaces or {}).items():
        w.namespace(name, said)
    for number, (node, fields) in enumerate(running):
        w.running(f"r{number}", node, **fields)
    return w


def refused(w, rule, **pod):
    """Return the rule's message by node, for a pod of these fields."""
    entry = w.cluster.pods[w.pod("new", **pod).uid]
    pod_class = w.cluster.classes.variant(
        entry.pod_class, w.cluster.neighbours.matched(entry.label_set)
    )
    verdict = rule.judge(pod_class, Room(w.cluster.snapshot(), w.scheduler.planner._rule_cache))
    if verdict is None:
        return None
    rows = w.cluster.nodes.rows
    return {
        name: verdict.refusals[verdict.codes[row] - 1].message
        for name, row in rows.items()
        if verdict.codes[row]
    }


def nodes_left(w, rule, **pod):
    found = refused(w, rule, **pod)
    return None if found is None else sorted(w.cluster.nodes.rows.keys() - found.keys())


ALL = ["a1", "a2", "b1", "bare"]
AFFINITY = {
    "beside a pod, by zone": ([("a1", {"labels": WEB})], near(pods(**WEB)), DB, ["a1", "a2"]),
    "beside a pod, by host": (
        [("a1", {"labels": WEB})],
        near(pods(**WEB), by="host"),
        DB,
        ["a1"],
    ),
    "nobody is there, and it is not its own kind": ([], near(pods(**WEB)), DB, []),
    "the first of its kind goes wherever the key is": (
        [],
        near(pods(**WEB)),
        WEB,
        ["a1", "a2", "b1"],
    ),
    "the first of its kind, and one is there already": (
        [("b1", {"labels": WEB})],
        near(pods(**WEB)),
        WEB,
        ["b1"],
    ),
    "one on a node without the key does not count, so it is the first": (
        [("bare", {"labels": WEB})],
        near(pods(**WEB)),
        WEB,
        ["a1", "a2", "b1"],
    ),
    "one pod must match all terms": (
        [("a1", {"labels": WEB}), ("a2", {"labels": DB})],
        near(pods(**WEB), pods(**DB)),
        {},
        [],
    ),
    "a terminating pod attracts": (
        [("a1", {"labels": WEB, "terminating": True})],
        near(pods(**WEB)),
        DB,
        ["a1", "a2"],
    ),
    "a selector that is absent matches nobody": (
        [("a1", {"labels": WEB})],
        near(pods(nobody=True)),
        WEB,
        [],
    ),
    "an empty selector matches all": ([("a1", {})], near(pods()), {}, ["a1", "a2"]),
    "another namespace": (
        [("a1", {"labels": WEB, "namespace": "dev"})],
        near(pods(**WEB)),
        DB,
        [],
    ),
    "another namespace, named": (
        [("a1", {"labels": WEB, "namespace": "dev"})],
        near(pods(namespaces=("dev",), **WEB)),
        DB,
        ["a1", "a2"],
    ),
    "all namespaces": (
        [("a1", {"labels": WEB, "namespace": "dev"})],
        near(pods(namespaces=(), of=LabelSelector(), **WEB)),
        DB,
        ["a1", "a2"],
    ),
    "namespaces by their labels": (
        [("a1", {"labels": WEB, "namespace": "dev"}), ("b1", {"labels": WEB, "namespace": "x"})],
        near(pods(namespaces=(), of=labels(env="dev"), **WEB)),
        DB,
        ["a1", "a2"],
    ),
    # kube-scheduler 1.36.3 means every namespace here; the documented meaning is ours.
    "namespaces by labels that they lack": (
        [("a1", {"labels": WEB, "namespace": "dev"}), ("b1", {"labels": WEB, "namespace": "x"})],
        near(pods(namespaces=(), of=labels(env=None), **WEB)),
        DB,
        ["b1"],
    ),
    "apart by host": ([("a1", {"labels": WEB})], apart(pods(**WEB)), DB, ["a2", "b1", "bare"]),
    "apart by zone": (
        [("a1", {"labels": WEB})],
        apart(pods(**WEB), by="zone"),
        DB,
        ["b1", "bare"],
    ),
    "apart from one on a node without the key": (
        [("bare", {"labels": WEB})],
        apart(pods(**WEB)),
        DB,
        ALL,
    ),
    "a terminating pod repels": (
        [("a1", {"labels": WEB, "terminating": True})],
        apart(pods(**WEB)),
        DB,
        ["a2", "b1", "bare"],
    ),
    "a running pod keeps others away": (
        [("a1", {"spec": apart(pods(**WEB), by="zone")})],
        {},
        WEB,
        ["b1", "bare"],
    ),
    "a running pod keeps nobody of another kind away": (
        [("a1", {"spec": apart(pods(**WEB), by="zone")})],
        {},
        DB,
        None,
    ),
    "together and apart": (
        [("a1", {"labels": WEB})],
        near(pods(**WEB)) | apart(pods(**WEB)),
        DB,
        ["a2"],
    ),
}


@pytest.mark.parametrize(
    ("running", "spec", "said", "left"), AFFINITY.values(), ids=AFFINITY.keys()
)
def test_inter_pod_affinity(running, spec, said, left):
    w = world(*running, namespaces={"dev": {"env": "dev"}, "x": {}})
    assert nodes_left(w, inter_pod_affinity, spec=spec, labels=said) == left


def test_a_node_that_fails_several_counts_for_the_one_that_kube_scheduler_names():
    both = apart(pods(**WEB), by="zone")
    w = world(("a1", {"labels": WEB, "spec": both}))
    found = refused(w, inter_pod_affinity, spec=near(pods(**DB)) | both, labels=WEB)
    assert set(found.values()) == {"node(s) didn't match pod affinity rules"}
    w = world(("a1", {"labels": WEB, "spec": both}))
    found = refused(w, inter_pod_affinity, spec=both, labels=WEB)
    assert set(found.values()) == {"node(s) didn't match pod anti-affinity rules"}


def webs(*nodes, **fields):
    return [(node, {"labels": WEB} | fields) for node in nodes]


SPREAD = {
    "level": ([], spread(pods(**WEB)), ["a1", "a2", "b1"]),
    "one more in a": (webs("a1"), spread(pods(**WEB)), ["b1"]),
    "within the skew": (webs("a1"), spread(pods(**WEB), skew=2), ["a1", "a2", "b1"]),
    "by host": (webs("a1"), spread(pods(**WEB), by="host"), ["a2", "b1"]),
    "too few domains": (webs("a1", "b1"), spread(pods(**WEB), min_domains=3), []),
    "enough domains": (webs("a1", "b1"), spread(pods(**WEB), min_domains=2), ["a1", "a2", "b1"]),
    "a terminating pod does not count": (
        webs("a1", terminating=True),
        spread(pods(**WEB)),
        ["a1", "a2", "b1"],
    ),
    "a pod of another namespace does not count": (
        webs("a1", namespace="dev"),
        spread(pods(**WEB)),
        ["a1", "a2", "b1"],
    ),
    "an empty selector counts nobody": (webs("a1", "a2"), spread(pods()), ["a1", "a2", "b1"]),
    "it does not select itself": (webs("a1"), spread(pods(**DB)), ["a1", "a2", "b1"]),
    "others that it counts, not itself": (
        [("a1", {"labels": DB}), ("a1", {"labels": DB})],
        spread(pods(**DB)),
        ["b1"],
    ),
    "a pod on a node without the key does not count": (
        webs("bare", "bare"),
        spread(pods(**WEB)),
        ["a1", "a2", "b1"],
    ),
    "only nodes that its selector allows count": (
        webs("a1"),
        spread(pods(**WEB)) | {"node_selector": (("zone", "a"),)},
        ["a1", "a2", "b1"],
    ),
    "all nodes count": (
        webs("a1"),
        spread(pods(**WEB), honor_affinity=False) | {"node_selector": (("zone", "a"),)},
        ["b1"],
    ),
    "a soft one rules nothing out": (webs("a1"), spread(pods(**WEB), hard=False), None),
}


@pytest.mark.parametrize(("running", "spec", "left"), SPREAD.values(), ids=SPREAD.keys())
def test_pod_topology_spread(running, spec, left):
    assert nodes_left(world(*running), pod_topology_spread, spec=spec, labels=WEB) == left


def test_a_tainted_node_counts_unless_taints_are_honoured():
    for honor, left in ((False, ["b1"]), (True, ["a1", "a2", "b1"])):
        w = world(*webs("a1", "a2"))
        w.node("b1", labels={"zone": "b", "host": "b1"}, taints=["gpu:NoSchedule"])
        spec = spread(pods(**WEB), honor_taints=honor)
        assert nodes_left(w, pod_topology_spread, spec=spec, labels=WEB) == left


def test_a_node_counts_only_if_it_has_the_keys_of_all_constraints():
    both = spread(pods(**WEB))["spread"] + spread(pods(**WEB), by="rack", skew=5)["spread"]
    w = world(*webs("a1"))
    w.node("a1", labels={"zone": "a", "host": "a1", "rack": "r1"})
    found = refused(w, pod_topology_spread, spec={"spread": both}, labels=WEB)
    assert found == dict.fromkeys(["a2", "b1", "bare"], SKEWED + " (missing required label)")


def test_a_term_without_a_domain_is_no_reason_to_stay_away():
    w = world()
    spec = {"anti_affinity": (PodTerm(pods(**WEB), "nowhere"),)}
    assert nodes_left(w, inter_pod_affinity, spec=spec, labels=WEB) == ALL
