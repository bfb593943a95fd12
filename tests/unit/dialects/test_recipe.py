"""The recipe for a new dialect is followed by the letter, and the dialect works."""

import pytest

from tests.paths import ROOT
from tests.recipes import apply, copied, run, run_tests

PAGE = ROOT / "docs" / "maintainers" / "add-a-dialect.md"
FILES_MAX = 6


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return copied(tmp_path_factory.mktemp("checkout"))


def test_a_dialect_is_added_by_its_recipe_in_six_files_and_passes_its_tests(tree):
    touched = apply(PAGE, tree)
    assert len(touched) <= FILES_MAX, touched
    assert {path.split("/")[0] for path in touched} == {"src", "tests", "docs", "CHANGELOG.md"}
    run_tests(
        tree,
        "tests/unit/dialects/test_example.py",
        "tests/unit/dialects/test_membership.py",
        "tests/property/reading/test_dialects.py",
    )
    linted = run(tree, "-m", "ruff", "check", *(path for path in touched if path.endswith(".py")))
    assert linted.returncode == 0, linted.stdout
