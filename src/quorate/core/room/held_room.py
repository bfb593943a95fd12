"""The room without what is held for others: what one gang may use.

In: the room, the holds, a gang. Out: a smaller room, and holds that stand no more. Called by
``turn.cycle`` and ``explain``, so that both see the same room, and by ``scheduler``.

A hold is withheld from every gang of equal or lower priority but its own. A gang of higher priority
takes held room only when it does not fit without it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.holds import Hold, Holds, NotHeld
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.room.room import Room

_WITHHELD = re.compile(r"(node \S+ holds|\d+ nodes hold) room for gang ")
_NODES_MAX = 5
"""So many nodes are named in a sentence."""


def withheld_from(gang: GangEntry, holds: Holds) -> list[list[Hold]]:
    """Return what is withheld from a gang: at first, and (if that is less) when it does not fit."""
    others = [hold for hold in holds if hold.key != gang.key]
    strong = [hold for hold in others if hold.priority >= gang.priority]
    return [others] if len(strong) == len(others) else [others, strong]


def without(room: Room, holds: Sequence[Hold]) -> Room:
    """Return the room without what is held; the same room when nothing is."""
    if not holds:
        return room
    left = room.copy()
    for pod_class, pods in pods_of(holds, room):
        left.withhold(pod_class, pods)
    return left


def pods_of(holds: Sequence[Hold], room: Room) -> list[tuple[PodClass, Ints]]:
    """Return for each class int64[n]: for how many pods of it each node holds room."""
    rows = room.snapshot.table.rows
    found: dict[int, tuple[PodClass, Ints]] = {}
    for hold in holds:
        row = rows.get(hold.node)
        if row is None:
            continue
        if hold.pod_class.id not in found:
            found[hold.pod_class.id] = hold.pod_class, np.zeros(len(room.free), np.int64)
        found[hold.pod_class.id][1][row] += 1
    return list(found.values())


def end_taken(holds: Holds, room: Room) -> bool:
    """End the holds whose room is not there any more; return whether there was one.

    Pods of other schedulers, and gangs of higher priority, take it; or the node has shrunk.
    """
    rows = room.snapshot.table.rows
    left: dict[int, list[int]] = {}

    def is_taken(hold: Hold) -> bool:
        row = rows.get(hold.node)
        if row is None:
            return True
        free = left.setdefault(row, room.free[row].tolist())
        demands, ports = hold.pod_class.demands, hold.pod_class.shape.host_ports
        if hold.pod_class.missing or any(free[column] < amount for column, amount in demands):
            return True
        if any(room.has_port(row, port) for port in ports):
            return True
        for column, amount in demands:
            free[column] -= amount
        return False

    return holds.end_if(is_taken)


def end_unusable(holds: Holds, room: Room, mask_of: Callable[[PodClass, Room], Mask]) -> None:
    """End the holds on nodes that take no such pod any more: cordoned, tainted, relabelled.

    ``mask_of`` returns bool[n]: the nodes whose attributes do for a class.
    """
    rows = room.snapshot.table.rows

    def is_unusable(hold: Hold) -> bool:
        row = rows.get(hold.node)
        return row is None or not mask_of(hold.pod_class, room)[row]

    holds.end_if(is_unusable)


def withheld_words(withheld: Sequence[Hold]) -> str:
    """Say what is withheld from a gang: "2 nodes hold room for gang a/b until 12:03:04 UTC"."""
    nodes = sorted({hold.node for hold in withheld})
    gangs = sorted({hold.key for hold in withheld})
    who = f"node {nodes[0]} holds" if len(nodes) == 1 else f"{len(nodes)} nodes hold"
    others = len(gangs) - 1
    more = f" and {others} other{'s' * (others > 1)}" if others else ""
    return f"{who} room for gang {gangs[0]}{more} until {_time(withheld)}"


def speaks_of_holds(sentence: str) -> bool:
    """Tell whether a gang's sentence is made of ``withheld_words``."""
    return _WITHHELD.search(sentence) is not None


def held_for(holds: Sequence[Hold], not_held: NotHeld | None = None) -> str:
    """Say what is held for a gang, and what is not because of a bound; empty when nothing is."""
    if not holds:
        return _not_held_words(not_held) if not_held is not None else ""
    nodes = Counter(hold.node for hold in holds)
    names = [f"{name} ({n} pods)" if n > 1 else name for name, n in sorted(nodes.items())]
    more = f" and {len(names) - _NODES_MAX} more" if len(names) > _NODES_MAX else ""
    what = "1 replacement" if len(holds) == 1 else f"{len(holds)} replacements"
    where = f"node{'s' * (len(names) > 1)} {', '.join(names[:_NODES_MAX])}{more}"
    words = f"room for {what} is held until {_time(holds)} on {where}"
    cut = next((hold for hold in holds if hold.cut_to_s is not None), None)
    if cut is not None:
        words += f"; {cut.asked_s:g} s were asked for, and {cut.cut_to_s:g} are the most"
    if not_held is not None:
        most = f"{not_held.most} are the most for a {not_held.whose}"
        words += f"; {not_held.slots} more are not held: {most}"
    return words


def _not_held_words(not_held: NotHeld) -> str:
    members = "1 lost member" if not_held.slots == 1 else f"{not_held.slots} lost members"
    return f"no room is held for {members}: {not_held.most} are the most for a {not_held.whose}"


def _time(holds: Sequence[Hold]) -> str:
    """Return when the last of them ends."""
    end_s = max(hold.until_s for hold in holds)
    return f"{datetime.fromtimestamp(end_s, tz=UTC):%H:%M:%S} UTC"
