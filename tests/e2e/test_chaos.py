"""The scheduler is killed while gangs commit, again and again: no gang is ever left in part."""

import os
import time

import pytest

from tests.e2e import promises
from tests.e2e.test_lifecycle import clear_lease
from tests.e2e.world import wait_for
from tools.controlplane import Cluster
from tools.embedded import Embedded

KILLS = int(os.environ.get("QUORATE_CHAOS_KILLS", "0"))
KILLS_ON = {Cluster: 30, Embedded: 4}
"""The real control plane decides; on the embedded one this is a part of the quick tests."""


@pytest.mark.timeout(900)
def test_no_gang_is_left_in_part_when_the_scheduler_is_killed_in_mid_commit(apart, beside, chance):
    promises.room_for_two(apart)
    kills = KILLS or KILLS_ON[type(apart.cluster)]
    torn = 0
    slowest_s = 0.0
    for kill in range(kills):
        gangs = promises.groups(apart, str(kill))
        scheduler = beside()
        wait_for(scheduler.leads, "it leads")
        promises.members(apart, gangs)
        time.sleep(chance.uniform(0.0, 0.1))
        scheduler.kill()
        bound = promises.counts(apart, gangs).values()
        torn += any(0 < count < promises.MEMBERS for count in bound)
        clear_lease(apart)
        successor = beside()
        wait_for(successor.leads, "the successor leads")
        took_s = promises.wait_kept(apart, gangs, whole=2, timeout_s=15)
        slowest_s = max(slowest_s, took_s)
        assert not successor.violations()
        assert successor.stop() == 0
        promises.remove_load(apart)
    print(f"{kills} kills, {torn} in mid-commit, slowest recovery {slowest_s:.1f} s, 0 in part")
