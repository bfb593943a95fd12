"""Which objects clients wait for is the dialects' to say; whether they wait for us, the names'."""

import pytest

from quorate.shell.apis import api_words


@pytest.mark.parametrize(
    ("names", "awaited"),
    [((), {}), (("quorate",), {}), (("quorate", "volcano"), {"volcano": "volcano"})],
)
def test_clients_wait_for_who_owns_the_name_that_they_wait_under(names, awaited):
    """The command line owns none: it knows no nodes, and must say nothing of room."""
    found = api_words(names)
    assert {name: words.awaited_under for name, words in found.items() if words.awaited_under} == (
        awaited
    )
