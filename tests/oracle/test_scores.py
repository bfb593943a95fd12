"""Scores, worked out by hand from the formulas."""

from tests.oracle.objects import ZONE, node, pod, spread
from tools.oracle import Oracle


def scores_of(answer: dict, plugin: str) -> dict[str, int]:
    return {name: scores[plugin] for name, scores in answer["scores"].items()}


def test_least_allocated_is_the_mean_of_what_stays_free(oracle: Oracle):
    nodes = [node("a", cpu="4"), node("b", cpu="4")]
    answer = oracle.ask(
        {"nodes": nodes, "pods": [pod("r", on="b", cpu="2")], "pod": pod("p", cpu="1")}
    )
    # Memory is 8 GiB; a pod without a request counts as 200 MiB: 97 % and 95 % stay free.
    assert scores_of(answer, "NodeResourcesFit") == {"a": (75 + 97) // 2, "b": (25 + 95) // 2}


def test_soft_taints_are_normalised_the_other_way_round(oracle: Oracle):
    def soft(count: int) -> list[dict]:
        return [{"key": f"k{i}", "effect": "PreferNoSchedule"} for i in range(count)]

    nodes = [node("none"), node("one", taints=soft(1)), node("three", taints=soft(3))]
    answer = oracle.ask({"nodes": nodes, "pod": pod("p")})
    assert scores_of(answer, "TaintToleration") == {"none": 100, "one": 67, "three": 0}
    assert answer["weights"]["TaintToleration"] == 3
    assert answer["best"] == ["none"]


def test_preferred_node_affinity_is_relative_to_the_highest(oracle: Oracle):
    def preference(zone: str, weight: int) -> dict:
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        return {"weight": weight, "preference": {"matchExpressions": [expression]}}

    preferred = [preference("x", 30), preference("y", 10)]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    nodes = [node(name, zone=name) for name in "xyz"]
    answer = oracle.ask({"nodes": nodes, "pod": pod("p", affinity=affinity)})
    assert scores_of(answer, "NodeAffinity") == {"x": 100, "y": 33, "z": 0}


def test_soft_spread_prefers_the_empty_zone(oracle: Oracle):
    nodes = [node("a", zone="a"), node("b", zone="b")]
    running = [pod("r", on="a", app="web")]
    new = pod("p", app="web", topologySpreadConstraints=[spread("web", hard=False)])
    answer = oracle.ask({"nodes": nodes, "pods": running, "pod": new})
    # Weight ln(2+2): raw scores are 1 and 0.
    assert scores_of(answer, "PodTopologySpread") == {"a": 0, "b": 100}


def test_totals_are_the_weighted_sums(oracle: Oracle):
    case = {"nodes": [node("a"), node("b")], "pods": [pod("r", on="a", cpu="1")], "pod": pod("p")}
    answer = oracle.ask(case)
    for name, scores in answer["scores"].items():
        weighted = sum(answer["weights"][plugin] * score for plugin, score in scores.items())
        assert answer["total"][name] == weighted
    assert answer["best"] == ["b"]


def test_a_profile_changes_weights_arguments_and_plugins(oracle: Oracle):
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    profile = {
        "plugins": {
            "multiPoint": {"disabled": [{"name": "NodeUnschedulable"}]},
            "score": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "NodeResourcesFit", "weight": 7}],
            },
        },
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}],
    }
    nodes = [node("a"), node("b", unschedulable=True)]
    case = {"nodes": nodes, "pod": pod("p", cpu="1"), "profile": profile}
    answer = oracle.ask(case)
    assert answer["scores"] == {"a": {"NodeResourcesFit": 25}, "b": {"NodeResourcesFit": 25}}
    assert answer["total"] == {"a": 175, "b": 175}
    assert answer["best"] == ["a", "b"]


def test_every_node_is_scored_when_that_is_asked_for(oracle: Oracle):
    case = {"nodes": [node("a"), node("b", unschedulable=True)], "pod": pod("p")}
    assert set(oracle.ask(case)["scores"]) == {"a"}
    answer = oracle.ask({**case, "scoreAll": True})
    assert set(answer["scores"]) == {"a", "b"}
    assert "best" not in answer
