"""Moves of everything else: namespaces, budgets, APIs, and the scheduler."""

from __future__ import annotations

from quorate.core.model import Namespace, PodSpec
from quorate.core.model.budgets import PodDisruptionBudget
from quorate.core.model.changes import BindFailure
from tests.property.worlds.moves import devices, storage
from tests.property.worlds.moves.pods import make_pod, some_pod
from tests.property.worlds.shapes import random_node
from tests.unit.core.terms import labels
from tests.unit.core.world import TEAM

OUTCOMES = ("ok", "ok", "ok", "ok", "ok", *BindFailure)


def decide(world, chance):
    world.decide(chance, chance.choice([0.0, 0.0, 0.0, 1.0, 5.0, 30.0]))


def pause(world, chance):
    """Time passes; what the shell has to write does not wait for so long."""
    after_s = chance.choice([2.5, 11.0, 70.0, 310.0])
    while world.commit.tasks and after_s > 60.0:
        world.commit.work(chance, faults=False)
    world.decide(chance, after_s)


def answer(world, chance):
    """The API server answers some binds."""
    for _ in range(chance.choice([1, 1, 2, 5])):
        if world.commit.jobs:
            outcome = chance.choice(OUTCOMES if world.setting.faults else ("ok",))
            world.commit.answer(chance.randrange(99), outcome, chance.random() < 0.5)


def answer_all(world, chance):
    """The API server does all that is asked of it."""
    while world.commit.jobs:
        world.commit.answer(0, "ok", chance.random() < 0.5)


def work(world, chance):
    """The shell carries out other writes."""
    for _ in range(chance.choice([1, 2, 9])):
        if world.commit.tasks:
            world.commit.work(chance, world.setting.faults)


def news(world, chance):
    world.server.flush(chance.choice([1, 2, 5, None]))


def renew(world, chance):
    """The leader renews its lease, and writes its journal there."""
    world.renew()


def restart(world, chance):
    world.restart(chance)


def late_binds(world, chance):
    """Binds of a leader that is gone arrive."""
    for job in world.late[:]:
        world.late.remove(job)
        world.commit.arrive(job)


def rebuild(world, chance):
    """The state is built again from the objects in memory, as after a defect."""
    world.rebuild()


def begin_storage(world, chance):
    storage.begin(world, chance)


def begin_devices(world, chance):
    devices.begin(world, chance)


def fill_nodes(world, chance):
    """Pods of another scheduler fill every node, but for a little."""
    for number in range(len(world.server.nodes), world.setting.nodes_max):
        world.server.put_node(random_node(chance, f"n{number}", world.setting.taste))
    for name, node in list(world.server.nodes.items()):
        cpu = dict(node.allocatable)["cpu"]
        requests = (("cpu", cpu if chance.random() < 0.9 else cpu - 1),)
        fields = {"scheduler": "others", "node": name, "phase": "Running"}
        make_pod(world, chance, spec=PodSpec(requests=requests), **fields)


def rest(world, chance):
    world.rest(chance)


def namespace(world, chance):
    name = chance.choice([TEAM, "dev"])
    said = chance.choice([None, (), (("env", "x"),), (("env", "y"),)])
    if said is None:
        world.server.remove("Namespace", name)
    else:
        world.server.put(Namespace(name, said))


def budget(world, chance):
    name = f"b{chance.randrange(2)}"
    if chance.random() < 0.2:
        world.server.remove("PodDisruptionBudget", name, TEAM)
    else:
        selects = labels(app=chance.choice(["web", "db"]))
        world.server.put(PodDisruptionBudget(TEAM, name, selects, chance.choice([0, 0, 1])))


def served(world, chance):
    """The API of a dialect is installed or goes."""
    world.server.put_served(chance.choice(["x-k8s", "sigs", "volcano"]), chance.random() < 0.7)


def bind_foreign(world, chance):
    """Another scheduler binds a pod of its own, whatever room is left there."""
    pod = some_pod(world, chance, lambda pod: pod.scheduler == "others" and not pod.node)
    if pod is not None and world.server.nodes:
        world.server.edit_pod(pod.uid, node=chance.choice(sorted(world.server.nodes)))


MOVES = {
    move.__name__: move
    for move in (
        decide,
        pause,
        answer,
        answer_all,
        work,
        news,
        renew,
        restart,
        late_binds,
        rebuild,
        begin_storage,
        begin_devices,
        fill_nodes,
        rest,
        namespace,
        budget,
        served,
        bind_foreign,
    )
}
