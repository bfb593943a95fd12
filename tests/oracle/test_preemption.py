"""Who has to go, and where, when a pod of higher priority finds no room."""

from tests.oracle.objects import DEFAULT, node, pod, selecting
from tools.objects import named
from tools.oracle import Oracle


def started(made: dict, minute: int) -> dict:
    return {**made, "status": {"startTime": f"2026-01-01T00:{minute:02}:00Z"}}


def test_the_node_whose_victims_matter_least_is_nominated(oracle: Oracle):
    nodes = [node("a", cpu="1"), node("b", cpu="1"), node("c", cpu="1")]
    running = [
        pod("high", on="a", cpu="1", priority=9),
        pod("low", on="b", cpu="1", priority=1),
        pod("peer", on="c", cpu="1", priority=10),
    ]
    answer = oracle.ask({"nodes": nodes, "pods": running, "pod": pod("p", cpu="1", priority=10)})
    preemption = answer["preemption"]
    assert (preemption["node"], preemption["victims"]) == ("b", ["default/low"])
    assert preemption["verdict"] == {"code": "Success"}
    assert preemption["candidates"] == {
        "a": {"victims": ["default/high"]},
        "b": {"victims": ["default/low"]},
    }
    assert answer["message"] == "0/3 nodes are available: 3 Insufficient cpu."


def test_no_more_pods_go_than_needed(oracle: Oracle):
    running = [started(pod(f"r{i}", on="a", cpu="1", priority=1), i) for i in range(4)]
    case = {"nodes": [node("a", cpu="4")], "pods": running, "pod": pod("p", cpu="2", priority=2)}
    # Those that run longest are the most important of equal priority.
    assert oracle.ask(case)["preemption"]["victims"] == ["default/r2", "default/r3"]


def test_a_disruption_budget_is_broken_last(oracle: Oracle):
    budget = named(
        "PodDisruptionBudget",
        "policy/v1",
        "web",
        metadata=DEFAULT,
        spec={"selector": selecting("web")},
        status={"disruptionsAllowed": 0},
    )
    running = [
        pod("guarded", on="a", cpu="1", app="web", priority=1),
        pod("plain", on="b", cpu="1", priority=5),
    ]
    nodes = [node("a", cpu="1"), node("b", cpu="1")]
    case = {"nodes": nodes, "pods": running, "pod": pod("p", cpu="1", priority=9)}
    assert oracle.ask(case)["preemption"]["node"] == "a"
    preemption = oracle.ask({**case, "objects": [budget]})["preemption"]
    assert preemption["node"] == "b"
    assert preemption["candidates"]["a"] == {"victims": ["default/guarded"], "pdbViolations": 1}


def test_never_means_never(oracle: Oracle):
    running = [pod("low", on="a", cpu="1", priority=1)]
    new = pod("p", cpu="1", priority=9, preemptionPolicy="Never")
    answer = oracle.ask({"nodes": [node("a", cpu="1")], "pods": running, "pod": new})
    assert "node" not in answer["preemption"]
    assert answer["message"] == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )


def test_nobody_goes_where_it_would_not_help(oracle: Oracle):
    nodes = [node("a", cpu="1", unschedulable=True), node("b", cpu="1")]
    running = [pod("low", on="a", cpu="1", priority=1), pod("peer", on="b", cpu="1", priority=9)]
    answer = oracle.ask({"nodes": nodes, "pods": running, "pod": pod("p", cpu="1", priority=9)})
    assert answer["message"].endswith(
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
