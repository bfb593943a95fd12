"""The journal on its way from one leader's Lease to the next one's core."""

import pytest

from quorate.core.model.changes import JournalFound
from quorate.core.model.journal import Journal
from quorate.shell.lease.handover import Handover

OWN = Journal("b", 4, ("x-k8s/team/job",))
FOUND = '{"by":"a","made":2,"open":["coscheduler/team/g"]}'


def test_what_is_found_is_kept_until_the_core_has_decided():
    handover = Handover(lambda: OWN, "b")
    kept = handover.journal(FOUND)
    assert kept == '{"by":"a","made":2,"open":["coscheduler/team/g"],"since":["b"]}'
    assert handover.journal(kept) == kept
    assert handover.found() == [JournalFound(Journal("a", 2, ("coscheduler/team/g",), ("b",)))]
    handover.hand_over()
    assert handover.journal(kept) == kept, "our core has not taken it up yet"
    handover.has_decided = True
    assert handover.journal(kept) == kept, "it is read in the core's loop only"
    handover.hand_over()
    assert handover.journal(kept) == '{"by":"b","made":4,"open":["x-k8s/team/job"]}'


def test_a_first_leader_says_that_it_led_before_its_core_has_decided():
    handover = Handover(lambda: OWN, "b")
    first = handover.journal("")
    assert first == '{"by":"b","made":0,"open":null}'
    assert handover.found() == []
    after = Handover(lambda: OWN, "c")
    assert after.journal(first) == '{"by":"b","made":0,"open":null,"since":["c"]}'
    assert after.found() == [JournalFound(Journal("b", 0, None, ("c",)))]


@pytest.mark.parametrize("found", ["null", "{}", "[1]", '{"by":1,"made":2}', "\ud800"])
def test_what_is_no_journal_says_nothing(found):
    handover = Handover(lambda: OWN, "b")
    assert handover.journal(found) == ""
    assert handover.found() == []


def test_a_journal_that_somebody_takes_away_is_forgotten():
    handover = Handover(lambda: OWN, "b")
    handover.journal(FOUND)
    handover.journal("")
    assert handover.found() == []
