"""Worlds that reach a bound of the core at its real value: nothing is lost below it or above it."""

import pytest

from tests.property.seeds import SEED
from tests.property.worlds import large

SLOW = {"many_classes", "many_selectors"}
"""They take ten seconds each."""
PLAYED = [
    pytest.param(name, marks=[pytest.mark.explore] if name in SLOW else ())
    for name in large.BUILDERS
]


@pytest.mark.parametrize("name", PLAYED)
def test_a_large_world_breaks_no_promise(name):
    large.play(name, SEED)
