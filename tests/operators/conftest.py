"""The real control plane, quorate as it is shipped, and operators of others as they are released.

quorate owns each scheduler name that an operator's flag may hand out, the default scheduler's too:
no other scheduler runs.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from xdist.scheduler import LoadScopeScheduling

from tests.conftest import skip_or_fail
from tests.e2e.harness.cluster import cluster
from tests.operators.jobs import MANIFESTS, admits
from tools.controlplane import versions
from tools.harness.operators import (
    MpiOperator,
    Operator,
    TrainingOperator,
    Volcano,
    VolcanoAdmission,
)
from tools.harness.scheduler import CONFIG, Quorate
from tools.harness.world import World
from tools.testing import wait_for

__all__ = ["cluster"]

NAMES = [*CONFIG["schedulerNames"], "scheduler-plugins", "default-scheduler"]
_numbers = itertools.count()


@pytest.fixture(scope="session")
def volcanos_controllers(cluster, tmp_path_factory) -> Iterator[Operator]:
    """Volcano's controllers and definitions, installed; ``volcano`` starts them."""
    yield from _installed(Volcano, cluster, tmp_path_factory.mktemp("volcano"))


@pytest.fixture(scope="session")
def quorate(cluster, volcanos_controllers, tmp_path_factory) -> Iterator[Quorate]:
    folder = tmp_path_factory.mktemp("quorate")
    running = Quorate(cluster, folder, {"schedulerNames": NAMES}).start()
    yield running
    assert running.stop() == 0
    assert not running.complaints()


def _installed(kind: type[Operator], cluster, folder) -> Iterator[Operator]:
    if missing := versions.missing_binaries([kind.name]):
        skip_or_fail(f"not built: {', '.join(missing)}; make operators builds them")
    operator = kind(cluster, folder)
    yield operator
    operator.kill()


@pytest.fixture(scope="session")
def training_operator(cluster, tmp_path_factory) -> Iterator[Operator]:
    """Kubeflow's training-operator, installed; tests start it with their flags."""
    _forget_mpi_jobs(cluster)
    yield from _installed(TrainingOperator, cluster, tmp_path_factory.mktemp("training"))


@pytest.fixture(scope="session")
def mpi_operator(cluster, tmp_path_factory) -> Iterator[Operator]:
    """Kubeflow's mpi-operator, installed; tests start it with their flags."""
    _forget_mpi_jobs(cluster)
    yield from _installed(MpiOperator, cluster, tmp_path_factory.mktemp("mpi"))


def _forget_mpi_jobs(cluster) -> None:
    """Make room: each has MPIJobs of its own version, and the other has had its tests by now."""
    cluster.kubectl("delete", "crd", "mpijobs.kubeflow.org", "--ignore-not-found")


@pytest.fixture(scope="session")
def volcanos_admission(cluster, quorate, tmp_path_factory) -> Iterator[Operator]:
    """Volcano's admission, installed; ``volcano`` starts it."""
    yield from _installed(VolcanoAdmission, cluster, tmp_path_factory.mktemp("admission"))


@pytest.fixture(scope="session")
def volcano(cluster, volcanos_admission, volcanos_controllers) -> Operator:
    """Volcano's controllers, running, with its admission in front of them.

    Its controller's first look at a queue, which gets a parent then, would undo a command.
    """
    volcanos_admission.start()
    volcanos_controllers.start()
    job = yaml.safe_load((MANIFESTS / "vcjob.yaml").read_text())
    wait_for(lambda: admits(cluster, job), "the queue default is there, and open")
    queue = "/apis/scheduling.volcano.sh/v1beta1/queues/default"
    wait_for(lambda: "parent" in cluster.api("GET", queue)["spec"], "it has a parent")
    return volcanos_controllers


@pytest.fixture
def world(cluster, quorate) -> Iterator[World]:
    """A namespace and nodes for one test, with quorate running."""
    made = World(cluster, quorate, f"t{next(_numbers)}")
    yield made
    made.remove()
    assert not quorate.violations()


class ByOperator(LoadScopeScheduling):
    """Gives one process all tests of an operator of Kubeflow's: a cluster has one at a time."""

    def _split_scope(self, nodeid: str) -> str:
        operator = Path(nodeid.split("::", maxsplit=1)[0]).stem.split("_")[1]
        return operator if operator in ("mpi", "training") else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByOperator:
    """Share the tests out; pytest-xdist's own groups do not work with this pytest."""
    return ByOperator(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show, with a failure, what there was and what quorate and the operators say of themselves."""
    report = yield
    used = getattr(item, "funcargs", {})
    if report.failed and report.when == "call":
        if isinstance(used.get("world"), World):
            kinds = "pods,podgroups.scheduling.x-k8s.io,podgroups.scheduling.volcano.sh"
            for what in ([kinds, "-o", "wide"], ["events"]):
                report.sections.append(
                    (f"kubectl get {what[0]}", used["world"].kubectl("get", *what))
                )
        tellers = {one for one in used.values() if isinstance(one, Quorate | Operator)}
        report.sections += [(type(one).__name__, one.told()) for one in tellers]
    return report
