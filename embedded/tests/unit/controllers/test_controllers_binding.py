"""Claims get volumes: those kept for them, the smallest that suits, or new ones."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
DYNAMIC = "pocketkube.dev/dynamic"
SELECTED = "volume.kubernetes.io/selected-node"


@pytest.fixture
def world():
    return World()


def claim(world, name="data", *, size="1Gi", **spec):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    world.create("v1", CLAIMS, {"metadata": {"name": name}, "spec": spec})


def volume(world, name, *, size="1Gi", **spec):
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, **spec}
    spec.setdefault("hostPath", {"path": "/disk"})
    world.create("v1", VOLUMES, {"metadata": {"name": name}, "spec": spec})


def storage_class(world, name, provisioner, *, late=False):
    mode = "WaitForFirstConsumer" if late else "Immediate"
    body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
    world.create("storage.k8s.io/v1", "storageclasses", body)


def bound_to(world, name="data"):
    found = world.find(CLAIMS, name)
    return found["status"]["phase"], found["spec"].get("volumeName")


def phase(world, name):
    return world.find(VOLUMES, name, "")["status"]["phase"]


def select(world, node, name="data"):
    def change(found):
        found["metadata"].setdefault("annotations", {})[SELECTED] = node

    world.patch(CLAIMS, name, change)
    world.settle()


def test_a_claim_gets_the_smallest_volume_that_suits(world):
    volume(world, "large", size="9Gi")
    volume(world, "small", size="1Gi")
    volume(world, "middle", size="3Gi")
    claim(world, size="2Gi")
    world.settle()
    assert bound_to(world) == ("Bound", "middle")
    assert world.find(CLAIMS, "data")["status"]["capacity"] == {"storage": "3Gi"}
    assert [phase(world, name) for name in ("large", "middle", "small")] == [
        "Available",
        "Bound",
        "Available",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"storageClassName": "other"},
        {"accessModes": ["ReadWriteMany"]},
        {"volumeMode": "Block"},
        {"selector": {"matchLabels": {"tier": "gold"}}},
        {"size": "2Gi"},
    ],
    ids=["class", "modes", "block", "selector", "size"],
)
def test_a_volume_that_does_not_suit_is_not_taken(world, spec):
    volume(world, "disk")
    claim(world, **spec)
    world.settle()
    assert bound_to(world) == ("Pending", None)
    assert phase(world, "disk") == "Available"


def test_a_volume_is_never_given_twice(world):
    volume(world, "disk")
    for name in ("one", "two"):
        claim(world, name)
    world.settle()
    assert sorted(bound_to(world, name)[0] for name in ("one", "two")) == ["Bound", "Pending"]
    volume(world, "another")
    world.settle()
    assert {bound_to(world, name) for name in ("one", "two")} == {
        ("Bound", "disk"),
        ("Bound", "another"),
    }


def test_a_late_claim_waits_for_a_node_and_gets_a_volume_that_only_that_node_can_use(world):
    storage_class(world, "fast", DYNAMIC, late=True)
    claim(world, storageClassName="fast")
    world.settle()
    assert bound_to(world) == ("Pending", None)
    assert world.reasons("data") == ["WaitForFirstConsumer"]
    select(world, "node-1")
    state, name = bound_to(world)
    assert state == "Bound"
    made = world.find(VOLUMES, name, "")["spec"]
    (term,) = made["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["node-1"]


def test_an_immediate_claim_of_our_class_is_served_at_once_and_its_volume_goes_with_it(world):
    storage_class(world, "now", DYNAMIC)
    claim(world, storageClassName="now")
    world.settle()
    assert bound_to(world)[0] == "Bound"
    assert len(world.names(VOLUMES, "")) == 1
    world.delete(CLAIMS, "data")
    world.settle()
    assert world.names(VOLUMES, "") == []


def test_a_claim_of_somebody_else_s_provisioner_waits_and_says_so(world):
    storage_class(world, "theirs", "csi.example")
    claim(world, storageClassName="theirs")
    world.settle()
    assert world.find(CLAIMS, "data")["status"]["phase"] == "Pending"
    assert world.reasons("data") == ["ExternalProvisioning"]


def test_a_volume_whose_claim_is_gone_is_released_and_kept(world):
    volume(world, "disk")
    claim(world)
    world.settle()
    world.delete(CLAIMS, "data")
    world.settle()
    assert phase(world, "disk") == "Released"
    claim(world)
    world.settle()
    assert bound_to(world) == ("Pending", None), "its data are another claim's"
