"""The network between quorate and the API server fails in every way while gangs commit."""

import random
import time
from collections.abc import Callable

import pytest

from tests.e2e.harness.relay import Relay
from tools.controlplane import Cluster
from tools.embedded import Embedded
from tools.harness import invariants
from tools.testing import wait_for

pytestmark = pytest.mark.explore

ROUNDS_ON = {Cluster: 3, Embedded: 1}


def cut_often(relay: Relay, chance: random.Random) -> None:
    for _ in range(20):
        relay.cut_some(chance)
        time.sleep(chance.uniform(0.0, 0.1))


def cut_all(relay: Relay, chance: random.Random) -> None:
    for _ in range(4):
        relay.cut()
        time.sleep(chance.uniform(0.0, 0.3))


def throttle(relay: Relay, chance: random.Random) -> None:
    relay.throttle(chance.uniform(4e3, 4e4))
    time.sleep(3.0)
    relay.go_on()


def silence(relay: Relay, chance: random.Random) -> None:
    relay.stall()
    time.sleep(chance.uniform(0.5, 3.0))
    relay.go_on()


@pytest.mark.parametrize("fault", [cut_often, cut_all, throttle, silence])
def test_gangs_are_whole_although_the_network_fails_in_mid_commit(
    apart, beside, relays, chance, fault: Callable[[Relay, random.Random], None]
):
    invariants.room_for_two(apart)
    relay = relays()
    scheduler = beside(relay_port=relay.port)
    wait_for(scheduler.leads, "it leads")
    slowest_s = 0.0
    for number in range(ROUNDS_ON[type(apart.cluster)]):
        gangs = invariants.groups(apart, str(number))
        invariants.members(apart, gangs)
        time.sleep(chance.uniform(0.0, 0.08))
        fault(relay, chance)
        took_s = invariants.wait_kept(apart, gangs, whole=2)
        slowest_s = max(slowest_s, took_s)
        assert not apart.events("GangRolledBack")
        invariants.remove_load(apart)
    assert scheduler.leads()
    assert not scheduler.violations()
    print(f"whole {slowest_s:.1f} s after the fault")


LEASE = {"leaderElection": {"leaseDurationSeconds": 15, "renewDeadlineSeconds": 10}}


def test_a_leader_whose_connections_are_half_open_stays_the_leader(apart, beside, relays):
    """The lease's connection is dead and nobody said so: a new one has to be tried in time."""
    relay = relays()
    scheduler = beside(LEASE, relay_port=relay.port)
    wait_for(scheduler.leads, "it leads")
    assert relay.open > 3
    relay.half_open()
    time.sleep(12.0)  # longer than the renew deadline
    assert scheduler.leads()
    assert scheduler.process.poll() is None
