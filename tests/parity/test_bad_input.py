"""Where kube-scheduler has a sentence of its own for bad input, it comes first, word for word."""

import pytest

from tests.unit.bad import device_tables, tables
from tests.unit.bad.driving import drive, node, pod

TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
CASES = {
    **tables.IMPOSSIBLE_PODS,
    **{f"claim: {name}": case for name, case in tables.CLAIMS.items()},
    **{f"devices: {name}": case for name, case in device_tables.DEVICES.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_kube_schedulers_sentence_comes_first(oracle, name):
    objects = CASES[name].objects()
    _, sentence = drive(*objects).said("bad")
    [pending] = [one for one in objects if one["kind"] == "Pod"]
    answer = oracle.ask(
        {
            "nodes": [node("node-a"), node("node-b")],
            "objects": [TEAM, *(one for one in objects if one["kind"] not in ("Pod", "Node"))],
            "pod": pending,
        }
    )
    assert sentence.startswith(answer["message"]), answer["message"]


def test_kube_scheduler_overlooks_a_constraint_of_an_unknown_kind_and_this_holds_the_pod(oracle):
    """A deliberate difference: what somebody wrote is not silently left out."""
    objects = tables.UNREADABLE_PODS["spread: whenUnsatisfiable"].objects()
    nodes = [node("node-a"), node("node-b")]
    answer = oracle.ask({"nodes": nodes, "pods": [], "objects": [TEAM], "pod": objects[0]})
    assert answer["feasible"] == ["node-a", "node-b"]
    assert "bad" not in drive(*objects).placed()


def test_kube_scheduler_loses_count_of_1e99_and_this_holds_the_pod_or_leaves_the_node_out(oracle):
    """A deliberate difference: what no machine has is asked for, or there, by mistake."""
    [greedy] = tables.UNREADABLE_PODS["request: 1e99"].objects()
    answer = oracle.ask({"nodes": [node("node-a")], "pods": [], "objects": [TEAM], "pod": greedy})
    assert answer["feasible"] == ["node-a"], "as if it asked for nothing"
    assert "bad" not in drive(greedy).placed()
    huge, pending = node("node-x", memory="1e99"), pod("bad", nodeSelector={tables.ZONE: "x"})
    answer = oracle.ask({"nodes": [huge], "pods": [], "objects": [TEAM], "pod": pending})
    assert answer["feasible"] == ["node-x"]
    assert "bad" not in drive(huge, pending).placed()
