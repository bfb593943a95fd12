"""What bound pods take, by priority: sparse, and kept as arrays for few priorities that ask."""

import numpy as np
import pytest

from quorate.core.cluster.nodes.encoding import PODS, PodClasses, Resources
from quorate.core.cluster.priorities.preemptable import Preemptable
from quorate.core.model import Owner, PodSpec, policy
from quorate.core.model.profile import KUBE_SCHEDULER
from tests.unit.core.world import World

REPLICAS = Owner("apps/v1", "ReplicaSet", "web")
ONE = PodClasses(Resources()).of(PodSpec((("cpu", 5),)))


@pytest.mark.parametrize(("asking", "kept"), [(2, 2), (3, 3), (4, 3)])
def test_sums_are_kept_for_so_many_priorities_and_the_longest_unasked_goes(
    asking, kept, monkeypatch
):
    monkeypatch.setattr(policy, "PREEMPTABLE_SUMS_MAX", 3)
    monkeypatch.setattr(policy, "PREEMPTABLE_ROWS_FEW", 0)
    counted = Preemptable(4)
    counted.take(1, 0, ONE)
    for priority in range(1, asking + 1):
        counted.below(1, np.arange(4), 4)
        assert counted.below(priority, np.arange(4), 4)[1, PODS] == 1
    assert len(counted._sums) == kept
    assert {1, asking} <= counted._sums.keys()


@pytest.mark.parametrize(("rows", "kept"), [(2, 0), (3, 0), (4, 1)])
def test_nothing_is_kept_for_a_question_about_few_rows(rows, kept, monkeypatch):
    monkeypatch.setattr(policy, "PREEMPTABLE_ROWS_FEW", 3)
    counted = Preemptable(4)
    counted.take(1, 0, ONE)
    assert counted.below(9, np.arange(rows), 4)[1, 0] == 5
    assert len(counted._sums) == kept


def test_a_labelled_pod_that_begins_to_terminate_while_an_important_one_waits():
    w = World(scheduler_names=("kube",), profiles=(("kube", KUBE_SCHEDULER),))
    w.node("n0", cpu=4)
    w.running("low", "n0", priority=0)
    w.pod("big", cpu=64, priority=10, scheduler="kube")
    assert w.cycle() == {}
    w.pod(
        "web-0",
        labels={"app": "web"},
        scheduler="kube",
        owner=REPLICAS,
    )
    assert w.cycle(after_s=1) == {"web-0": "n0"}
    assert w.cycle(after_s=1) == {}
    w.edit("web-0", terminating=True)
    assert w.cycle(after_s=1) == {}
