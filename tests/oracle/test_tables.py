"""The scheduler's own table tests, converted: the oracle says what the plugins say in them."""

from collections import Counter

import pytest

from tests.conftest import skip_or_fail
from tools.controlplane.golang import GoError
from tools.oracle import Oracle
from tools.oracle.tables import Fixture, upstream_tables
from tools.oracle.tables.fixtures import differences


@pytest.fixture(scope="module")
def tables(oracle: Oracle) -> list[Fixture]:
    try:
        return upstream_tables()
    except GoError as error:
        skip_or_fail(str(error))
        raise


def test_x(oracle: Oracle, tables: list[Fixture]):
    made, differ = Counter(), Counter()
    for fixture in tables:
        made[fixture.plugin] += 1
        if differences(fixture, oracle.ask(fixture.case)):
            differ[fixture.plugin] += 1
    print(made, differ)
