"""PodGroups and nodes are deleted while gangs commit, and made anew."""

import time

import pytest

from tools.controlplane import ApiError, Cluster
from tools.embedded import Embedded
from tools.harness import invariants
from tools.objects import pod_group
from tools.testing import wait_for

pytestmark = pytest.mark.explore

ROUNDS_ON = {Cluster: 6, Embedded: 2}
ATTEMPT_S = 3


def collect_pods_of(world, node: str) -> None:
    """Delete the pods of a node that is gone, as the pod garbage collector does within minutes."""
    for one in world.pods():
        if one["spec"].get("nodeName") == node:
            path = f"/api/v1/namespaces/{world.namespace}/pods/{one['metadata']['name']}"
            try:
                world.cluster.api("DELETE", f"{path}?gracePeriodSeconds=0")
            except ApiError as error:
                if error.status != 404:
                    raise


def apply_owners(world, gangs: list[str]) -> None:
    size = invariants.MEMBERS
    world.apply(*(invariants.replica_set(gang, size, world.scheduler) for gang in gangs))


def wait_for_controllers(world) -> None:
    """Those that lost the API server in an earlier test may take half a minute to be back."""
    world.apply(invariants.replica_set("probe", 1, "nobody", gang=False))
    wait_for(lambda: world.pods("gang=probe"), "controllers make pods")
    invariants.remove_load(world)


def test_gangs_whose_objects_are_deleted_in_mid_commit_are_whole_or_undone(apart, beside, chance):
    invariants.room_for_two(apart)
    scheduler = beside()
    wait_for(scheduler.leads, "it leads")
    wait_for_controllers(apart)
    for number in range(ROUNDS_ON[type(apart.cluster)]):
        gangs = invariants.groups(apart, str(number), timeout_s=ATTEMPT_S)
        apply_owners(apart, gangs)
        time.sleep(chance.uniform(0.0, 1.0))
        gone = chance.sample(gangs, 2)
        for gang in gone:
            apart.delete_group(gang)
        # All are whole or hold nothing, without their objects too.
        invariants.wait_kept(apart, gangs, whole=0, owned=True)
        apart.apply(*(pod_group(gang, invariants.MEMBERS) for gang in gone))
        invariants.wait_kept(apart, gangs, whole=2, owned=True)
        invariants.remove_load(apart)
    assert not scheduler.violations()


def test_gangs_of_which_a_node_vanishes_in_mid_commit_are_whole_again(apart, beside, chance):
    nodes = invariants.room_for_two(apart)
    scheduler = beside()
    wait_for(scheduler.leads, "it leads")
    wait_for_controllers(apart)
    for number in range(ROUNDS_ON[type(apart.cluster)]):
        gangs = invariants.groups(apart, str(number), timeout_s=ATTEMPT_S)
        apply_owners(apart, gangs)
        time.sleep(chance.uniform(0.0, 1.0))
        node = chance.choice(nodes)
        apart.cluster.api("DELETE", f"/api/v1/nodes/{node}")
        time.sleep(chance.uniform(0.0, 1.0))
        collect_pods_of(apart, node)
        apart.cluster.create_nodes([node], allocatable={"cpu": "30"})
        collect_pods_of(apart, node)
        invariants.wait_kept(apart, gangs, whole=2, owned=True)
        invariants.remove_load(apart)
    assert not scheduler.violations()
