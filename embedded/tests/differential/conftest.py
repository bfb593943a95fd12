"""Both servers, once for the whole folder."""

from collections.abc import Iterator

import pytest

from embedded.tests.differential.asking import Server
from embedded.tests.differential.starting import both
from tools.controlplane.versions import missing_binaries
from tools.testing import skip_or_fail


@pytest.fixture(scope="session")
def servers(tmp_path_factory) -> Iterator[tuple[Server, Server]]:
    """The real server and the embedded one, without anything that acts on objects."""
    missing = missing_binaries()
    if missing:
        skip_or_fail(f"not built: {', '.join(missing)}; make controlplane builds them")
    with both(tmp_path_factory.mktemp("differential")) as started:
        yield started
