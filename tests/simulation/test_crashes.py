"""The scheduler may die at any request, at any stage; its successor mends what it left."""

import pytest

from simulate.faults import STAGES, Profile
from simulate.run import run
from tests.property.seeds import times

SEEDS = (4, 9, 23)
EACH = 415 // times(25)
"""Requests from one crash to the next."""


def run_with_crash(seed, number, stage):
    def prepare(one):
        one.world.faults.profile = Profile(replicas=2)
        one.world.faults.kill_at = number, stage

    return run(seed, prepare, themes=())  # what a theme does counts as a fault


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_crash_at_any_request_breaks_no_promise(seed, stage):
    number, broken = 1, []
    while True:
        outcome = run_with_crash(seed, number, stage)
        broken += [f"request {number}: {violation}" for violation in outcome.violations]
        if not outcome.faults:
            break  # the run has no more requests than these
        number += EACH
    assert not broken
    assert number > 100
