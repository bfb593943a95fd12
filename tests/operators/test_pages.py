"""Goal: who does what a page of an operator says sees what the page says.

Method: each page in a cluster of its own, with kube-scheduler for all that is no gang.
"""

from collections.abc import Iterator

import pytest

from tests.conftest import skip_or_fail
from tests.operators.pages import Reader
from tools.controlplane import Cluster
from tools.controlplane.versions import OPERATORS, missing_binaries
from tools.testing import manifests

NODE = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}


@pytest.fixture
def reader(tmp_path) -> Iterator[Reader]:
    """Somebody with a cluster of four nodes with 8 GPUs each, in which quorate is installed."""
    if missing := missing_binaries() or missing_binaries([*OPERATORS]):
        skip_or_fail(f"not built: {', '.join(missing)}; make controlplane operators builds them")
    names = [f"gpu-{number}" for number in range(4)]
    with Cluster.start(tmp_path / "cluster") as cluster:
        cluster.start_kube_scheduler()
        cluster.create_nodes(names, allocatable=NODE)
        cluster.apply(manifests("--image", "quorate:0.1.0"))
        reader = Reader(cluster, tmp_path)
        yield reader
        reader.stop()


@pytest.mark.parametrize("page", ["training-operator.md", "mpi-operator.md", "volcano.md"])
def test_what_a_page_says_is_what_its_reader_sees(reader, page):
    reader.read(page)
