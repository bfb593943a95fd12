"""The cluster that tests/e2e and tests/hostile run on, with quorate's shipped CRDs and rights."""

from collections.abc import Iterator

import pytest

from tests.conftest import skip_or_fail
from tools.controlplane import Access, Cluster
from tools.controlplane.versions import missing_binaries
from tools.embedded import Embedded
from tools.testing import manifests


@pytest.fixture(scope="session")
def cluster(request, tmp_path_factory) -> Iterator[Access]:
    kind = request.config.getoption("--cluster") or "real"
    if kind == "real" and (missing := missing_binaries()):
        skip_or_fail(f"not built: {', '.join(missing)}; make controlplane builds them")
    starts = {"real": Cluster, "embedded": Embedded}[kind].start
    with starts(tmp_path_factory.mktemp("cluster")) as started:
        parts = ("crds", "rbac", "userroles", "flowschema")
        started.apply(manifests(*(f"--only={part}" for part in parts)))
        yield started
