"""Gangs with a minimum for each task start exactly when some choice of members allows it."""

import random
from collections import Counter

from quorate.core.model import Membership
from tests.property.seeds import SEED
from tests.unit.core.world import VOLCANO, World, binds_of, key

JOB = key("job", VOLCANO)
TASKS = ("a", "b", "c", "")


def fits(pods, sizes, need, least):
    """Whether some of the pods, as ``(task, cpu)``, fit onto nodes of these sizes as a quorum."""

    def place(index, free, placed):
        tasks = Counter(task for task, _ in placed)
        if len(placed) >= need and all(tasks[task] >= count for task, count in least):
            return True
        if index == len(pods):
            return False
        task, cpu = pods[index]
        for node in {size: i for i, size in enumerate(free) if size >= cpu}.values():
            left = [size - cpu * (i == node) for i, size in enumerate(free)]
            if place(index + 1, left, [*placed, (task, cpu)]):
                return True
        return place(index + 1, free, placed)

    return place(0, list(sizes), [])


def test_a_gang_with_tasks_is_placed_exactly_when_a_quorum_fits():
    chance = random.Random(SEED)
    placed = partly = 0
    for number in range(600):
        pods = [(chance.choice(TASKS), chance.randint(1, 3)) for _ in range(chance.randint(1, 7))]
        sizes = [chance.randint(1, 5) for _ in range(chance.randint(1, 4))]
        least = tuple((task, chance.randint(1, 2)) for task in "abc" if chance.random() < 0.5)
        minimum = max(1, sum(count for _, count in least)) + chance.choice((0, 0, 1, 2))
        w = World()
        for index, size in enumerate(sizes):
            w.node(f"n{index}", cpu=size)
        w.object("job", minimum, dialect=VOLCANO, min_by_task=least)
        for index, (task, cpu) in enumerate(pods):
            w.pod(f"p{index}", JOB, cpu=cpu)
            w.edit(f"p{index}", membership=Membership(JOB, task=task))
        plan = w.decide()
        where = SEED, number, pods, sizes, least, minimum
        assert bool(plan.gangs) == fits(pods, sizes, minimum, least), where
        if not plan.gangs:
            continue
        tasks = Counter(pods[int(bind.name[1:])][0] for bind in binds_of(plan))
        assert all(tasks[task] >= count for task, count in least), where
        [gang] = plan.gangs
        first = Counter(pods[int(bind.name[1:])][0] for bind in gang.binds[: gang.first])
        for last in gang.binds[gang.first :]:  # whichever of them comes first makes it quorate
            there = first + Counter([pods[int(last.name[1:])][0]])
            assert there.total() >= minimum, where
            assert all(there[task] >= count for task, count in least), where
        w.settle(plan)
        assert w.cluster.gangs[JOB].started, where
        placed += 1
        partly += len(gang.binds) < len(pods)
    assert min(placed, partly) > 20
