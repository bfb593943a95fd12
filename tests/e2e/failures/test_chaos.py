"""The scheduler is killed while gangs commit, again and again: no gang is ever left in part."""

import pytest

from tools.controlplane import Cluster
from tools.embedded import Embedded
from tools.harness.faults import kill_in_mid_commit

pytestmark = pytest.mark.explore

KILLS_ON = {Cluster: 30, Embedded: 4}
"""The real control plane decides."""


@pytest.mark.timeout(900)
def test_no_gang_is_left_in_part_when_the_scheduler_is_killed_in_mid_commit(apart, beside, chance):
    done = kill_in_mid_commit(apart, beside, chance, KILLS_ON[type(apart.cluster)])
    print(
        f"{done.kills} kills, {done.torn} in mid-commit, "
        f"slowest recovery {done.slowest_s:.1f} s, 0 in part"
    )
