"""kube-scheduler's own table tests, put to the core: it says what the plugins say of each case.

``tests/oracle/test_tables.py`` compares the oracle with what the tables expect; here the core is
compared with the oracle, so that cases count too in which a table test had something by hand.
"""

from collections import Counter

import pytest

from tests.conftest import skip_or_fail
from tools.controlplane.golang import GoError
from tools.oracle import Oracle
from tools.oracle.tables import Fixture, upstream_tables
from tools.parity.compare import differences, differences_by_node, ends_in_error
from tools.parity.ours import answer
from tools.parity.tables import complete, left_out

LEFT_OUT = {
    "the API server refuses the value of a label": 5,
    "its filter has arguments": 10,
    "it has devices that quorate does not give": 23,
    "it has volumes that quorate does not count": 22,
}
"""How many cases compare nothing, and why."""


@pytest.fixture(scope="module")
def tables() -> list[Fixture]:
    try:
        return upstream_tables()
    except GoError as error:
        skip_or_fail(str(error))


def test_the_core_says_what_kube_scheduler_says_of_its_own_tables(
    oracle: Oracle, tables: list[Fixture]
) -> None:
    skipped = Counter(reason for one in tables if (reason := left_out(one)))
    assert skipped == LEFT_OUT
    said = []
    for fixture in tables:
        if left_out(fixture):
            continue
        case = complete(fixture.case)
        theirs = oracle.ask(case)
        ours = answer(case)
        compare = differences_by_node if ends_in_error(theirs) else differences
        said += [f"{fixture.source}: {one}" for one in compare(ours, theirs)]
    assert len(tables) > 600
    assert not said, "\n".join(said)
