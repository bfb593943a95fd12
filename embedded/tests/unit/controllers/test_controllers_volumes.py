"""Claims and volumes that are being deleted stay while they are in use, and no longer."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World


def claim(name="data"):
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources}
    return {"metadata": {"name": name}, "spec": spec}


def volume():
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    return {"metadata": {"name": "disk"}, "spec": {**spec, "hostPath": {"path": "/disk"}}}


@pytest.fixture
def world():
    return World()


def pod(name, volume):
    containers = [{"name": "c", "image": "i"}]
    volumes = [{"name": "v", **volume}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, "volumes": volumes}}


def claims(world):
    return world.names("persistentvolumeclaims")


def test_a_claim_that_nobody_uses_goes_at_once(world):
    world.create("v1", "persistentvolumeclaims", claim())
    world.delete("persistentvolumeclaims", "data")
    world.settle()
    assert claims(world) == []


NAMED = {"persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}


@pytest.mark.parametrize(
    ("name", "of_pod"), [("data", NAMED), ("user-v", EPHEMERAL)], ids=["named", "ephemeral"]
)
def test_a_claim_in_use_goes_with_its_last_pod(world, name, of_pod):
    world.create("v1", "persistentvolumeclaims", claim(name))
    world.create("v1", "pods", pod("user", of_pod))
    world.settle()
    world.delete("persistentvolumeclaims", name)
    world.settle()
    assert claims(world) == [name]
    world.delete("pods", "user")
    world.settle()
    assert claims(world) == []


def test_a_volume_stays_while_it_is_bound(world):
    world.create("v1", "persistentvolumes", volume())
    world.create("v1", "persistentvolumeclaims", claim())
    world.settle()
    assert world.find("persistentvolumes", "disk", "")["status"]["phase"] == "Bound"
    world.delete("persistentvolumes", "disk", "")
    world.settle()
    assert world.names("persistentvolumes", "") == ["disk"]
    world.delete("persistentvolumeclaims", "data")
    world.settle()
    assert world.names("persistentvolumes", "") == []
