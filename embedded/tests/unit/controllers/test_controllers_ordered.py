"""StatefulSets and DaemonSets."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World, template, workload
from pocketkube.matching.node_rules import fits, tolerates

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


def test_a_parallel_set_does_not_wait(world):
    world.kubelets = False
    _stateful(world, replicas=3, podManagementPolicy="Parallel")
    assert world.names("pods") == ["db-0", "db-1", "db-2"]


def test_an_ordered_set_shrinks_from_the_end(world):
    _stateful(world, replicas=3)
    world.kubelets = False
    _change(world, STATEFUL, "db", replicas=1)
    going = [p["metadata"]["name"] for p in world.pods() if "deletionTimestamp" in p["metadata"]]
    assert going == ["db-2"]
    world.kubelets = True
    world.settle()
    assert world.names("pods") == ["db-0"]


def test_a_rolling_update_stops_at_its_partition(world):
    _stateful(world, replicas=3, updateStrategy={"rollingUpdate": {"partition": 2}})
    _new_image(world, STATEFUL, "db")
    assert _images(world) == {"db-0": "x", "db-1": "x", "db-2": "y"}
    world.delete("pods", "db-0")
    world.settle()
    assert _images(world)["db-0"] == "x"
    status = world.status(STATEFUL, "db")
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    _change(world, STATEFUL, "db", updateStrategy={"type": "RollingUpdate"})
    assert set(_images(world).values()) == {"y"}
    status = world.status(STATEFUL, "db")
    assert status["currentRevision"] == status["updateRevision"]


def test_an_update_on_delete_waits_for_the_delete(world):
    _stateful(world, replicas=2, updateStrategy={"type": "OnDelete"})
    _new_image(world, STATEFUL, "db")
    assert set(_images(world).values()) == {"x"}
    world.delete("pods", "db-1")
    world.settle()
    assert _images(world) == {"db-0": "x", "db-1": "y"}


def test_a_stateful_pod_that_failed_is_made_anew(world):
    _stateful(world, replicas=1)
    before = world.find("pods", "db-0")["metadata"]["uid"]
    world.set_phase("db-0", "Failed")
    world.settle()
    assert world.find("pods", "db-0")["metadata"]["uid"] != before
    assert world.status(STATEFUL, "db")["readyReplicas"] == 1


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


def test_ordinals_may_start_elsewhere(world):
    _stateful(world, replicas=2, ordinals={"start": 5})
    assert world.names("pods") == ["db-5", "db-6"]


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
    assert (labels["app"], labels["pod-template-generation"]) == ("agent", "1")
    assert f"agent-{labels['controller-revision-hash']}" in world.names("controllerrevisions.apps")
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


def test_a_pod_stays_on_a_node_that_is_cordoned(world):
    _daemon(world)

    def cordon(node):
        node["spec"]["unschedulable"] = True

    world.patch("nodes", "node-0", cordon, "")
    world.settle()
    assert len(world.pods()) == 3


def test_a_daemon_set_is_updated_node_by_node(world):
    _daemon(world)
    unavailable = []
    stop = world.api.store.watch(
        DAEMON,
        lambda event: unavailable.append(event.object["status"].get("numberUnavailable", 0)),
    )
    _new_image(world, DAEMON, "agent")
    stop()
    assert set(_images(world).values()) == {"y"}
    assert max(unavailable) == 1


@pytest.mark.parametrize(
    ("toleration", "wanted"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_what_tolerates_a_taint(toleration, wanted):
    assert tolerates(toleration, {"key": "k", "value": "v", "effect": "NoSchedule"}) is wanted


@pytest.mark.parametrize(
    ("operator", "values", "wanted"),
    [
        ("In", ["5", "6"], True),
        ("NotIn", ["5"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["4"], True),
        ("Lt", ["5"], False),
        ("Gt", ["x"], False),
    ],
)
def test_what_fits_a_node(operator, values, wanted):
    expression = {"key": "size", "operator": operator, "values": values}
    terms = {"nodeSelectorTerms": [{}, {"matchExpressions": [expression]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    spec = {"affinity": {"nodeAffinity": required}}
    assert fits(spec, "n", {"size": "5"}) is wanted
