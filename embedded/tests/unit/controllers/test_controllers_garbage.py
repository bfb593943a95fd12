"""What goes when owners, nodes and namespaces go."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World, workload

SETS = "replicasets.apps"
POD = {"spec": {"containers": [{"name": "c", "image": "x"}]}}


@pytest.fixture
def world():
    return World()


def _web(world, replicas=2):
    world.create("apps/v1", "deployments", workload("web", replicas=replicas))
    world.settle()


def test_in_the_background_all_goes_after_its_owner(world):
    _web(world)
    world.delete("deployments.apps", "web", propagation="Background")
    assert world.names("deployments.apps") == []
    world.settle()
    assert (world.names(SETS), world.names("pods")) == ([], [])


def test_in_the_foreground_the_owner_waits_for_all(world):
    _web(world)
    world.kubelets = False
    world.delete("deployments.apps", "web", propagation="Foreground")
    world.settle()
    assert world.names("deployments.apps") == ["web"]
    assert world.find(SETS, world.names(SETS)[0])["metadata"]["finalizers"] == [
        "foregroundDeletion"
    ]
    assert all("deletionTimestamp" in pod["metadata"] for pod in world.pods())
    world.kubelets = True
    world.settle()
    assert (world.names("deployments.apps"), world.names(SETS), world.pods()) == ([], [], [])


def test_orphans_stay_and_have_no_owner(world):
    _web(world)
    world.delete("deployments.apps", "web", propagation="Orphan")
    world.settle()
    assert world.names("deployments.apps") == []
    replica_set = world.find(SETS, world.names(SETS)[0])
    assert "ownerReferences" not in replica_set["metadata"]
    assert len(world.pods()) == 2


def _owned_by(*uids, blocks=False):
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": uid,
            "blockOwnerDeletion": blocks,
        }
        for uid in uids
    ]


def _config_map(world, name, **metadata):
    made = world.create("v1", "configmaps", {"metadata": {"name": name, **metadata}})
    return made["metadata"]["uid"]


def test_what_names_an_owner_that_is_not_there_goes(world):
    _config_map(world, "lost", ownerReferences=_owned_by("no-such-uid"))
    world.settle()
    assert world.find("configmaps", "lost") is None


# Pods that nobody looks after


def test_pods_of_a_node_that_is_gone_fail_and_go(world):
    world.create("v1", "pods", {"metadata": {"name": "p"}, **POD})
    world.settle()
    seen = []
    world.api.store.watch("pods", lambda event: seen.append(event.object["status"]))
    world.kubelets = False
    world.delete("nodes", "node-0", "")
    world.settle(5)
    assert world.names("pods") == []
    conditions = [c for status in seen for c in status["conditions"]]
    assert ("DisruptionTarget", "DeletionByPodGC") in {
        (c["type"], c.get("reason")) for c in conditions
    }


# Namespaces


def test_a_new_namespace_gets_its_account(world):
    world.namespace("team")
    world.settle()
    assert world.names("serviceaccounts", "team") == ["default"]
    world.delete("serviceaccounts", "default", "team")
    world.settle()
    assert world.names("serviceaccounts", "team") == ["default"]


def test_a_namespace_goes_with_all_that_is_in_it(world):
    world.namespace("team")
    world.create("apps/v1", "deployments", workload("web", replicas=3), "team")
    world.create("v1", "secrets", {"metadata": {"name": "s"}}, "team")
    world.settle()
    assert len(world.pods("team")) == 3
    world.delete("namespaces", "team", "")
    world.settle(2)
    assert world.find("namespaces", "team", "") is None
    left = [b for b in world.api.store.buckets() if world.names(b, "team")]
    assert left == []


def test_a_namespace_waits_for_finalizers(world):
    world.namespace("team")
    metadata = {"name": "held", "finalizers": ["example.com/f"]}
    world.create("v1", "configmaps", {"metadata": metadata}, "team")
    world.delete("namespaces", "team", "")
    world.settle(2)
    namespace = world.find("namespaces", "team", "")
    assert namespace["status"]["phase"] == "Terminating"

    def release(found):
        del found["metadata"]["finalizers"]

    world.patch("configmaps", "held", release, "team")
    world.settle()
    assert world.find("namespaces", "team", "") is None


def test_pods_go_before_what_they_may_need(world):
    world.namespace("team")
    world.create("v1", "pods", {"metadata": {"name": "p"}, **POD}, "team")
    world.create("v1", "secrets", {"metadata": {"name": "s"}}, "team")
    world.settle()
    world.kubelets = False
    world.delete("namespaces", "team", "")
    world.settle()
    assert world.names("secrets", "team") == ["s"]
    world.kubelets = True
    world.settle()
    assert world.find("namespaces", "team", "") is None
