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
