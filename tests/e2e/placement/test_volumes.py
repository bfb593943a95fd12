"""Gangs with claims on a real control plane: bound late, all of them before the first pod."""

import pytest

from tests.e2e.harness.provisioner import (
    SELECTED,
    VOLUMES,
    Provisioner,
    claims_of,
    selected,
    storage_classes,
    volume,
    with_claims,
)
from tools.testing import wait_for

pytestmark = pytest.mark.core


@pytest.fixture
def classes(cluster, world):
    with storage_classes(cluster, world.namespace) as made:
        yield made


@pytest.fixture
def storage_class(classes):
    return classes[0]


@pytest.fixture
def local_class(classes):
    return classes[1]


def test_a_gang_with_one_claim_each_starts_whole(world, cluster, storage_class):
    world.nodes(2, allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"})
    pods = world.gang("db", 4)
    world.apply(*with_claims(pods, storage_class))
    world.create_pods(pods)
    wait_for(lambda: len(selected(world)) == 4, "all claims are told a node")
    world.stays_unbound("gang=db")
    with Provisioner(cluster, storage_class).working():
        world.wait_bound(4, "gang=db")
    where = world.where("gang=db")
    for name, one in claims_of(world).items():
        assert one["status"]["phase"] == "Bound"
        node = where[name.removeprefix("data-")]
        assert one["metadata"]["annotations"][SELECTED] == node


def test_volumes_that_exist_are_bound_one_to_each_member(world, cluster, local_class):
    nodes = world.nodes(3, allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"})
    pods = world.gang("db", 3)
    world.apply(*with_claims(pods, local_class))
    world.create_pods(pods)
    world.wait_condition("didn't find available persistent volumes to bind", "gang=db")
    assert selected(world) == []
    for node in nodes:
        made = volume(f"pv-{node}", local_class, node, local={"path": "/mnt"})
        cluster.api("POST", VOLUMES, made)
    world.wait_bound(3, "gang=db")
    assert sorted(world.where("gang=db").values()) == sorted(nodes)
    bound = {one["spec"]["volumeName"] for one in claims_of(world).values()}
    assert bound == {f"pv-{node}" for node in nodes}


def test_a_gang_whose_volume_cannot_be_made_lets_go_and_goes_elsewhere(
    world, cluster, storage_class
):
    small = world.nodes(1, f"{world.namespace}-small-", allocatable={"cpu": "2", "pods": "9"})
    large = world.nodes(1, f"{world.namespace}-large-", allocatable={"cpu": "3", "pods": "9"})
    provisioner = Provisioner(cluster, storage_class)
    provisioner.fails_on = set(small)
    pods = world.gang("db", 2)
    world.apply(*with_claims(pods, storage_class))
    world.create_pods(pods)
    with provisioner.working():
        world.wait_bound(2, "gang=db")
    assert set(world.where("gang=db").values()) == set(large)
    assert {node for _, node in provisioner.gave_up} == set(small)


def test_a_gang_with_one_impossible_claim_starts_nothing_and_leaves_nothing_behind(
    world, storage_class
):
    world.nodes(1, allocatable={"cpu": "8", "memory": "8Gi", "pods": "10"})
    pods = world.gang("db", 3)
    claims = with_claims(pods, storage_class)
    claims[1]["spec"]["storageClassName"] = "absent"
    world.apply(*claims)
    world.create_pods(pods)
    message = world.wait_condition("spec.storageClassName absent does not exist", "gang=db")
    assert "pod has unbound immediate PersistentVolumeClaims" in message
    world.stays_unbound("gang=db")
    assert selected(world) == []


def test_claims_are_let_go_when_the_time_of_an_attempt_is_over(world, cluster, storage_class):
    world.nodes(1, allocatable={"cpu": "8", "memory": "8Gi", "pods": "10"})
    pods = world.gang("db", 2, group={"scheduleTimeoutSeconds": 3})
    world.apply(*with_claims(pods, storage_class))
    world.create_pods(pods)
    wait_for(lambda: len(selected(world)) == 2, "all claims are told a node")
    wait_for(lambda: selected(world) == [], "they are let go")
    world.stays_unbound("gang=db")
    with Provisioner(cluster, storage_class).working():
        world.wait_bound(2, "gang=db")
