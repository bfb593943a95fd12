"""Moves of nodes: they come, go, flap, shrink, grow, and are relabelled, tainted and cordoned."""

from __future__ import annotations

import msgspec

from quorate.core.model import Taint
from tests.property.worlds.shapes import GPU, random_labels, random_node, random_taints

replace = msgspec.structs.replace


def some_node(world, chance):
    names = sorted(world.server.nodes)
    return world.server.nodes[chance.choice(names)] if names else None


def node(world, chance):
    """A node comes, or is another one by the same name."""
    name = f"n{chance.randrange(world.setting.nodes_max)}"
    world.server.put_node(random_node(chance, name, world.setting.taste))


def first_nodes(world, chance):
    """Several nodes are there from the beginning."""
    most = world.setting.nodes_max
    for number in range(chance.randint((most + 1) // 2, most)):
        world.server.put_node(random_node(chance, f"n{number}", world.setting.taste))


def lose_node(world, chance):
    found = some_node(world, chance)
    if found is not None:
        world.server.remove_node(found.name)


def flap(world, chance):
    """A node goes and comes back as it was, or is tainted and untainted."""
    found = some_node(world, chance)
    if found is None:
        return
    if chance.random() < 0.5:
        world.server.remove_node(found.name)
    else:
        unreachable = Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")
        world.server.put_node(replace(found, taints=(unreachable,)))
    if chance.random() < 0.4:
        world.decide(chance, 0.0)
    world.server.put_node(found)


def relabel_node(world, chance):
    found = some_node(world, chance)
    if found is not None:
        labels = random_labels(chance, found.name, world.setting.taste)
        world.server.put_node(replace(found, labels=labels))


def drop_label(world, chance):
    found = some_node(world, chance)
    if found is not None and found.labels:
        gone = chance.choice(found.labels)
        left = tuple(one for one in found.labels if one != gone)
        world.server.put_node(replace(found, labels=left))


def retaint(world, chance):
    found = some_node(world, chance)
    if found is not None:
        often = replace(world.setting.taste, taints=0.6)
        world.server.put_node(replace(found, taints=random_taints(chance, often)))


def cordon(world, chance):
    found = some_node(world, chance)
    if found is not None:
        world.server.put_node(replace(found, unschedulable=not found.unschedulable))


def scale_node(world, chance):
    """A node shrinks or grows, in one resource."""
    found = some_node(world, chance)
    if found is None:
        return
    has = dict(found.allocatable)
    name = chance.choice(["cpu", "cpu", "pods", "memory", GPU])
    has[name] = max(0, has.get(name, 0) + chance.choice([-2, -1, 1, 1, 2]))
    if chance.random() < 0.1:
        has.pop(name, None)
    has.setdefault("pods", 0)
    world.server.put_node(replace(found, allocatable=tuple(sorted(has.items()))))


MOVES = {
    move.__name__: move
    for move in (
        node,
        first_nodes,
        lose_node,
        flap,
        relabel_node,
        drop_label,
        retaint,
        cordon,
        scale_node,
    )
}
