"""kube-scheduler beside quorate, both filling the same nodes, with kubelets that refuse."""

from collections.abc import Iterator

import pytest

from tools.harness.faults import contend_with_kube_scheduler

pytestmark = pytest.mark.explore

ROUNDS = 5


@pytest.fixture
def rival(cluster) -> Iterator[None]:
    cluster.start_kube_scheduler().close()
    yield
    cluster.stop_kube_scheduler()


@pytest.mark.usefixtures("rival")
def test_gangs_are_whole_or_wait_beside_kube_scheduler_on_the_same_nodes(apart, beside, chance):
    seen = contend_with_kube_scheduler(apart, beside, chance, ROUNDS)
    slowest_s = max(seen.repaired_s, default=0.0)
    print(
        f"{seen.rounds} rounds: kubelets refused {seen.ours} of our pods and {seen.foreign} foreign"
        f" ones; the gangs were whole again or undone within {slowest_s:.1f} s"
    )
