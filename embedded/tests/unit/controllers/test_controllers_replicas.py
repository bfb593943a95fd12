"""ReplicaSets, and Deployments over them."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World, template, workload

SETS, DEPLOYMENTS = "replicasets.apps", "deployments.apps"


@pytest.fixture
def world():
    return World()


def _with_image(image):
    def change(obj):
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = image

    return change


def test_pods_of_a_replica_set_are_as_a_real_one_makes_them(world):
    made = world.create("apps/v1", "replicasets", workload("rs", replicas=2))
    world.settle()
    metadata = world.pods()[0]["metadata"]
    assert metadata["generateName"] == "rs-"
    assert metadata["labels"] == {"app": "rs"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "rs",
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert world.status(SETS, "rs") == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    assert world.reasons("rs") == ["SuccessfulCreate"] * 2


def test_a_pod_that_goes_or_ends_is_replaced(world):
    world.create("apps/v1", "replicasets", workload("rs", replicas=2))
    world.settle()
    first, second = (pod["metadata"]["name"] for pod in world.pods())
    world.delete("pods", first)
    world.set_phase(second, "Failed")
    world.settle()
    phases = [pod["status"]["phase"] for pod in world.pods()]
    assert sorted(phases) == ["Failed", "Running", "Running"]


def test_a_create_that_is_refused_is_told_and_tried_again(world):
    body = workload("rs", replicas=1, template=template("rs", priorityClassName="missing"))
    world.create("apps/v1", "replicasets", body)
    world.settle()
    condition = world.status(SETS, "rs")["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "FailedCreate" in world.reasons("rs")
    value = {"metadata": {"name": "missing"}, "value": 5}
    world.create("scheduling.k8s.io/v1", "priorityclasses", value)
    world.settle(60)
    assert world.status(SETS, "rs")["readyReplicas"] == 1
    assert "conditions" not in world.status(SETS, "rs")


# Deployments


def _deploy(world, **spec):
    made = world.create("apps/v1", "deployments", workload("web", **spec))
    world.settle()
    return made


def test_a_deployment_has_what_its_replica_set_was_refused(world):
    _deploy(world, replicas=1, template=template("web", priorityClassName="missing"))
    [replica_set] = world.api.find_all(SETS, "default")
    [failure] = replica_set["status"]["conditions"]
    conditions = {one["type"]: one for one in world.status(DEPLOYMENTS, "web")["conditions"]}
    assert conditions["ReplicaFailure"]["message"] == failure["message"]
    value = {"metadata": {"name": "missing"}, "value": 5}
    world.create("scheduling.k8s.io/v1", "priorityclasses", value)
    world.settle(60)
    conditions = {one["type"] for one in world.status(DEPLOYMENTS, "web")["conditions"]}
    assert conditions == {"Available", "Progressing"}


def _sets(world):
    found = world.api.find_all(SETS, "default")
    return {rs["spec"]["template"]["spec"]["containers"][0]["image"]: rs for rs in found}


def test_a_deployment_comes_to_its_status(world):
    _deploy(world, replicas=3)
    status = world.status(DEPLOYMENTS, "web")
    reasons = {c["type"]: (c["status"], c["reason"]) for c in status.pop("conditions")}
    assert status == {
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    assert reasons == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }


def test_a_rolling_update_keeps_its_bounds_whenever_the_controllers_rest(world):
    bounds = {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
    _deploy(world, replicas=8, strategy=bounds)
    world.patch(DEPLOYMENTS, "web", _with_image("y"))
    seen = []
    for _ in range(100):
        world.settle(0.01)
        pods = [p for p in world.pods() if "deletionTimestamp" not in p["metadata"]]
        seen.append((len(pods), sum(p["status"]["phase"] == "Running" for p in pods)))
    assert len(set(seen)) > 1
    assert max(pods for pods, _ in seen) <= 10
    assert min(running for _, running in seen) >= 7
    sets = _sets(world)
    assert (sets["x"]["spec"]["replicas"], sets["y"]["spec"]["replicas"]) == (0, 8)
    assert {p["spec"]["containers"][0]["image"] for p in world.pods()} == {"y"}


def test_an_update_whose_pods_never_run_stops_at_its_bounds(world):
    _deploy(world, replicas=4)
    world.kubelets = False
    world.patch(DEPLOYMENTS, "web", _with_image("y"))
    world.settle(5)
    sets = _sets(world)
    assert (sets["x"]["spec"]["replicas"], sets["y"]["spec"]["replicas"]) == (3, 2)
