"""StatefulSets and DaemonSets."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World, template, workload

STATEFUL, DAEMON = "statefulsets.apps", "daemonsets.apps"


@pytest.fixture
def world():
    return World(nodes=3)


def _change(world, bucket, name, **fields):
    def change(obj):
        obj["spec"].update(fields)

    world.patch(bucket, name, change)
    world.settle()


def _new_image(world, bucket, name, image="y"):
    def change(obj):
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = image

    world.patch(bucket, name, change)
    world.settle()


def _images(world):
    pods = world.pods()
    return {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in pods}


def _stateful(world, **spec):
    world.create("apps/v1", "statefulsets", workload("db", serviceName="db", **spec))
    world.settle()


def test_stateful_pods_have_names_labels_and_hostnames(world):
    _stateful(world, replicas=2)
    pod = world.pods()[1]
    revision = world.status(STATEFUL, "db")["updateRevision"]
    assert pod["metadata"]["name"] == "db-1"
    assert pod["metadata"]["labels"] == {
        "app": "db",
        "statefulset.kubernetes.io/pod-name": "db-1",
        "apps.kubernetes.io/pod-index": "1",
        "controller-revision-hash": revision,
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "db")
    assert world.status(STATEFUL, "db") == {
        "replicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "currentRevision": revision,
        "updateRevision": revision,
        "observedGeneration": 1,
        "collisionCount": 0,
    }


def test_an_ordered_set_waits_for_each_pod(world):
    world.kubelets = False
    _stateful(world, replicas=3)
    assert world.names("pods") == ["db-0"]
    world.run("db-0")
    world.settle()
    assert world.names("pods") == ["db-0", "db-1"]


def test_a_rolling_update_stops_at_its_partition(world):
    _stateful(world, replicas=3, updateStrategy={"rollingUpdate": {"partition": 2}})
    _new_image(world, STATEFUL, "db")
    assert _images(world) == {"db-0": "x", "db-1": "x", "db-2": "y"}
    status = world.status(STATEFUL, "db")
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    _change(world, STATEFUL, "db", updateStrategy={"type": "RollingUpdate"})
    assert set(_images(world).values()) == {"y"}
    status = world.status(STATEFUL, "db")
    assert status["currentRevision"] == status["updateRevision"]


def test_claims_are_made_once_and_stay(world):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": spec}
    _stateful(world, replicas=2, volumeClaimTemplates=[claim])
    assert world.names("persistentvolumeclaims") == ["data-db-0", "data-db-1"]
    volume = world.find("pods", "db-1")["spec"]["volumes"][0]
    assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
    _change(world, STATEFUL, "db", replicas=0)
    assert not world.pods()
    assert world.names("persistentvolumeclaims") == ["data-db-0", "data-db-1"]


# DaemonSets


def _daemon(world, **spec):
    world.create("apps/v1", "daemonsets", workload("agent", **spec))
    world.settle()


def _nodes_of_pods(world):
    return sorted(pod["spec"]["nodeName"] for pod in world.pods())


def test_every_node_has_one_pod_pinned_to_it(world):
    _daemon(world)
    assert _nodes_of_pods(world) == ["node-0", "node-1", "node-2"]
    pod = world.pods()[0]
    labels = pod["metadata"]["labels"]
    assert labels["app"] == "agent"
    keys = [t["key"].rpartition("/")[2] for t in pod["spec"]["tolerations"]]
    assert keys[:2] == ["not-ready", "unreachable"]
    assert set(keys[2:]) == {"disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"}
    assert world.status(DAEMON, "agent") == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberAvailable": 3,
        "numberMisscheduled": 0,
        "numberReady": 3,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
    }


def test_nodes_come_and_go(world):
    _daemon(world)
    world.node("late")
    world.delete("nodes", "node-0", "")
    world.settle(5)
    assert _nodes_of_pods(world) == ["late", "node-1", "node-2"]
    assert world.status(DAEMON, "agent")["desiredNumberScheduled"] == 3


def test_only_nodes_that_fit_have_pods(world):
    world.node("gpu", labels={"kind": "gpu"})
    world.node("tainted", labels={"kind": "gpu"}, taints=[{"key": "a", "effect": "NoSchedule"}])
    _daemon(world, template=template("agent", nodeSelector={"kind": "gpu"}))
    assert _nodes_of_pods(world) == ["gpu"]

    def relabel(node):
        del node["metadata"]["labels"]["kind"]

    world.patch("nodes", "gpu", relabel, "")
    world.settle()
    assert not world.pods()
