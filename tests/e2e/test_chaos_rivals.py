"""kube-scheduler beside quorate, both filling the same nodes, with kubelets that refuse."""

from collections.abc import Iterator

import pytest

from tests.e2e import promises
from tests.e2e.kubelets import Kubelets
from tests.e2e.world import pod_group, wait_for
from tools.controlplane import Cluster

ROUNDS = 5
NODES, CPU = 8, 16
SIZE = 30
FOREIGN = 40
"""Three gangs and the foreign pods want 130 cpus, of 128."""


@pytest.fixture
def rival(cluster) -> Iterator[None]:
    if not isinstance(cluster, Cluster):
        pytest.skip("kube-scheduler runs on the real control plane only")
    cluster.start_kube_scheduler().close()
    yield
    cluster.stop_kube_scheduler()


def test_gangs_are_whole_or_wait_beside_kube_scheduler_on_the_same_nodes(
    apart, beside, rival, chance
):
    nodes = [f"{apart.namespace}-{i}" for i in range(NODES)]
    scheduler = beside()
    wait_for(scheduler.leads, "it leads")
    with Kubelets(apart.cluster, nodes, CPU) as kubelets:
        slowest_s = 0.0
        for number in range(ROUNDS):
            gangs = [f"g{number}-{i}" for i in range(3)]
            owners = [promises.replica_set(g, SIZE, apart.scheduler) for g in gangs]
            foreign = promises.replica_set(
                f"foreign{number}", FOREIGN, "default-scheduler", gang=False
            )
            apart.apply(*(pod_group(g, SIZE, scheduleTimeoutSeconds=5) for g in gangs))
            owners.append(foreign)
            chance.shuffle(owners)
            apart.apply(*owners)
            took_s = promises.wait_kept(
                apart, gangs, whole=2, size=SIZE, owned=True, timeout_s=40.0
            )
            slowest_s = max(slowest_s, took_s)
            promises.remove_load(apart)
        print(f"{len(kubelets.refused)} refusals in {ROUNDS} rounds, settled in {slowest_s:.1f} s")
    assert not scheduler.violations()
