"""One cluster for the whole suite, and quorate beside it with exactly its shipped RBAC.

``--cluster real`` is a real control plane, ``--cluster embedded`` is ``quorate up --no-scheduler``.
Each test has nodes and namespaces of its own and leaves none behind.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import skip_or_fail
from tests.e2e.running import Quorate, install_beside, manifests, uninstall
from tests.e2e.world import World, wait_for
from tools.controlplane import Access, ApiError, Cluster
from tools.controlplane.versions import missing_binaries
from tools.embedded import Embedded

VOLCANO = Path(__file__).with_name("manifests") / "volcano.yaml"
VOLCANO_CRDS = ("podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what the embedded cluster does not have: it calls no webhooks."""
    embedded = config.getoption("--cluster") == "embedded"
    return True if embedded and collection_path.name == "test_guard.py" else None


@pytest.fixture(scope="session")
def cluster(request, tmp_path_factory) -> Iterator[Access]:
    kind = request.config.getoption("--cluster") or "real"
    missing = missing_binaries() if kind == "real" else missing_binaries(["kubectl"])
    if missing:
        skip_or_fail(f"not built: {', '.join(missing)}; make controlplane builds them")
    starts = {"real": Cluster, "embedded": Embedded}[kind].start
    with starts(tmp_path_factory.mktemp("cluster")) as started:
        parts = ("--only", "crds", "--only", "rbac", "--only", "flowschema")
        started.kubectl("apply", "-f", "-", input=manifests(*parts))
        for crd in ("podgroups.scheduling.x-k8s.io", "podgroups.scheduling.sigs.k8s.io"):
            started.kubectl("wait", "--for=condition=Established", f"crd/{crd}")
        yield started


@pytest.fixture(scope="session")
def quorate(cluster, tmp_path_factory) -> Iterator[Quorate]:
    running = Quorate(cluster, tmp_path_factory.mktemp("quorate")).start()
    yield running
    code = running.stop()
    assert code == 0, f"quorate did not stop cleanly ({code}):\n{running.log()[-4000:]}"
    assert not running.complaints()


_numbers = itertools.count()


@pytest.fixture
def world(cluster, quorate) -> Iterator[World]:
    """A namespace and nodes for one test, with quorate running."""
    made = World(cluster, quorate, f"t{next(_numbers)}")
    yield made
    made.remove()


@pytest.fixture
def beside(cluster, tmp_path) -> Iterator[Callable[..., Quorate]]:
    """Start schedulers of the test's own: own names, own ServiceAccount, own lease.

    All that one test starts are replicas: they share their lease, and the scheduler name that is
    in ``beside.scheduler_name``. ``config`` is merged over the suite's.
    """
    namespace = f"beside{next(_numbers)}"
    install_beside(cluster, namespace)
    running: list[Quorate] = []

    def start(config: dict | None = None, *, wait_ready=True, relay_port=0, through="") -> Quorate:
        election = {"leaseDurationSeconds": 90, "renewDeadlineSeconds": 75}
        election |= {"retryPeriodSeconds": 1, **(config or {}).get("leaderElection", {})}
        own = {"schedulerNames": [namespace], **(config or {})}
        own["leaderElection"] = {**election, "namespace": namespace}
        made = Quorate(cluster, tmp_path, own, namespace, relay_port)
        if through:  # the URL of a proxy without TLS
            kubeconfig = json.loads(made.kubeconfig.read_text())
            kubeconfig["clusters"][0]["cluster"] = {"server": through}
            made.kubeconfig.write_text(json.dumps(kubeconfig))
        running.append(made)
        return made.start(wait_ready=wait_ready)

    start.scheduler_name = namespace
    yield start
    for one in running:
        one.stop()
    uninstall(cluster, namespace)
    assert not [one.complaints() for one in running if one.complaints()]


@pytest.fixture
def apart(cluster, beside) -> Iterator[World]:
    """A namespace and nodes for one test, whose scheduler the test starts with ``beside``."""
    made = World(cluster, None, f"t{next(_numbers)}", scheduler=beside.scheduler_name)
    yield made
    made.remove()


@pytest.fixture(scope="module")
def volcano(cluster, quorate) -> Iterator[None]:
    """Volcano's PodGroup and Queue, installed while quorate runs and removed after the module."""
    install_volcano(cluster)
    wait_for(
        lambda: _exists(cluster, "/apis/scheduling.volcano.sh/v1beta1/queues/default"),
        "quorate found the API and made Volcano's queues",
        timeout_s=30,
    )
    yield
    remove_volcano(cluster)


def install_volcano(cluster: Access) -> None:
    cluster.kubectl("apply", "-f", str(VOLCANO))
    for crd in VOLCANO_CRDS:
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{crd}")


def remove_volcano(cluster: Access) -> None:
    cluster.kubectl("delete", "crd", *VOLCANO_CRDS)


def _exists(cluster: Access, path: str) -> bool:
    try:
        cluster.api("GET", path)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True
