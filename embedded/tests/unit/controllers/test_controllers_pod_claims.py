"""Pods bring claims with them: ephemeral volumes, and devices from templates."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World

CLAIMS = "resourceclaims.resource.k8s.io"
VOLUME_CLAIMS = "persistentvolumeclaims"


@pytest.fixture
def world():
    return World(kubelets=False)


def template(world, name="one-gpu"):
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpus"}}
    spec = {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {"requests": [request]}}}
    body = {"metadata": {"name": name}, "spec": spec}
    world.create("resource.k8s.io/v1", "resourceclaimtemplates", body)


def pod(world, name="p", **spec):
    spec = {"containers": [{"name": "c", "image": "i"}], **spec}
    world.create("v1", "pods", {"metadata": {"name": name}, "spec": spec})
    world.settle()


def with_template(world, name="p"):
    entry = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
    pod(world, name, resourceClaims=[entry])


def allocate(world, claim, *pods):
    """Do what a scheduler does before it binds."""

    def change(found):
        found["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        users = [world.find("pods", one) for one in pods]
        found["status"] = {
            "allocation": {"devices": {"results": []}},
            "reservedFor": [
                {"resource": "pods", "name": u["metadata"]["name"], "uid": u["metadata"]["uid"]}
                for u in users
            ],
        }

    world.patch(CLAIMS, claim, change)
    world.settle()


def test_a_pod_with_a_template_gets_a_claim_of_its_own_and_is_told_its_name(world):
    template(world)
    with_template(world)
    (name,) = world.names(CLAIMS)
    assert name.startswith("p-gpu-")
    claim = world.find(CLAIMS, name)
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert claim["metadata"]["labels"] == {"a": "b"}
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    told = world.status("pods", "p")["resourceClaimStatuses"]
    assert told == [{"name": "gpu", "resourceClaimName": name}]


def test_a_claim_of_a_pod_that_ended_goes(world):
    template(world)
    with_template(world)
    (name,) = world.names(CLAIMS)
    allocate(world, name, "p")
    world.run("p")
    world.settle()
    assert world.names(CLAIMS) == [name]
    world.set_phase("p", "Succeeded")
    world.settle()
    assert world.names(CLAIMS) == []


def test_a_claim_that_several_pods_share_is_free_again_with_the_last_of_them(world):
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpus"}}
    spec = {"devices": {"requests": [request]}}
    world.create("resource.k8s.io/v1", "resourceclaims", {"metadata": {"name": "s"}, "spec": spec})
    for name in ("p", "q"):
        pod(world, name, resourceClaims=[{"name": "gpu", "resourceClaimName": "s"}])
    allocate(world, "s", "p", "q")
    for name in ("p", "q"):
        world.run(name)
    world.set_phase("p", "Succeeded")
    world.settle()
    assert [one["name"] for one in world.status(CLAIMS, "s")["reservedFor"]] == ["q"]
    assert "allocation" in world.status(CLAIMS, "s")
    world.set_phase("q", "Failed")
    world.settle()
    assert world.status(CLAIMS, "s") == {}
    assert "finalizers" not in world.find(CLAIMS, "s")["metadata"]


EPHEMERAL = {
    "volumeClaimTemplate": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
}


def test_an_ephemeral_volume_gets_a_claim_that_the_pod_owns(world):
    pod(world, volumes=[{"name": "scratch", "ephemeral": EPHEMERAL}])
    claim = world.find(VOLUME_CLAIMS, "p-scratch")
    assert claim["metadata"]["labels"] == {"a": "b"}
    assert claim["metadata"]["ownerReferences"][0]["name"] == "p"
    world.delete("pods", "p", grace_period_s=0)
    world.settle(60)
    assert world.names(VOLUME_CLAIMS) == []
