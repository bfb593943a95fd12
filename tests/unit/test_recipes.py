"""How blocks of a recipe change files: what is not there, or there twice, is no guess."""

import pytest

from tests.recipes import apply

TABLE = "a\nb\nc\nb\n"


def recipe(tmp_path, language, text):
    (tmp_path / "table.py").write_text(TABLE)
    page = tmp_path / "page.md"
    page.write_text(f'prose\n\n```{language} title="table.py"\n{text}```\n\n```\nno file\n```\n')
    return page


@pytest.mark.parametrize(
    ("diff", "after"),
    [
        (" a\n+x\n b\n", "a\nx\nb\nc\nb\n"),
        ("-a\n+x\n", "x\nb\nc\nb\n"),
        (" c\n-b\n", "a\nb\nc\n"),
    ],
)
def test_a_diff_changes_the_lines_that_it_shows(tmp_path, diff, after):
    assert apply(recipe(tmp_path, "diff", diff), tmp_path) == {"table.py"}
    assert (tmp_path / "table.py").read_text() == after


@pytest.mark.parametrize("diff", [" z\n+x\n", "-b\n", " a\n c\n+x\n", "-\n+x\n"])
def test_lines_that_are_not_there_once_fail(tmp_path, diff):
    with pytest.raises(AssertionError, match="times, not once"):
        apply(recipe(tmp_path, "diff", diff), tmp_path)


def test_a_new_file_replaces_none(tmp_path):
    with pytest.raises(AssertionError, match="is there already"):
        apply(recipe(tmp_path, "python", "x = 1\n"), tmp_path)


def test_a_page_without_blocks_is_no_recipe(tmp_path):
    (tmp_path / "page.md").write_text("```\nno file\n```\n")
    with pytest.raises(AssertionError, match="no block"):
        apply(tmp_path / "page.md", tmp_path)
