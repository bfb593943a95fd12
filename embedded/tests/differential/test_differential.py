"""Sequences of requests, sent to a real API server and to the embedded one, get the same answers.

The same sequences in each run, because fresh ones still show rare differences:
``python -m embedded.tests.differential.explore`` looks for them without stopping at the first.
"""

import pytest
from hypothesis import HealthCheck, given, settings

from embedded.tests.differential.accepted.differences import ACCEPTED, Accepted, ends, unexplained
from embedded.tests.differential.playing import Exchange, play
from embedded.tests.differential.sequences import sequences

pytestmark = pytest.mark.timeout(300)


def story(done: list[Exchange]) -> str:
    *before, last = done
    lines = [*map(str, before), last.in_full(unexplained(last))]
    return "\n\nDifferent answers to the last of these requests:\n\n" + "\n".join(lines)


@settings(
    max_examples=600,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)
@given(steps=sequences())
def test_both_servers_answer_alike(servers, steps):
    done = []
    for exchange in play(*servers, steps):
        done.append(exchange)
        if unexplained(exchange):
            pytest.fail(story(done), pytrace=False)
        if ends(exchange):
            return


@pytest.mark.parametrize("entry", ACCEPTED, ids=lambda entry: entry.name)
def test_each_accepted_difference_is_still_there(servers, entry: Accepted):
    done = list(play(*servers, entry.example))
    covered = [diff for one in done for diff in one.diffs if entry.covers(one, diff)]
    assert covered, f"no longer needed, remove it: {entry.name}{story(done)}"
    left = [(str(one), diff) for one in done for diff in unexplained(one)]
    assert not left, "the example shows more than its entry covers"


def test_each_accepted_difference_says_why():
    assert all(entry.why.endswith(".") for entry in ACCEPTED)
    assert len({entry.name for entry in ACCEPTED}) == len(ACCEPTED)
