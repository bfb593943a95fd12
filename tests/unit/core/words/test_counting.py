"""How many there are, in words: "1 nodes" was said in twenty places."""

import pytest

from quorate.core.words.counting import counted


@pytest.mark.parametrize(
    ("number", "bare", "with_verb"),
    [
        (0, "0 nodes", "0 nodes take"),
        (1, "1 node", "1 node takes"),
        (2, "2 nodes", "2 nodes take"),
    ],
)
def test_one_is_one(number, bare, with_verb):
    assert counted(number, "node") == bare
    assert counted(number, "node", "takes", "take") == with_verb


def test_many_are_read_more_easily_with_marks_where_these_are_asked_for():
    assert counted(2147483647, "node") == "2147483647 nodes"
    assert counted(8214, "change", form=",") == "8,214 changes"
