"""Worlds that reach a bound of the core at its real value: nothing is lost below it or above it.

``QUORATE_LARGE=all`` plays those too that take ten seconds.
"""

import os

import pytest

from tests.property.seeds import SEED
from tests.property.worlds import large

SLOW = {"many_classes", "many_selectors"}
PLAYED = [name for name in large.BUILDERS if os.environ.get("QUORATE_LARGE") or name not in SLOW]


@pytest.mark.parametrize("name", PLAYED)
def test_a_large_world_breaks_no_promise(name):
    large.play(name, SEED)
