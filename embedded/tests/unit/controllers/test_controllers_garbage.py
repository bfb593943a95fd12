"""What goes when owners, nodes and namespaces go."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World, job, workload
from pocketkube.controllers.upkeep import pod_garbage

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


def test_one_owner_of_two_is_enough(world):
    first, second = _config_map(world, "one"), _config_map(world, "two")
    _config_map(world, "shared", ownerReferences=_owned_by(first, second))
    world.delete("configmaps", "one")
    world.settle()
    owners = world.find("configmaps", "shared")["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in owners] == [second]
    world.delete("configmaps", "two")
    world.settle()
    assert world.find("configmaps", "shared") is None


def test_an_owner_with_a_new_uid_is_another_owner(world):
    uid = _config_map(world, "owner")
    _config_map(world, "child", ownerReferences=_owned_by(uid))
    world.delete("configmaps", "owner")
    _config_map(world, "owner")
    world.settle()
    assert world.find("configmaps", "child") is None


def test_only_those_that_block_are_waited_for(world):
    uid = _config_map(world, "owner")
    kept = {"finalizers": ["example.com/kept"]}
    _config_map(world, "loose", ownerReferences=_owned_by(uid), **kept)
    world.delete("configmaps", "owner", propagation="Foreground")
    world.settle()
    assert world.find("configmaps", "owner") is None
    assert "deletionTimestamp" in world.find("configmaps", "loose")["metadata"]


def test_what_blocks_holds_its_owner_until_its_finalizer_goes(world):
    uid = _config_map(world, "owner")
    kept = {"finalizers": ["example.com/kept"]}
    _config_map(world, "tight", ownerReferences=_owned_by(uid, blocks=True), **kept)
    world.delete("configmaps", "owner", propagation="Foreground")
    world.settle()
    assert world.find("configmaps", "owner") is not None

    def release(found):
        del found["metadata"]["finalizers"]

    world.patch("configmaps", "tight", release)
    world.settle()
    assert world.find("configmaps", "owner") is None


def test_an_owner_in_another_namespace_is_none(world):
    world.namespace("other")
    uid = _config_map(world, "owner")
    body = {"metadata": {"name": "child", "ownerReferences": _owned_by(uid)}}
    world.create("v1", "configmaps", body, "other")
    world.settle()
    assert "child" not in world.names("configmaps", "other")
    assert world.names("configmaps") == ["kube-root-ca.crt", "owner"]


def test_a_job_that_is_deleted_takes_its_pods_along(world):
    world.create("batch/v1", "jobs", job("j", parallelism=3))
    world.settle()
    world.delete("jobs.batch", "j", propagation="Foreground")
    world.settle()
    assert (world.names("jobs.batch"), world.pods()) == ([], [])


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


def test_pods_of_a_node_that_went_while_nobody_looked_go_too(world):
    world.create("v1", "pods", {"metadata": {"name": "p"}, **POD})
    world.settle()
    world.api.store.remove("nodes", "", "node-0")
    again = World(store=world.api.store)
    again.settle(5)
    assert again.names("pods") == []


def test_a_node_that_comes_back_at_once_keeps_its_pods(world):
    world.create("v1", "pods", {"metadata": {"name": "p"}, **POD})
    world.settle()
    world.delete("nodes", "node-0", "")
    world.node("node-0")
    world.settle(5)
    assert world.names("pods") == ["p"]


def test_too_many_finished_pods_are_thinned_out(world, monkeypatch):
    monkeypatch.setattr(pod_garbage, "FINISHED_MAX", 2)
    for name in "abcd":
        world.create("v1", "pods", {"metadata": {"name": name}, **POD})
    world.settle()
    for name in "dabc":
        world.set_phase(name, "Succeeded")
    world.settle(5)
    assert world.names("pods") == ["b", "c"]


# Namespaces


def test_a_new_namespace_gets_its_account_and_certificate(world):
    world.namespace("team")
    world.settle()
    assert world.names("serviceaccounts", "team") == ["default"]
    config_map = world.find("configmaps", "kube-root-ca.crt", "team")
    assert config_map["data"] == {"ca.crt": "PEM"}
    world.delete("serviceaccounts", "default", "team")
    world.delete("configmaps", "kube-root-ca.crt", "team")
    world.settle()
    assert world.names("serviceaccounts", "team") == ["default"]
    assert world.names("configmaps", "team") == ["kube-root-ca.crt"]


def test_the_certificate_is_put_right(world):
    def spoil(found):
        found["data"] = {"ca.crt": "spoiled"}

    world.patch("configmaps", "kube-root-ca.crt", spoil)
    world.settle()
    assert world.find("configmaps", "kube-root-ca.crt")["data"] == {"ca.crt": "PEM"}


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


def test_a_namespace_waits_for_finalizers_and_says_so(world):
    world.namespace("team")
    metadata = {"name": "held", "finalizers": ["example.com/f"]}
    world.create("v1", "configmaps", {"metadata": metadata}, "team")
    world.delete("namespaces", "team", "")
    world.settle(2)
    namespace = world.find("namespaces", "team", "")
    conditions = {c["type"]: c for c in namespace["status"]["conditions"]}
    assert namespace["status"]["phase"] == "Terminating"
    assert conditions["NamespaceContentRemaining"]["status"] == "True"
    assert conditions["NamespaceFinalizersRemaining"]["message"].endswith(
        "example.com/f in 1 resource instances"
    )

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
