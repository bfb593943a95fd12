"""The process and its protocol: sequences, errors, and cases that know nothing of one another."""

import copy
import os
import signal

import pytest

from tests.oracle.objects import ZONE, node, pod, required_affinity, spread
from tools.objects import named
from tools.oracle import Oracle, OracleError


def test_pods_of_a_sequence_see_those_before_them(oracle: Oracle):
    apart = required_affinity("podAntiAffinity", "web")
    steps = oracle.ask(
        {
            "nodes": [node("a"), node("b")],
            "sequence": [{"pod": pod(f"p{i}", app="web", affinity=apart)} for i in range(3)],
        }
    )["steps"]
    assert [step.get("assumed") for step in steps] == ["a", "b", None]
    assert steps[2]["message"].startswith("0/2 nodes are available: 2 node(s) didn't match")


def test_a_sequence_can_say_where_a_pod_goes(oracle: Oracle):
    case = {
        "nodes": [node("a"), node("b")],
        "sequence": [{"pod": pod("p", cpu="4"), "node": "b"}, {"pod": pod("q", cpu="4")}],
    }
    first, second = oracle.ask(case)["steps"]
    assert (first["assumed"], second["assumed"]) == ("b", "a")


def test_an_answer_does_not_depend_on_the_cases_before(oracle: Oracle):
    alone = {"nodes": [node("a", zone="a"), node("b", zone="b")], "pod": pod("p", app="web")}
    crowded = copy.deepcopy(alone)
    crowded["pods"] = [pod("r", on="a", app="web", affinity=required_affinity("podAffinity", "x"))]
    crowded["pod"]["spec"]["topologySpreadConstraints"] = [spread("web", hard=True)]
    crowded["nominated"] = [{"pod": pod("n", cpu="4"), "node": "b"}]
    answers = list(oracle.ask_all([alone, crowded] * 3))
    assert answers[::2] == [answers[0]] * 3
    assert answers[1::2] == [answers[1]] * 3
    assert answers[0] != answers[1]


def test_an_error_is_an_answer_and_names_the_case(oracle: Oracle):
    with pytest.raises(OracleError, match=r"no kind \"Job\"(.|\n)*The case: .*nightly"):
        oracle.ask({"pod": pod("p"), "objects": [named("Job", "batch/v1", "nightly")]})
    with pytest.raises(OracleError, match="neither pod nor sequence"):
        oracle.ask({"nodes": [node("a")]})
    plugins = {"score": {"enabled": [{"name": "NoSuchPlugin"}]}}
    with pytest.raises(OracleError, match=r"profile: .*NoSuchPlugin"):
        oracle.ask({"pod": pod("p"), "profile": {"plugins": plugins}})
    assert oracle.ask({"nodes": [node("a")], "pod": pod("p")})["feasible"] == ["a"]


def test_a_panic_is_an_answer_and_the_process_goes_on(oracle: Oracle):
    before = oracle.pid
    with pytest.raises(OracleError, match="panic: runtime error"):
        oracle.ask({"nodes": [None], "pod": pod("p")})
    assert oracle.ask({"nodes": [node("a")], "pod": pod("p")})["feasible"] == ["a"]
    assert oracle.pid == before


def test_a_pod_is_admitted_as_the_api_server_does(oracle: Oracle):
    constraint = spread("web", hard=True, matchLabelKeys=["tier"])
    affinity = required_affinity("podAffinity", "web", ZONE)
    terms = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms[0]["mismatchLabelKeys"] = ["tier"]
    new = pod("p", topologySpreadConstraints=[constraint], affinity=affinity)
    new["metadata"]["labels"] = {"tier": "front"}
    bad = pod("q", topologySpreadConstraints=[spread("web", hard=True, key="", maxSkew=0)])
    stored, refused = oracle.ask({"admit": [new, bad]})["admitted"]
    spec = stored["pod"]["spec"]
    merged = {"key": "tier", "operator": "In", "values": ["front"]}
    assert spec["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [merged]
    term = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert term["labelSelector"]["matchExpressions"] == [{**merged, "operator": "NotIn"}]
    assert "invalid" not in stored
    assert any("maxSkew" in problem for problem in refused["invalid"])


def test_it_comes_back_after_it_died(oracle: Oracle):  # which sees to it that it is built
    case = {"nodes": [node("a")], "pod": pod("doomed")}
    with Oracle() as own:
        own.ask(case)
        os.kill(own.pid, signal.SIGKILL)
        with pytest.raises(OracleError, match=r"ended with code -9(.|\n)*doomed"):
            own.ask(case)
        assert own.ask(case)["feasible"] == ["a"]


def test_it_does_not_wait_for_ever(oracle: Oracle):
    with Oracle(timeout_s=0.2) as own:
        os.kill(own.pid, signal.SIGSTOP)
        with pytest.raises(OracleError, match=r"No answer within 0.2 s(.|\n)*slow"):
            own.ask({"pod": pod("slow")})


def test_feature_gates_are_those_of_kube_scheduler(oracle: Oracle):
    taint = {"key": "level", "value": "5", "effect": "NoSchedule"}
    above = {"key": "level", "operator": "Gt", "value": "4", "effect": "NoSchedule"}
    case = {"nodes": [node("a", taints=[taint])], "pod": pod("p", tolerations=[above])}
    gates = {"TaintTolerationComparisonOperators": True}
    with Oracle(features=gates) as gated:
        assert oracle.ask(case)["feasible"] == []
        assert gated.ask(case)["feasible"] == ["a"]
