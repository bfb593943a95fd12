"""The API server stops, or crashes, and comes back while gangs commit."""

import time

import pytest

from tools.controlplane import Cluster
from tools.embedded import Embedded
from tools.harness import invariants
from tools.testing import wait_for

pytestmark = pytest.mark.explore

ROUNDS_ON = {Cluster: 3, Embedded: 1}


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_gangs_are_whole_after_the_api_server_went_in_mid_commit(
    apart, beside, quorate, chance, kill
):
    invariants.room_for_two(apart)
    scheduler = beside()
    wait_for(scheduler.leads, "it leads")
    torn, slowest_s = 0, 0.0
    rounds = ROUNDS_ON[type(apart.cluster)]
    for number in range(rounds):
        gangs = invariants.groups(apart, str(number))
        invariants.members(apart, gangs)
        time.sleep(chance.uniform(0.0, 0.1))
        apart.cluster.restart_apiserver(kill=kill)
        bound = invariants.counts(apart, gangs).values()
        torn += any(0 < count < invariants.MEMBERS for count in bound)
        took_s = invariants.wait_kept(apart, gangs, whole=2)
        slowest_s = max(slowest_s, took_s)
        assert scheduler.process.poll() is None
        assert not apart.events("GangRolledBack")
        invariants.remove_load(apart)
    quorate.wait_well()
    assert not scheduler.violations()
    print(f"{rounds} restarts, {torn} in mid-commit, whole {slowest_s:.1f} s after it was back")
