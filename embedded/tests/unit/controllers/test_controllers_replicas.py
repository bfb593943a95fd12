"""ReplicaSets, and Deployments over them."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World, template, workload
from pocketkube.controllers.owning import deletion_order
from pocketkube.controllers.pod_table import facts_of
from pocketkube.controllers.templates import scaled_value
from pocketkube.controllers.workloads.deployment_steps import limits

SETS, DEPLOYMENTS = "replicasets.apps", "deployments.apps"


@pytest.fixture
def world():
    return World()


def _scaled(replicas):
    def change(obj):
        obj["spec"]["replicas"] = replicas

    return change


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


def test_a_smaller_replica_set_deletes_what_does_not_run_first(world):
    world.kubelets = False
    world.create("apps/v1", "replicasets", workload("rs", replicas=3))
    world.settle()
    kept = world.pods()[1]["metadata"]["name"]
    world.run(kept)
    world.patch(SETS, "rs", _scaled(1))
    world.settle()
    assert world.names("pods") == [kept]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"node": ""}, {"node": "n"}),
        ({"node": "n", "phase": "Pending"}, {"node": "n", "phase": "Running"}),
        ({"ready": ""}, {"ready": "2026-01-01T00:00:00Z"}),
        ({"cost": "-5"}, {"cost": "5"}),
        ({"ready": "2026-01-01T00:00:09Z"}, {"ready": "2026-01-01T00:00:01Z"}),
        ({"restarts": 3}, {"restarts": 0}),
        ({"created": "2026-01-01T00:00:09Z"}, {"created": "2026-01-01T00:00:01Z"}),
    ],
)
def test_the_order_of_deletion_is_upstreams(first, then):
    pods = [_pod("then", **then), _pod("first", **first)]
    assert [pod.name for pod in deletion_order(pods)] == ["first", "then"]


def _pod(name, node="n", phase="Running", ready="", cost="0", restarts=0, created=""):
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    pod = {
        "metadata": {
            "name": name,
            "namespace": "d",
            "uid": name,
            "creationTimestamp": created,
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": cost},
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"restartCount": restarts}],
        },
    }
    return facts_of(pod, {})


def test_pods_become_available_after_min_ready_seconds(world):
    world.create("apps/v1", "replicasets", workload("rs", replicas=1, minReadySeconds=10))
    world.settle(1)
    assert "availableReplicas" not in world.status(SETS, "rs")
    world.settle(11)
    assert world.status(SETS, "rs")["availableReplicas"] == 1


def test_pods_are_adopted_by_labels_and_released_by_labels(world):
    bare = template("rs")
    world.create("v1", "pods", {"metadata": {"name": "bare", **bare["metadata"]}, **_spec(bare)})
    world.settle()
    world.create("apps/v1", "replicasets", workload("rs", replicas=1))
    world.settle()
    assert world.names("pods") == ["bare"]
    assert world.find("pods", "bare")["metadata"]["ownerReferences"][0]["name"] == "rs"

    def relabel(pod):
        pod["metadata"]["labels"] = {"app": "other"}

    world.patch("pods", "bare", relabel)
    world.settle()
    assert "ownerReferences" not in world.find("pods", "bare")["metadata"]
    assert len(world.pods(app="rs")) == 1


def _spec(pod):
    return {"spec": pod["spec"]}


def test_an_orphan_that_comes_later_is_adopted_and_counts(world):
    world.create("apps/v1", "replicasets", workload("rs", replicas=1))
    world.settle()
    bare = template("rs")
    world.create("v1", "pods", {"metadata": {"name": "late", **bare["metadata"]}, **_spec(bare)})
    world.settle()
    assert len(world.pods(app="rs")) == 1


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


def test_its_replica_set_has_the_hash_and_the_revision(world):
    _deploy(world, replicas=3)
    metadata = _sets(world)["x"]["metadata"]
    hash_ = metadata["labels"]["pod-template-hash"]
    assert metadata["name"] == f"web-{hash_}"
    assert metadata["annotations"] == {
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
        "deployment.kubernetes.io/revision": "1",
    }
    assert world.pods()[0]["metadata"]["labels"] == {"app": "web", "pod-template-hash": hash_}


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
    _deploy(world, replicas=4, progressDeadlineSeconds=30)
    world.kubelets = False
    world.patch(DEPLOYMENTS, "web", _with_image("y"))
    world.settle(5)
    sets = _sets(world)
    assert (sets["x"]["spec"]["replicas"], sets["y"]["spec"]["replicas"]) == (3, 2)
    world.settle(60)
    conditions = world.status(DEPLOYMENTS, "web")["conditions"]
    assert [c["reason"] for c in conditions if c["type"] == "Progressing"] == [
        "ProgressDeadlineExceeded"
    ]


def test_going_back_gives_the_old_replica_set_a_new_revision(world):
    _deploy(world, replicas=2)
    world.patch(DEPLOYMENTS, "web", _with_image("y"))
    world.settle()
    world.patch(DEPLOYMENTS, "web", _with_image("x"))
    world.settle()
    annotations = _sets(world)["x"]["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "3"
    assert annotations["deployment.kubernetes.io/revision-history"] == "1"
    own = world.find(DEPLOYMENTS, "web")["metadata"]["annotations"]
    assert own["deployment.kubernetes.io/revision"] == "3"


def test_recreate_waits_until_every_old_pod_is_gone(world):
    _deploy(world, replicas=3, strategy={"type": "Recreate"})
    world.kubelets = False
    world.patch(DEPLOYMENTS, "web", _with_image("y"))
    world.settle(5)
    assert set(_sets(world)) == {"x"}
    assert len(world.pods()) == 3
    world.kubelets = True
    world.settle()
    assert {p["spec"]["containers"][0]["image"] for p in world.pods()} == {"y"}


def test_a_paused_deployment_scales_but_does_not_roll_out(world):
    _deploy(world, replicas=2)

    def pause(deployment):
        deployment["spec"]["paused"] = True
        deployment["spec"]["replicas"] = 4
        _with_image("y")(deployment)

    world.patch(DEPLOYMENTS, "web", pause)
    world.settle()
    assert set(_sets(world)) == {"x"}
    assert len(world.pods()) == 4


def test_old_replica_sets_are_forgotten_beyond_the_limit(world):
    _deploy(world, replicas=1, revisionHistoryLimit=1)
    for image in "abc":
        world.patch(DEPLOYMENTS, "web", _with_image(image))
        world.settle()
    assert set(_sets(world)) == {"b", "c"}


def test_a_name_that_is_taken_is_avoided(world):
    other = World()
    _deploy(other, replicas=1)
    taken = other.names(SETS)[0]
    body = workload("taken", replicas=0)
    body["metadata"]["name"] = taken
    world.create("apps/v1", "replicasets", body)
    _deploy(world, replicas=1)
    assert world.status(DEPLOYMENTS, "web")["collisionCount"] == 1
    assert world.status(DEPLOYMENTS, "web")["readyReplicas"] == 1


def _set(name, replicas):
    annotations = {"deployment.kubernetes.io/max-replicas": "10"}
    metadata = {"name": name, "uid": name, "annotations": annotations, "creationTimestamp": ""}
    return {"metadata": metadata, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    ("given", "total", "up", "wanted"),
    [("25%", 3, True, 1), ("25%", 3, False, 0), (5, 3, True, 5), (None, 8, False, 2)],
)
def test_a_percentage_is_of_the_total(given, total, up, wanted):
    assert scaled_value(given, total, up=up, otherwise="25%") == wanted


def test_an_update_can_always_move():
    strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}
    assert limits({"spec": {"replicas": 3, "strategy": strategy}}) == (0, 1)
