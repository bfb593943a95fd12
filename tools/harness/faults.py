"""Two faults that are also figures: kills in mid-commit, and kube-scheduler on the same nodes.

Called by the tests of chaos, a few times, and by ``bench.reliability_bench``, as often as one asks.
Each fails with what is wrong as soon as a promise is broken.
"""

import random
import time
from dataclasses import dataclass, field

from tools.harness import invariants
from tools.harness.kubelets import Kubelets
from tools.harness.scheduler import Replicas
from tools.harness.world import World
from tools.objects import pod_group
from tools.testing import wait_for


def clear_lease(world: World, namespace: str = "") -> None:
    """Spare the test the crashed leader's long lease, as its expiry would.

    Without a ``namespace`` it is the one that is named as the world's scheduler.
    """
    namespace = namespace or world.scheduler
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/quorate"
    world.cluster.api("DELETE", path)


@dataclass
class Kills:
    """What became of kills in mid-commit."""

    kills: int = 0
    torn: int = 0  #: that found a gang bound in part
    slowest_s: float = 0.0  #: from the successor's leading until all was whole or undone


def kill_in_mid_commit(
    world: World, replicas: Replicas, chance: random.Random, kills: int
) -> Kills:
    """Kill the scheduler so often while three gangs commit, of which two fit."""
    invariants.room_for_two(world)
    result = Kills(kills)
    for kill in range(kills):
        gangs = invariants.groups(world, str(kill))
        scheduler = replicas()
        wait_for(scheduler.leads, "it leads")
        invariants.members(world, gangs)
        time.sleep(chance.uniform(0.0, 0.1))
        scheduler.kill()
        bound = invariants.counts(world, gangs).values()
        result.torn += any(0 < count < invariants.MEMBERS for count in bound)
        clear_lease(world)
        successor = replicas()
        wait_for(successor.leads, "the successor leads")
        took_s = invariants.wait_kept(world, gangs, whole=2)
        result.slowest_s = max(result.slowest_s, took_s)
        assert not successor.violations()
        assert successor.stop() == 0
        invariants.remove_load(world)
    return result


@dataclass
class Refusals:
    """What became of our pods that kubelets refused."""

    rounds: int = 0
    ours: int = 0
    foreign: int = 0
    repaired_s: list[float] = field(default_factory=list)
    """For each of ours: from the refusal until its gang ran whole, or held nothing."""


RIVAL_NODES, RIVAL_CPU = 8, 16
RIVAL_SIZE, RIVAL_FOREIGN = 30, 40
"""Three gangs and the foreign pods want 130 cpus, of 128."""


def contend_with_kube_scheduler(
    world: World, replicas: Replicas, chance: random.Random, rounds: int
) -> Refusals:
    """Have both schedulers fill the same nodes at the same time; kube-scheduler runs already."""
    scheduler = replicas()
    wait_for(scheduler.leads, "it leads")
    result = Refusals(rounds)
    nodes = [f"{world.namespace}-{i}" for i in range(RIVAL_NODES)]
    with Kubelets(world.cluster, nodes, RIVAL_CPU) as kubelets:
        for number in range(rounds):
            gangs = [f"g{number}-{i}" for i in range(3)]
            world.apply(*(pod_group(g, RIVAL_SIZE, scheduleTimeoutSeconds=5) for g in gangs))
            owners = [invariants.replica_set(g, RIVAL_SIZE, world.scheduler) for g in gangs]
            foreign = "default-scheduler"
            name = f"foreign{number}"
            owners.append(invariants.replica_set(name, RIVAL_FOREIGN, foreign, gang=False))
            chance.shuffle(owners)
            world.apply(*owners)
            _follow(world, kubelets, gangs, result)
            invariants.remove_load(world)
        result.ours = sum(gang.startswith("g") for gang, _ in kubelets.refused)
        result.foreign = len(kubelets.refused) - result.ours
    assert not scheduler.violations()
    return result


def _follow(world: World, kubelets: Kubelets, gangs: list[str], result: Refusals) -> None:
    """Wait until all promises hold; note when each gang with a refused member is at rest again."""
    open_s: dict[str, list[float]] = {gang: [] for gang in gangs}
    sizes = dict.fromkeys(gangs, RIVAL_SIZE)
    seen = len(kubelets.refused)
    deadline_s = time.monotonic() + 90.0  # several attempts of 5 s each may fail
    while True:
        looked_s = time.monotonic()
        bound = invariants.counts(world, gangs)
        while seen < len(kubelets.refused) and kubelets.refused[seen][1] < looked_s:
            gang, refused_s = kubelets.refused[seen]
            open_s.get(gang, []).append(refused_s)
            seen += 1
        for gang, refused in open_s.items():
            if bound[gang] in (0, RIVAL_SIZE):
                result.repaired_s += [looked_s - refused_s for refused_s in refused]
                refused.clear()
        wrong = invariants.broken(world, sizes, owned=True)
        whole = sum(count == RIVAL_SIZE for count in bound.values())
        if whole >= 2 and not wrong and not any(open_s.values()):
            return
        assert looked_s < deadline_s, f"{bound}; {wrong}"
        time.sleep(0.1)
