"""The recipe for a new rule is followed by the letter, and the rule works."""

import pytest

from tests.paths import ROOT
from tests.recipes import apply, copied, run, run_tests

PAGE = ROOT / "docs" / "maintainers" / "add-a-rule.md"
FILES_MAX = 6


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return copied(tmp_path_factory.mktemp("checkout"))


def test_a_rule_is_added_by_its_recipe_in_six_files_and_passes_its_tests(tree):
    touched = apply(PAGE, tree)
    assert len(touched) <= FILES_MAX, touched
    assert {path.split("/")[0] for path in touched} == {"src", "tests", "CHANGELOG.md"}
    run_tests(
        tree,
        "tests/unit/core/rules",
        "--ignore=tests/unit/core/rules/test_recipe.py",
        "tests/unit/core/check/test_every_rule.py",
    )
    python = [path for path in touched if path.endswith(".py")]
    linted = run(tree, "-m", "ruff", "check", *python)
    assert linted.returncode == 0, linted.stdout
    formatted = run(tree, "-m", "ruff", "format", "--check", *python)
    assert formatted.returncode == 0, formatted.stdout
