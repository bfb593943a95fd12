"""Filters and their messages, on clusters whose answer can be read off the rules."""

from tests.oracle.objects import ZONE, node, pod, required_affinity, spread
from tools.objects import named
from tools.oracle import Oracle

UNRESOLVABLE = "UnschedulableAndUnresolvable"


def failed(answer: dict, plugin: str) -> dict[str, tuple[str, list[str]]]:
    """Give code and reasons of the nodes that a plugin refuses."""
    return {
        name: (verdicts[plugin]["code"], verdicts[plugin].get("reasons", []))
        for name, verdicts in answer["filter"].items()
        if plugin in verdicts
    }


def test_a_taint_that_is_not_tolerated_refuses(oracle: Oracle):
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    soft = {"key": "old", "effect": "PreferNoSchedule"}
    case = {"nodes": [node("a", taints=[taint]), node("b", taints=[soft])], "pod": pod("p")}
    answer = oracle.ask(case)
    reason = "node(s) had untolerated taint(s)"
    assert failed(answer, "TaintToleration") == {"a": (UNRESOLVABLE, [reason])}
    assert answer["feasible"] == ["b"]
    case["pod"]["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    assert oracle.ask(case)["feasible"] == ["a", "b"]


def test_node_affinity_is_an_or_of_terms(oracle: Oracle):
    def term(values: list[str]) -> dict:
        return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": values}]}

    required = {"nodeSelectorTerms": [term(["x"]), term(["y"])]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    nodes = [node(name, zone=name) for name in "xyz"] + [node("none")]
    answer = oracle.ask({"nodes": nodes, "pod": pod("p", affinity=affinity)})
    assert answer["feasible"] == ["x", "y"]
    reason = "node(s) didn't match Pod's node affinity/selector"
    assert failed(answer, "NodeAffinity")["none"] == (UNRESOLVABLE, [reason])


def test_requests_above_what_is_free_and_above_what_a_node_has(oracle: Oracle):
    nodes = [node("full", cpu="2"), node("small", cpu="1"), node("free", cpu="2")]
    case = {"nodes": nodes, "pods": [pod("old", on="full", cpu="1")], "pod": pod("p", cpu="1500m")}
    answer = oracle.ask(case)
    reason = ["Insufficient cpu"]
    assert failed(answer, "NodeResourcesFit") == {
        "full": ("Unschedulable", reason),
        "small": (UNRESOLVABLE, reason),
    }
    assert answer["feasible"] == ["free"]


def test_each_plugin_is_asked_though_the_first_refuses(oracle: Oracle):
    taint = {"key": "k", "effect": "NoSchedule"}
    ports = [{"containerPort": 80, "hostPort": 80}]
    web = pod("p", cpu="9")
    web["spec"]["containers"][0]["ports"] = ports
    old = pod("old", on="a")
    old["spec"]["containers"][0]["ports"] = ports
    case = {"nodes": [node("a", unschedulable=True, taints=[taint])], "pods": [old], "pod": web}
    answer = oracle.ask(case)
    assert set(answer["filter"]["a"]) == {
        "NodeUnschedulable", "TaintToleration", "NodePorts", "NodeResourcesFit",
    }  # fmt: skip
    assert answer["first"]["a"]["plugin"] == "NodeUnschedulable"


def test_hard_spread_counts_zones(oracle: Oracle):
    nodes = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("nowhere")]
    running = [pod("r1", on="a1", app="web")]
    new = pod("p", app="web", topologySpreadConstraints=[spread("web", hard=True)])
    answer = oracle.ask({"nodes": nodes, "pods": running, "pod": new})
    skewed = "node(s) didn't match pod topology spread constraints"
    assert failed(answer, "PodTopologySpread") == {
        "a1": ("Unschedulable", [skewed]),
        "a2": ("Unschedulable", [skewed]),
        "nowhere": (UNRESOLVABLE, [f"{skewed} (missing required label)"]),
    }


def test_anti_affinity_holds_both_ways(oracle: Oracle):
    nodes = [node("a"), node("b"), node("c")]
    hostile = pod("hostile", on="a", affinity=required_affinity("podAntiAffinity", "web"))
    running = [hostile, pod("db", on="b", app="db")]
    new = pod("p", app="web", affinity=required_affinity("podAntiAffinity", "db"))
    answer = oracle.ask({"nodes": nodes, "pods": running, "pod": new})
    assert failed(answer, "InterPodAffinity") == {
        "a": ("Unschedulable", ["node(s) didn't satisfy existing pods anti-affinity rules"]),
        "b": ("Unschedulable", ["node(s) didn't match pod anti-affinity rules"]),
    }


def test_a_namespace_selector_reads_namespaces(oracle: Oracle):
    def space(name: str, team: str) -> dict:
        made = named("Namespace", "v1", name)
        made["metadata"]["labels"] = {"team": team}
        return made

    other = pod("other", on="a", app="db")
    other["metadata"]["namespace"] = "shop"
    affinity = required_affinity("podAffinity", "db")
    term = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["namespaceSelector"] = {"matchLabels": {"team": "red"}}
    case = {"nodes": [node("a"), node("b")], "pods": [other], "pod": pod("p", affinity=affinity)}
    red = oracle.ask({**case, "objects": [space("shop", "red"), space("default", "blue")]})
    blue = oracle.ask({**case, "objects": [space("shop", "blue"), space("default", "red")]})
    assert (red["feasible"], blue["feasible"]) == (["a"], [])


def test_the_message_is_that_of_the_condition(oracle: Oracle):
    taint = {"key": "k", "effect": "NoSchedule"}
    nodes = [node("a", cpu="1"), node("b", cpu="1"), node("c", taints=[taint])]
    answer = oracle.ask({"nodes": nodes, "pod": pod("p", cpu="2")})
    assert answer["reason"] == "Unschedulable"
    assert answer["message"] == (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
        "no new claims to deallocate, "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_without_nodes_it_says_so(oracle: Oracle):
    answer = oracle.ask({"pod": pod("p")})
    assert answer["message"] == "no nodes available to schedule pods"


def test_a_prefilter_speaks_for_all_nodes(oracle: Oracle):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]
    answer = oracle.ask({"nodes": [node("a")], "pod": pod("p", volumes=volumes)})
    assert answer["preFilter"]["VolumeBinding"] == {
        "code": UNRESOLVABLE,
        "reasons": ['persistentvolumeclaim "absent" not found'],
    }
    # DynamicResources looks for devices to free, and finds that it has prepared nothing.
    said = '0/1 nodes are available: persistentvolumeclaim "absent" not found. not found'
    assert answer["message"] == said


def test_room_is_kept_for_nominated_pods_of_the_same_priority(oracle: Oracle):
    case = {
        "nodes": [node("a", cpu="1")],
        "nominated": [{"pod": pod("first", cpu="1", priority=5), "node": "a"}],
    }
    same = oracle.ask({**case, "pod": pod("p", cpu="1", priority=5)})
    higher = oracle.ask({**case, "pod": pod("p", cpu="1", priority=6)})
    assert (same["feasible"], higher["feasible"]) == ([], ["a"])
    assert same["filter"]["a"] == {}
