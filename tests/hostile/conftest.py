"""The real control plane, quorate as it is shipped, a tenant who means ill and one who does not."""

import itertools
from collections.abc import Iterator

import pytest

from tests.e2e.harness.cluster import cluster
from tests.e2e.harness.volcano import install_volcano
from tests.hostile.harness.attacker import Attacker
from tests.hostile.harness.behind import Behind
from tests.hostile.harness.devices import make_devices
from tests.hostile.harness.faulty_server import Faulty
from tests.hostile.harness.neighbour import Neighbour
from tests.hostile.harness.target import SHIPPED_LEASE, Target
from tests.property.seeds import times
from tools.harness.scheduler import Quorate, Replicas
from tools.testing import wait_for

__all__ = ["cluster"]

NODES = times(1_000)
_numbers = itertools.count()


@pytest.fixture(scope="session")
def targets() -> list[Target]:
    """All schedulers of the session that run."""
    return []


@pytest.fixture(autouse=True)
def nothing_is_said(targets: list[Target]) -> Iterator[None]:
    """Read the logs after each test: what is wrong there is charged to the test that did it."""
    yield
    said = [line for one in targets for line in one.said_since()]
    assert not said, said


@pytest.fixture(scope="session")
def furnished(cluster):
    """The cluster with nodes, devices and Volcano's API."""
    install_volcano(cluster)
    cluster.create_nodes(NODES, annotations={}, labels=lambda i: {"zone": f"z{i % 4}"})
    make_devices(cluster, [f"node-{i}" for i in range(times(40))])
    return cluster


@pytest.fixture(scope="session")
def target(furnished, targets, tmp_path_factory) -> Iterator[Target]:
    """The scheduler, with the lease of the shipped manifests."""
    config = {"leaderElection": SHIPPED_LEASE, "profiles": [{"schedulerName": "plain"}]}
    running = Quorate(furnished, tmp_path_factory.mktemp("quorate"), config).start()
    made = Target(furnished, running, "quorate-system")
    targets.append(made)
    yield made
    code = running.stop()
    assert code == 0, f"it did not stop cleanly ({code}):\n{running.log()[-4000:]}"
    said = made.said_since()
    assert not said, said


@pytest.fixture(scope="session")
def neighbour(target, furnished) -> Iterator[Neighbour]:
    made = Neighbour(furnished, "neighbour")
    yield made
    made.remove()


@pytest.fixture
def attacker(furnished, neighbour) -> Iterator[Attacker]:
    """The tenant who means ill. At the end nothing of it is left, and the neighbour goes on."""
    made = Attacker(furnished, f"hostile-{next(_numbers)}")
    yield made
    made.remove()
    neighbour.start_gangs(1)


@pytest.fixture(scope="session")
def behind(furnished, targets, tmp_path_factory) -> Iterator[Behind]:
    """A scheduler of its own behind a proxy, with the lease of the shipped manifests."""
    name = "behind"
    with (
        Faulty(furnished.server, str(furnished.ca)) as proxy,
        Replicas(furnished, tmp_path_factory.mktemp(name), name) as replicas,
    ):
        running = replicas({"leaderElection": SHIPPED_LEASE}, through=proxy.url)
        wait_for(running.leads, "it leads")
        plain = Neighbour(furnished, "plain-behind", name, objects=False)
        neighbour = Neighbour(furnished, "neighbour-behind", name)
        targets.append(Target(furnished, running, name, errors=False))
        yield Behind(proxy, targets[-1], plain, neighbour)
        proxy.heal()
        plain.remove()
        neighbour.remove()
