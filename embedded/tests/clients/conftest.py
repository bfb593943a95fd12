"""One embedded cluster for all clients, whose scheduler takes every pod; a namespace for each test.

``--cluster real`` runs the same tests against a real control plane: what a client may expect is
what passes on both.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from embedded.tests.clients.running import Kubectl, a_namespace, exists, train_crd
from tools.controlplane import Access, Cluster
from tools.controlplane.versions import binary, missing_binaries
from tools.embedded import Embedded
from tools.testing import manifests, skip_or_fail, wait_for

NODES = 3


@pytest.fixture(scope="session")
def on_real(request) -> bool:
    return request.config.getoption("--cluster") == "real"


@pytest.fixture(scope="session")
def cluster(on_real, tmp_path_factory) -> Iterator[Access]:
    folder = tmp_path_factory.mktemp("clients")
    started = _start_real(folder) if on_real else _start_embedded(folder)
    with started as cluster:
        crd = train_crd()
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        cluster.api("POST", crds, crd)
        path = f"/apis/{crd['spec']['group']}/v1/trains"
        wait_for(lambda: exists(cluster, path), "the kind of the tests is served")
        yield cluster


class _RealCluster(Cluster):
    """A real control plane that stops its scheduler too."""

    quorate: Any = None

    def stop(self) -> None:
        if self.quorate is not None:
            self.quorate.stop()
        super().stop()


def _start_real(folder: Path) -> Cluster:
    from tools.harness.scheduler import CONFIG, Quorate  # of quorate's tests: only needed here

    missing = missing_binaries()
    if missing:
        skip_or_fail(f"not built: {', '.join(missing)}; make controlplane builds them")
    started = _RealCluster.start(folder / "cluster", nodes=NODES)
    parts = ("--only", "crds", "--only", "rbac", "--only", "flowschema")
    started.kubectl("apply", "-f", "-", input=manifests(*parts))
    every = {"schedulerNames": ["default-scheduler", *CONFIG["schedulerNames"]]}
    started.quorate = Quorate(started, folder, every).start()
    return started


def _start_embedded(folder: Path) -> Embedded:
    return Embedded.start(folder / "cluster", nodes=NODES, scheduler=True)


@pytest.fixture
def namespace(cluster) -> Iterator[str]:
    with a_namespace(cluster) as name:
        yield name


@pytest.fixture(scope="session")
def kubectl_in(cluster) -> Callable[[str], Kubectl]:
    """kubectl in a namespace."""
    if missing_binaries(["kubectl"]):
        skip_or_fail("kubectl is not built; make controlplane builds it")
    return partial(Kubectl, binary("kubectl"), cluster.kubeconfig, cluster.data_dir)


@pytest.fixture
def kubectl(kubectl_in, namespace) -> Kubectl:
    return kubectl_in(namespace)


@pytest.fixture(scope="session")
def kubeconfig(cluster) -> str:
    return str(cluster.kubeconfig)
