"""A defect at any call of any function of the core costs what met it, and nothing else.

Functions, calls and worlds are drawn by the seed of the run; a large ``QUORATE_TIMES`` hits each
function that the worlds reach. See ``chaos`` for the method. What failed once is kept in
``kept_seeds.toml``.
"""

import random

import pytest

from tests.property import chaos
from tests.property.seeds import SEED, kept, times

WORLDS = 4 * len(chaos.THEMES)
PARTS = 6


@pytest.fixture(scope="module")
def found():
    return chaos.reached(SEED, WORLDS)


def test_the_worlds_reach_most_of_the_core(found):
    """So that the test below can fail: whatever is not reached is not hit."""
    modules = {chaos.target_of(code).module for code in found}
    assert len(found) > 700
    assert {"core/scheduler.py", "core/words/explain.py", "core/check/verify.py"} <= modules


@pytest.mark.parametrize("part", range(PARTS))
def test_what_one_function_raises_costs_what_met_it(found, part):
    drawn = list(chaos.hits(SEED, found, random.Random(f"chaos {SEED}"), times(300)))
    problems = [chaos.failure_of(SEED, hit) for hit in drawn[part::PARTS]]
    failed = [problem for problem in problems if problem]
    said = f"{len(failed)} of {len(problems)} of seed {SEED}:"
    assert not failed, "\n".join([said, *failed])


@pytest.mark.parametrize(("run", "number", "name", "place"), kept("chaos"))
def test_what_once_cost_more_than_what_met_it(run, number, name, place):
    hit = chaos.hit_of(run, number, name, place)
    assert hit is None or chaos.failure_of(run, hit) == ""


def test_a_defect_that_nobody_contains_is_seen(found):
    """A scheduler that contains nothing fails at nearly every hit of what it decides with."""
    codes = [code for code in found if chaos.target_of(code).module == "core/turn/cycle.py"]
    bare = {code: found[code] for code in codes}
    hits = list(chaos.hits(SEED, bare, random.Random(SEED), len(bare)))
    seen = [chaos.failure_of(SEED, hit, contained=False) for hit in hits]
    assert len(hits) > 5
    assert all(problem.startswith("escapes") for problem in seen)
