"""The real control plane, quorate as it is shipped, a tenant who means ill and one who does not."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.harness.cluster import cluster
from tests.e2e.harness.scheduler import Quorate, Replicas
from tests.e2e.harness.volcano import install_volcano
from tests.e2e.harness.world import wait_for
from tests.hostile.harness import figures
from tests.hostile.harness.attacker import Attacker
from tests.hostile.harness.behind import Behind
from tests.hostile.harness.devices import make_devices
from tests.hostile.harness.faulty_server import Faulty
from tests.hostile.harness.neighbour import Neighbour
from tests.hostile.harness.target import SHIPPED_LEASE, Target
from tests.property.seeds import SEED

__all__ = ["cluster"]

LONG = os.environ.get("QUORATE_HOSTILE_LONG", "") not in ("", "0")
NODES = 2_000 if LONG else 200
_numbers = itertools.count()


def pytest_report_header() -> str:
    """Say the seed, which draws the random objects and the order of the faults."""
    return f"QUORATE_SEED={SEED}"


def pytest_terminal_summary(terminalreporter) -> None:
    """Say what was measured."""
    if said := figures.lines():
        terminalreporter.section("hostile")
        for line in said:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def furnished(cluster):
    """The cluster with nodes, devices and Volcano's API."""
    install_volcano(cluster)
    cluster.create_nodes(NODES, annotations={}, labels=lambda i: {"zone": f"z{i % 4}"})
    make_devices(cluster, [f"node-{i}" for i in range(64 if LONG else 8)])
    return cluster


@pytest.fixture(scope="session")
def target(furnished, tmp_path_factory) -> Iterator[Target]:
    """The scheduler, with the lease of the shipped manifests."""
    config = {"leaderElection": SHIPPED_LEASE, "profiles": [{"schedulerName": "plain"}]}
    running = Quorate(furnished, tmp_path_factory.mktemp("quorate"), config).start()
    made = Target(furnished, running, "quorate-system")
    yield made
    code = running.stop()
    assert code == 0, f"it did not stop cleanly ({code}):\n{running.log()[-4000:]}"
    assert not running.complaints()


@pytest.fixture(scope="session")
def neighbour(target, furnished) -> Iterator[Neighbour]:
    made = Neighbour(furnished, "neighbour")
    made.median_s(3)  # what is first is slower
    yield made
    made.remove()


@pytest.fixture
def attackers(furnished) -> Iterator[Callable[[], Attacker]]:
    """Make attackers, each with a namespace of its own."""
    with ExitStack() as stack:

        def make() -> Attacker:
            made = Attacker(furnished, f"hostile-{next(_numbers)}")
            stack.callback(made.remove)
            return made

        yield make


@pytest.fixture(scope="session")
def behind(furnished, tmp_path_factory) -> Iterator[Behind]:
    """A scheduler of its own behind a proxy, with the lease of the shipped manifests."""
    name = "behind"
    with (
        Faulty(furnished.server, str(furnished.ca)) as proxy,
        Replicas(furnished, tmp_path_factory.mktemp(name), name) as replicas,
    ):
        running = replicas({"leaderElection": SHIPPED_LEASE}, through=proxy.url)
        wait_for(running.leads, "it leads", 40)
        plain = Neighbour(furnished, "plain-behind", name, objects=False)
        neighbour = Neighbour(furnished, "neighbour-behind", name)
        yield Behind(proxy, Target(furnished, running, name), plain, neighbour)
        proxy.heal()
        plain.remove()
        neighbour.remove()
