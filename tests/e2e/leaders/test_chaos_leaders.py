"""Two replicas under load: the leader is killed, frozen or cut off in mid-commit."""

import time

import pytest

from tools.controlplane import Cluster
from tools.embedded import Embedded
from tools.harness import invariants
from tools.harness.scheduler import SHORT_LEASE
from tools.objects import gang_pods, pod_group
from tools.testing import wait_for

pytestmark = pytest.mark.explore

ROUNDS_ON = {Cluster: 3, Embedded: 1}


def attempts_by(world, prefix: str) -> set[str]:
    """Return who bound the pods that have such names: what their attempts' ids begin with."""
    annotations = (
        one["metadata"].get("annotations", {}).get("quorate.dev/attempt", "")
        for one in world.pods()
        if one["metadata"]["name"].startswith(prefix) and "nodeName" in one["spec"]
    )
    return {attempt.rpartition("-")[0] for attempt in annotations}


@pytest.mark.parametrize("fault", ["killed", "frozen", "cut off"])
def test_a_successor_takes_over_and_the_old_leader_binds_no_more(
    apart, beside, relays, chance, fault
):
    invariants.room_for_two(apart)
    config = {"leaderElection": SHORT_LEASE}

    def replica():
        relay = relays()
        return beside(config, relay_port=relay.port), relay

    leader, relay = replica()
    wait_for(leader.leads, "it leads")
    slowest_s = 0.0
    for number in range(ROUNDS_ON[type(apart.cluster)]):
        successor, next_relay = replica()
        gangs = invariants.groups(apart, str(number))
        invariants.members(apart, gangs)
        time.sleep(chance.uniform(0.0, 0.1))
        if fault == "killed":
            leader.kill()
        elif fault == "frozen":
            leader.pause()
        else:
            relay.stall()
        started_s = time.monotonic()
        wait_for(successor.leads, "the successor leads")
        invariants.wait_kept(apart, gangs, whole=2)
        slowest_s = max(slowest_s, time.monotonic() - started_s)
        if fault != "killed":
            returns_and_binds_nothing(apart, leader, relay, successor, number)
        assert not successor.violations()
        invariants.remove_load(apart)
        leader, relay = successor, next_relay
    print(f"whole {slowest_s:.1f} s after the leader was {fault}")


def returns_and_binds_nothing(world, old, relay, successor, number: int) -> None:
    """The old leader comes back at the instant in which there is new room for a gang that waits."""
    name = f"late{number}"
    world.apply(pod_group(name, 10))
    world.nodes(1, prefix=f"{world.namespace}-more{number}-", allocatable={"cpu": "10"})
    old.resume()
    relay.go_on()
    world.create_pods(gang_pods(name, 10, scheduler=world.scheduler))
    world.wait_bound(10, f"gang={name}")
    wait_for(lambda: old.process.poll() is not None, "the old leader has ended")
    assert old.process.returncode == 1
    assert "the lease was lost" in old.log()
    assert attempts_by(world, f"{name}-") == {successor.identity()}
    world.cluster.api("DELETE", f"/api/v1/nodes/{world.namespace}-more{number}-0")
