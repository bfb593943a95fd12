"""One world of 200 nodes and 2,000 gangs in each run, with the checkers on."""

import pytest

from quorate.simulate.large import GANGS, Crowd, run_large
from tests.property.seeds import number


@pytest.mark.timeout(1800)
def test_a_large_world_breaks_no_promise():
    outcome = run_large(number("QUORATE_LARGE_SEED", 7))
    assert not outcome.violations, f"seed {outcome.seed}: {outcome.violations[:5]}"
    for what in Crowd.must_meet:
        assert outcome.met[f"crowd: {what}"]
    assert outcome.steps > 10 * GANGS
