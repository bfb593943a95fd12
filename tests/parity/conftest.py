"""One oracle for the whole folder; it is built where Go is found."""

from collections.abc import Iterator

import pytest

from tests.conftest import skip_or_fail
from tools.controlplane.golang import GoError
from tools.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    try:
        with Oracle() as started:
            yield started
    except GoError as error:
        skip_or_fail(str(error))
