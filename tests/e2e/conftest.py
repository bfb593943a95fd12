"""One cluster for the whole suite, and quorate beside it with exactly its shipped RBAC.

``--cluster real`` is a real control plane, ``--cluster embedded`` is ``quorate up --no-scheduler``.
Each test has nodes and namespaces of its own and leaves none behind.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.harness.cluster import cluster
from tests.e2e.harness.relay import Relay
from tests.e2e.harness.volcano import install_volcano, remove_volcano
from tests.property.seeds import SEED
from tools.harness.scheduler import Quorate, Replicas
from tools.harness.world import World
from tools.testing import wait_for

__all__ = ["cluster"]
HERE = Path(__file__).parent
HANGS_S = 900
"""A test that takes longer hangs; on a busy machine one with many rounds takes minutes."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what the embedded cluster has not: Go programs."""
    embedded = config.getoption("--cluster") == "embedded"
    left_out = ("test_chaos_rivals.py", "test_twins.py")
    return True if embedded and collection_path.name in left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out single tests that need Go programs, on the embedded cluster."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(HANGS_S))
    if config.getoption("--cluster") == "embedded":
        left_out = [item for item in items if item.get_closest_marker("real")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def quorate(cluster, tmp_path_factory) -> Iterator[Quorate]:
    running = Quorate(cluster, tmp_path_factory.mktemp("quorate")).start()
    yield running
    code = running.stop()
    assert code == 0, f"quorate did not stop cleanly ({code}):\n{running.log()[-4000:]}"
    assert not running.complaints()
    defects = [end for end in running.ends if "the lease was lost" not in end]
    assert not defects, "it may end by itself when it loses the lease, and for no other reason"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show, with a failure, what the schedulers that it used say of themselves."""
    report = yield
    used = getattr(item, "funcargs", {})
    if report.failed:
        running = [used["quorate"]] if isinstance(used.get("quorate"), Quorate) else []
        running += used["beside"].running if isinstance(used.get("beside"), Replicas) else []
        title = "quorate: /readyz and the end of its log"
        report.sections += [(title, one.told()) for one in running]
    return report


_numbers = itertools.count()


@pytest.fixture
def world(cluster, quorate) -> Iterator[World]:
    """A namespace and nodes for one test, with quorate running."""
    quorate.revive()
    made = World(cluster, quorate, f"t{next(_numbers)}")
    yield made
    made.remove()


@pytest.fixture
def beside(cluster, tmp_path) -> Iterator[Replicas]:
    """Start schedulers of the test's own; all of one test's are replicas of one another."""
    with Replicas(cluster, tmp_path, f"beside{next(_numbers)}") as replicas:
        yield replicas


@pytest.fixture
def apart(cluster, beside) -> Iterator[World]:
    """A namespace and nodes for one test, whose scheduler the test starts with ``beside``."""
    made = World(cluster, None, f"t{next(_numbers)}", scheduler=beside.scheduler_name)
    yield made
    made.remove()


@pytest.fixture
def chance() -> random.Random:
    """The test's randomness, from the seed of the run."""
    return random.Random(SEED)


@pytest.fixture
def relays(cluster) -> Iterator[Callable[[], Relay]]:
    """Make relays in front of the API server."""
    with ExitStack() as stack:
        port = int(cluster.server.rpartition(":")[2])
        yield lambda: stack.enter_context(Relay(("127.0.0.1", port)))


@pytest.fixture(scope="module")
def volcano(cluster, quorate) -> Iterator[None]:
    """Volcano's PodGroup and Queue, installed while quorate runs and removed after the module."""
    install_volcano(cluster)
    wait_for(
        lambda: cluster.exists("/apis/scheduling.volcano.sh/v1beta1/queues/default"),
        "quorate found the API and made Volcano's queues",
    )
    yield
    remove_volcano(cluster)
