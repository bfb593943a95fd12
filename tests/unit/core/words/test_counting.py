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
