"""NodePorts: a host port that the pod wants must be free on the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import EVERY_ADDRESS, HostPort, is_address_taken
from quorate.core.plan.filters.verdict import Refusal, Verdict, verdict_of

if TYPE_CHECKING:
    from quorate.core.room.room import Room

REFUSAL = Refusal("node(s) didn't have free ports for the requested pod ports", resolvable=True)
_LOOKS_PER_STEP = 200


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return on which nodes a port that the pod wants is taken; None: it wants none."""
    if not pod_class.shape.host_ports:
        return None
    return verdict_of(~taken(pod_class, room), REFUSAL)


def taken(pod_class: PodClass, room: Room, rows: Ints | None = None) -> Mask:
    """Return bool[m]: nodes (of these rows; None: all) where a pod holds a conflicting port.

    Those placed now are included.
    """
    mask, looks = np.zeros(len(room.free), np.bool_), 0
    for port in pod_class.shape.host_ports:
        if rows is None:
            there = room.snapshot.rows_with_port(port)
            mask[there] = True
            looks += len(there)
        else:
            mask[[row for row in rows.tolist() if room.snapshot.has_port(row, port)]] = True
    for where in room.ports.holding(pod_class.shape.host_ports):
        mask[where] = True
    room.ports.count(looks // _LOOKS_PER_STEP)
    return mask if rows is None else mask[rows]


def apart(wanted: Sequence[Sequence[HostPort]]) -> list[int]:
    """Return for each of these pods' ports a mask: bit i, if pod i cannot be on a node with it.

    Looks each port up among those of all pods: no two pods are compared.
    """
    at: dict[tuple[str, int], int] = {}
    exactly: dict[tuple[str, str, int], int] = {}
    for index, ports in enumerate(wanted):
        for protocol, ip, port in ports:
            at[protocol, port] = at.get((protocol, port), 0) | 1 << index
            exactly[protocol, ip, port] = exactly.get((protocol, ip, port), 0) | 1 << index
    found = []
    for ports in wanted:
        mask = 0
        for protocol, ip, port in ports:
            if ip == EVERY_ADDRESS:
                mask |= at[protocol, port]
            else:
                mask |= exactly[protocol, ip, port]
                mask |= exactly.get((protocol, EVERY_ADDRESS, port), 0)
        found.append(mask)
    return found


class PortsThere:
    """The host ports that are taken on one node.

    As kube-scheduler's it is a set: a port that is held twice is free when one of its pods goes.
    """

    def __init__(self) -> None:
        self._addresses: dict[tuple[str, int], set[str]] = {}

    def add(self, ports: Iterable[HostPort]) -> None:
        """Take ports."""
        for protocol, ip, port in ports:
            self._addresses.setdefault((protocol, port), set()).add(ip)

    def remove(self, ports: Iterable[HostPort]) -> None:
        """Give ports back."""
        for protocol, ip, port in ports:
            self._addresses.get((protocol, port), set()).discard(ip)

    def conflict(self, wanted: Iterable[HostPort]) -> bool:
        """Whether one of the wanted ports is taken."""
        return any(
            is_address_taken(ip, self._addresses.get((protocol, port), ()))
            for protocol, ip, port in wanted
        )
