"""What ``Preemptable`` says is what adding up all bound pods says, whatever was asked before."""

import random

import numpy as np
import pytest
from hypothesis import given

from quorate.core.cluster.nodes.encoding import PODS, PodClasses, Resources
from quorate.core.cluster.priorities.preemptable import Preemptable
from quorate.core.model import PodSpec, policy
from tests.property.seeds import drawn, seeds

PRIORITIES = (-5, 0, 3, 7, 2**31)


def classes(chance):
    made = PodClasses(Resources())
    names = ["cpu", "memory", "example.com/a", "example.com/b", "example.com/c"]
    specs = [
        PodSpec(tuple(sorted((n, chance.randint(0, 5)) for n in chance.sample(names, 3))))
        for _ in range(4)
    ]
    return [made.of(spec) for spec in specs]


@drawn(150)
@given(seeds)
def test_sums_kept_by_change_equal_a_recount(seed):
    chance = random.Random(seed)
    rows, kinds = chance.randint(1, 6), classes(chance)
    counted, pods = Preemptable(rows), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "PREEMPTABLE_ROWS_FEW", chance.choice([0, 2, 64]))
        patch.setattr(policy, "PREEMPTABLE_SUMS_MAX", chance.choice([1, 2, 16]))
        for _ in range(chance.randint(1, 80)):
            move = chance.random()
            if move < 0.45:
                pods.append(
                    (chance.randrange(rows), chance.choice(PRIORITIES), *chance.sample(kinds, 1))
                )
                counted.take(*pods[-1])
            elif move < 0.7 and pods:
                counted.release(*pods.pop(chance.randrange(len(pods))))
            elif move < 0.75:
                rows += chance.randint(1, 3)
                counted.grow(rows)
            else:
                asked = chance.sample(range(rows), chance.randint(0, rows))
                priority, width = chance.choice(PRIORITIES), chance.choice([PODS + 1, 5, 9])
                expected = np.zeros((len(asked), width), np.int64)
                for row, other, kind in pods:
                    for column, amount in kind.demands:
                        if other < priority and row in asked and column < width:
                            expected[asked.index(row), column] += amount
                found = counted.below(priority, np.array(asked), width)
                assert found.dtype == np.int64
                assert np.array_equal(found, expected)
                has = counted.has_below(priority, asked)
                assert has.tolist() == (expected[:, PODS] > 0).tolist()
            assert counted.lowest == min((priority for _, priority, _ in pods), default=None)
    for one in pods:
        counted.release(*one)
    assert not counted._taken
    assert not counted._pods
