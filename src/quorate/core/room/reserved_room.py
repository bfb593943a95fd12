"""The room that one gang may use: the room less the reservations of other gangs.

In: the room, the reservations, a gang. Out: a smaller room, and reservations that ended. Called
by ``turn.cycle``, ``lifecycle.advancing`` and ``words``.
A gang of equal or lower priority may not use another gang's reservation. A gang of higher priority
uses it only when it does not fit otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.reservation import NotReserved, Reservation
from quorate.core.cluster.gangs.reservations import Reservations
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy
from quorate.core.room.room import Room


def withheld_from(gang: GangEntry, reservations: Reservations) -> list[list[Reservation]]:
    """Return the reservations withheld from a gang, then (if fewer) those of a second attempt."""
    others = [reservation for reservation in reservations if reservation.key != gang.key]
    strong = [reservation for reservation in others if reservation.priority >= gang.priority]
    return [others] if len(strong) == len(others) else [others, strong]


def without(room: Room, reservations: Sequence[Reservation]) -> Room:
    """Return the room less these reservations; the same object when there are none."""
    if not reservations:
        return room
    left = room.copy()
    for pod_class, pods in pods_of(reservations, room):
        left.withhold(pod_class, pods)
    return left


def pods_of(reservations: Sequence[Reservation], room: Room) -> list[tuple[PodClass, Ints]]:
    """Return for each class int64[n]: the pods of it for which each node holds room."""
    rows = room.snapshot.table.rows
    found: dict[int, tuple[PodClass, Ints]] = {}
    for reservation in reservations:
        row = rows.get(reservation.node)
        if row is None:
            continue
        if reservation.pod_class.id not in found:
            found[reservation.pod_class.id] = (
                reservation.pod_class,
                np.zeros(len(room.free), np.int64),
            )
        found[reservation.pod_class.id][1][row] += 1
    return list(found.values())


def end_taken(reservations: Reservations, room: Room) -> bool:
    """End the reservations whose room is gone; return whether any ended.

    Other schedulers' pods or gangs of higher priority took the room, or the node shrank.
    """
    rows = room.snapshot.table.rows
    left: dict[int, list[int]] = {}

    def is_taken(reservation: Reservation) -> bool:
        row = rows.get(reservation.node)
        if row is None:
            return True
        free = left.setdefault(row, room.free[row].tolist())
        demands, ports = reservation.pod_class.demands, reservation.pod_class.spec.host_ports
        if reservation.pod_class.missing or any(
            free[column] < amount for column, amount in demands
        ):
            return True
        if any(room.has_port(row, port) for port in ports):
            return True
        for column, amount in demands:
            free[column] -= amount
        return False

    return reservations.end_if(is_taken)


def end_unusable(
    reservations: Reservations, room: Room, mask_of: Callable[[PodClass, Room], Mask]
) -> None:
    """End the reservations on nodes that now refuse such a pod: cordoned, tainted, relabelled.

    ``mask_of`` returns bool[n]: the nodes whose attributes suit a class.
    """
    rows = room.snapshot.table.rows

    def is_unusable(reservation: Reservation) -> bool:
        row = rows.get(reservation.node)
        return row is None or not mask_of(reservation.pod_class, room)[row]

    reservations.end_if(is_unusable)


def withheld_words(withheld: Sequence[Reservation]) -> str:
    """Return, as text: "2 nodes hold room for gang a/b until 12:03:04 UTC"."""
    nodes = sorted({reservation.node for reservation in withheld})
    gangs = sorted({reservation.key for reservation in withheld})
    who = f"node {nodes[0]} holds" if len(nodes) == 1 else f"{len(nodes)} nodes hold"
    others = len(gangs) - 1
    more = f" and {others} other{'s' * (others > 1)}" if others else ""
    return f"{who} room for gang {gangs[0]}{more} until {_time(withheld)}"


def reserved_for(
    reservations: Sequence[Reservation], not_reserved: NotReserved | None = None
) -> str:
    """Say what is reserved for a gang, and what a bound refused it; "" when nothing is."""
    if not reservations:
        return _not_reserved_words(not_reserved) if not_reserved is not None else ""
    nodes = Counter(reservation.node for reservation in reservations)
    names = [f"{name} ({n} pods)" if n > 1 else name for name, n in sorted(nodes.items())]
    named = policy.RESERVED_NODES_NAMED_MAX
    more = f" and {len(names) - named} more" if len(names) > named else ""
    what = "1 replacement" if len(reservations) == 1 else f"{len(reservations)} replacements"
    where = f"node{'s' * (len(names) > 1)} {', '.join(names[:named])}{more}"
    words = f"room for {what} is held until {_time(reservations)} on {where}"
    cut = next(
        (reservation for reservation in reservations if reservation.cut_to_s is not None), None
    )
    if cut is not None:
        words += f"; {cut.asked_s:g} s were asked for, and {cut.cut_to_s:g} are the most"
    if not_reserved is not None:
        most = f"{not_reserved.most} are the most for a {not_reserved.whose}"
        words += f"; {not_reserved.slots} more are not held: {most}"
    return words


def held_until_s(
    reservations: Sequence[Reservation], not_reserved: NotReserved | None = None
) -> float:
    """Return when what ``reserved_for`` says is over, in epoch seconds; 0: it says nothing."""
    if not reservations:
        return not_reserved.until_s if not_reserved is not None else 0.0
    return max(reservation.until_s for reservation in reservations)


def _not_reserved_words(not_reserved: NotReserved) -> str:
    members = "1 lost member" if not_reserved.slots == 1 else f"{not_reserved.slots} lost members"
    most = f"{not_reserved.most} are the most for a {not_reserved.whose}"
    return f"no room is held for {members}: {most}"


def _time(reservations: Sequence[Reservation]) -> str:
    """Return the time when the last of the reservations ends."""
    end_s = held_until_s(reservations)
    return f"{datetime.fromtimestamp(end_s, tz=UTC):%H:%M:%S} UTC"
