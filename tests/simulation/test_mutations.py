"""The checkers find promises that were broken on purpose, or they are not good enough.

Mostly in worlds without themes, which have the most of what these are about. ``core_bugs`` has
others.
"""

import pytest

from quorate.simulate.run import run
from quorate.simulate.themes.table import THEMES
from tests.simulation.mutations import MUTATIONS

SEEDS_MAX = 300


@pytest.mark.parametrize("name", MUTATIONS)
def test_checkers_find(name, monkeypatch):
    mutation = MUTATIONS[name]
    mutation.apply(monkeypatch)
    if mutation.fails is not None:
        with pytest.raises(AssertionError):
            mutation.fails()
        return
    broken = []
    for seed in range(mutation.first_seed, mutation.first_seed + SEEDS_MAX):
        themes = [THEMES[name] for name in mutation.themes]
        broken += [violation.promise for violation in run(seed, themes=themes).violations]
        if set(broken) & set(mutation.found_by):
            return
    pytest.fail(f"not found in {SEEDS_MAX} seeds; found instead: {sorted(set(broken))}")
