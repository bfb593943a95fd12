"""Each bug that the core once had is found when it is planted again."""

from pathlib import Path

import pytest

from tests.property.worlds.running import play
from tests.property.worlds.scripts import seed_of
from tests.simulation.core_bugs import CORE_BUGS

WORLDS_MAX = 400
PLANTED = [bug for bug in CORE_BUGS if bug.plant is not None]


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: f"{bug.number:02} {bug.plant.__name__}")
def test_a_planted_bug_is_found(bug, monkeypatch):
    bug.plant(monkeypatch)
    if bug.fails is not None:
        with pytest.raises(AssertionError):
            bug.fails()
        return
    for number in range(WORLDS_MAX):
        if play(seed_of(bug.run, number), bug.themes[number % len(bug.themes)]).kind:
            return
    pytest.fail(f"not found in {WORLDS_MAX} worlds of {bug.themes}")


def test_the_table_has_every_bug_and_names_tests_that_exist():
    assert {bug.number for bug in CORE_BUGS} == set(range(1, 17))
    for bug in CORE_BUGS:
        assert bug.plant is not None or bug.covered_by
        if bug.covered_by:
            path, _, name = bug.covered_by.partition("::")
            assert f"def {name}(" in Path(path).read_text(), bug.covered_by
