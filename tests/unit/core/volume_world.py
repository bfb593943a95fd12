"""Gangs with volumes in the tiny world, and the room of one cycle."""

import numpy as np

from quorate.core.model import ClaimUse
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.turn.cycle import members_of
from tests.unit.core.storage_world import StorageWorld

MANY = ("ReadWriteMany",)


def world(*nodes, cpu=8):
    w = StorageWorld()
    for name in nodes or ("n0", "n1", "n2"):
        w.labelled_node(name, cpu=cpu)
    return w


def room_of(w):
    return Room(w.cluster.snapshot(), RuleCache())


def classes_of(w, which):
    return members_of(w.cluster.gangs[which], w.cluster)


def class_of(w, which):
    [pod_class] = classes_of(w, which)
    return pod_class


def gang(w, name, pods, *claims, **more):
    """Add a gang whose pods all use the same claims."""
    which = w.object(name, pods)
    for index in range(pods):
        w.pod(f"{name}-{index}", which, claims=tuple(map(ClaimUse, claims)), **more)
    return which


def bound(w, claim, *, modes=MANY, volume="", **fields):
    w.volume(volume or f"pv-{claim}", phase="Bound", **fields)
    w.claim(claim, access_modes=modes, volume=volume or f"pv-{claim}", bound=True)


def on_rows(w, room, **pods):
    placed = np.zeros(len(room.free), np.int64)
    for name, count in pods.items():
        placed[w.cluster.nodes.rows[name]] = count
    return placed


def by_node(w, array):
    return {name: int(array[row]) for name, row in w.cluster.nodes.rows.items()}
