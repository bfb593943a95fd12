"""The scheduler is killed while gangs commit, again and again: no gang is ever left in part."""

import os
import random
import time

import pytest

from tests.e2e.test_lifecycle import clear_lease
from tests.e2e.world import gang_pods, pod_group, wait_for
from tools.controlplane import Cluster
from tools.embedded import Embedded

KILLS = int(os.environ.get("QUORATE_CHAOS_KILLS", "0"))
KILLS_ON = {Cluster: 30, Embedded: 4}
"""The real control plane decides; on the embedded one this is a part of the quick tests."""
MEMBERS = 60


def parts(world, gangs: list[str]) -> dict[str, int]:
    """Return how many members of each gang have a node."""
    bound = dict.fromkeys(gangs, 0)
    for one in world.pods():
        gang = one["metadata"]["labels"]["gang"]
        if gang in bound and "nodeName" in one["spec"]:
            bound[gang] += 1
    return bound


@pytest.mark.timeout(900)
def test_no_gang_is_left_in_part_when_the_scheduler_is_killed_in_mid_commit(apart, beside):
    """Room for two of three gangs: some kills hit gangs that have to be undone."""
    seed = int.from_bytes(os.urandom(4))
    chance = random.Random(seed)
    print(f"seed {seed}")
    apart.nodes(4, allocatable={"cpu": str(MEMBERS * 2 // 4)})
    kills = KILLS or KILLS_ON[type(apart.cluster)]
    torn = 0
    slowest_s = 0.0
    for kill in range(kills):
        gangs = [f"g{kill}-{i}" for i in range(3)]
        apart.apply(*(pod_group(gang, MEMBERS) for gang in gangs))
        scheduler = beside()
        wait_for(scheduler.leads, "it leads")
        pods = [gang_pods(gang, MEMBERS, scheduler=apart.scheduler) for gang in gangs]
        apart.create_pods(*pods)  # interleaved: all three are complete within milliseconds
        time.sleep(chance.uniform(0.0, 0.1))
        scheduler.kill()
        torn += any(0 < count < MEMBERS for count in parts(apart, gangs).values())
        clear_lease(apart)
        successor = beside()
        wait_for(successor.leads, "the successor leads")
        started_s = time.monotonic()
        wait_for(
            lambda gangs=gangs: sorted(parts(apart, gangs).values()) == [0, MEMBERS, MEMBERS],
            "two gangs run whole and the third holds nothing",
            timeout_s=15,
        )
        slowest_s = max(slowest_s, time.monotonic() - started_s)
        assert successor.stop() == 0
        apart.kubectl("delete", "podgroups.scheduling.x-k8s.io", "--all", "--wait=false")
        path = f"/api/v1/namespaces/{apart.namespace}/pods"
        wait_for(lambda path=path: apart._delete_pods(path), "no pods are left")
    print(f"{kills} kills, {torn} in mid-commit, slowest recovery {slowest_s:.1f} s, 0 in part")
