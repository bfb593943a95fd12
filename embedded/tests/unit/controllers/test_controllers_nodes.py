"""Taints and evictions, disruption budgets, PodGroups, Events."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World, workload

BUDGETS = "poddisruptionbudgets.policy"
PREFIX = "node.kubernetes.io/"


@pytest.fixture
def world():
    return World()


def _taints(world, node):
    found = world.find("nodes", node, "")["spec"].get("taints", [])
    return {(t["key"].removeprefix(PREFIX), t["effect"]) for t in found}


def _set(world, node, **spec):
    def change(found):
        found["spec"].update(spec)

    world.patch("nodes", node, change, "")
    world.settle()


@pytest.mark.parametrize(("ready", "key"), [("False", "not-ready"), ("Unknown", "unreachable")])
def test_a_node_that_is_not_ready_is_tainted_until_it_is(world, ready, key):
    world.set_ready("node-0", ready)
    world.settle()
    assert _taints(world, "node-0") == {(key, "NoSchedule"), (key, "NoExecute")}
    world.set_ready("node-0", "True")
    world.settle()
    assert _taints(world, "node-0") == set()


def test_a_cordoned_node_is_tainted_until_it_is_uncordoned(world):
    _set(world, "node-0", unschedulable=True)
    assert _taints(world, "node-0") == {("unschedulable", "NoSchedule")}
    _set(world, "node-0", unschedulable=False)
    assert _taints(world, "node-0") == set()


def test_taints_of_others_stay(world):
    _set(world, "node-0", taints=[{"key": "mine", "effect": "NoSchedule"}], unschedulable=True)
    assert _taints(world, "node-0") == {("mine", "NoSchedule"), ("unschedulable", "NoSchedule")}
    _set(world, "node-0", unschedulable=False)
    assert _taints(world, "node-0") == {("mine", "NoSchedule")}


def test_a_node_without_any_condition_is_left_alone(world):
    world.create("v1", "nodes", {"metadata": {"name": "bare"}})
    world.settle()
    assert _taints(world, "bare") == set()


def _pod(world, name, node="node-0", **spec):
    containers = [{"name": "c", "image": "x"}]
    body = {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}
    body["spec"]["nodeName"] = node
    world.create("v1", "pods", body)


def test_pods_leave_a_tainted_node_when_they_tolerate_it_no_longer(world):
    _pod(world, "at-once")
    _pod(world, "soon", tolerations=[_toleration(tolerationSeconds=20)])
    _pod(world, "never", tolerations=[_toleration()])
    _pod(world, "elsewhere", node="node-1")
    world.settle()
    _set(world, "node-0", taints=[{"key": "boom", "effect": "NoExecute"}])
    assert world.names("pods") == ["elsewhere", "never", "soon"]
    world.settle(18)
    assert "soon" in world.names("pods")
    world.settle(5)
    assert world.names("pods") == ["elsewhere", "never"]
    assert world.reasons("soon") == ["TaintManagerEviction"]


def _toleration(**more):
    return {"key": "boom", "operator": "Exists", "effect": "NoExecute", **more}


def test_a_pod_stays_if_the_taint_goes_in_time(world):
    _pod(world, "soon", tolerations=[_toleration(tolerationSeconds=20)])
    world.settle()
    _set(world, "node-0", taints=[{"key": "boom", "effect": "NoExecute"}])
    world.settle(10)
    _set(world, "node-0", taints=[])
    world.settle(60)
    assert world.names("pods") == ["soon"]


def test_pods_stay_on_a_node_that_fails_for_five_minutes(world):
    _pod(world, "p")
    world.settle()
    world.set_ready("node-0", "Unknown")
    world.settle(290)
    assert world.names("pods") == ["p"]
    world.settle(20)
    assert world.names("pods") == []


# Budgets


def _budget(world, **spec):
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    world.create("policy/v1", "poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": spec})
    world.settle()


def _counts(world):
    status = world.status(BUDGETS, "b")
    fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(status[field] for field in fields)


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"minAvailable": 3}, (4, 3, 4, 1)),
        ({"minAvailable": "50%"}, (4, 2, 4, 2)),
        ({"maxUnavailable": 1}, (4, 3, 4, 1)),
        ({"maxUnavailable": "30%"}, (4, 2, 4, 2)),
        ({"minAvailable": 9}, (4, 9, 4, 0)),
    ],
)
def test_a_budget_counts_its_pods(world, spec, counts):
    world.create("apps/v1", "deployments", workload("web", replicas=4))
    world.settle()
    _budget(world, **spec)
    assert _counts(world) == counts
    condition = world.status(BUDGETS, "b")["conditions"][0]
    assert condition["reason"] == ("SufficientPods" if counts[3] else "InsufficientPods")


def test_a_budget_follows_its_pods(world):
    _budget(world, minAvailable=1)
    assert _counts(world) == (0, 1, 0, 0)
    world.create("apps/v1", "deployments", workload("web", replicas=2))
    world.settle()
    assert _counts(world) == (2, 1, 2, 1)
    world.kubelets = False
    world.delete("pods", world.names("pods")[0])
    world.settle()
    assert _counts(world)[2] == 1


def test_an_eviction_is_counted_until_the_pod_goes(world):
    world.create("apps/v1", "replicasets", workload("web", replicas=2))
    world.settle()
    _budget(world, minAvailable=1)
    world.kubelets = False
    name = world.names("pods")[0]

    def evicting(found):
        found["status"]["disruptedPods"] = {name: world.time()}

    world.api.amend(BUDGETS, "default", "b", evicting, subresource="status")
    world.settle()
    assert _counts(world) == (2, 1, 1, 0)
    world.settle(130)
    assert _counts(world) == (2, 1, 2, 1)
    assert "disruptedPods" not in world.status(BUDGETS, "b")


# PodGroups


def test_a_pod_group_stays_until_no_pod_of_it_runs(world):
    group = {
        "metadata": {"name": "g", "finalizers": ["scheduling.k8s.io/podgroup-protection"]},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }
    world.create("scheduling.k8s.io/v1alpha2", "podgroups", group)
    _pod(world, "p", schedulingGroup={"podGroupName": "g"})
    world.settle()
    world.delete("podgroups.scheduling.k8s.io", "g")
    world.settle()
    assert world.names("podgroups.scheduling.k8s.io") == ["g"]
    world.set_phase("p", "Succeeded")
    world.settle()
    assert world.names("podgroups.scheduling.k8s.io") == []


# Events


def test_the_events_of_one_object_are_limited(world):
    world.create("apps/v1", "replicasets", workload("rs", replicas=100))
    world.settle()
    found = [e for e in world.api.find_all("events") if e["involvedObject"]["name"] == "rs"]
    assert len(found) == 25
    assert {e["count"] for e in found} == {1}
    event = found[0]
    assert event["source"] == {"component": "replicaset-controller"}
    assert event["involvedObject"]["kind"] == "ReplicaSet"
    assert event["eventTime"] is None
