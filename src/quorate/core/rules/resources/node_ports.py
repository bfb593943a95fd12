"""NodePorts: a host port that the pod wants must be free on the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import EVERY_ADDRESS, HostPort, is_address_taken
from quorate.core.model.steps import costs
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Refused, Verdict, verdict_of

REFUSAL = Refusal("node(s) didn't have free ports for the requested pod ports", resolvable=True)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return on which nodes a port that the pod wants is taken; None: it wants none."""
    if not pod_class.spec.host_ports:
        return None
    return verdict_of(~taken(pod_class, room), REFUSAL)


def taken(pod_class: PodClass, room: Room, rows: Ints | None = None) -> Mask:
    """Return bool[m]: nodes (of these rows; None: all) where a pod holds a conflicting port.

    Those placed now are included.
    """
    mask, looks = np.zeros(len(room.free), np.bool_), 0
    for port in pod_class.spec.host_ports:
        if rows is None:
            there = room.snapshot.rows_with_port(port)
            mask[there] = True
            looks += len(there)
        else:
            mask[[row for row in rows.tolist() if room.snapshot.has_port(row, port)]] = True
    for where in room.ports.holding(pod_class.spec.host_ports):
        mask[where] = True
    room.ports.count(looks // costs.PORT_LOOKS_PER_STEP)
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


class PortsOn:
    """The host ports that are taken on one node, for a trial.

    As kube-scheduler's it is a set: a port that is taken twice is free when one of its pods goes.
    """

    def __init__(self) -> None:
        self._addresses: dict[tuple[str, int], set[str]] = {}

    def take(self, ports: Iterable[HostPort]) -> None:
        """Take ports."""
        for protocol, ip, port in ports:
            self._addresses.setdefault((protocol, port), set()).add(ip)

    def give_back(self, ports: Iterable[HostPort]) -> None:
        """Give ports back."""
        for protocol, ip, port in ports:
            self._addresses.get((protocol, port), set()).discard(ip)

    def conflicts(self, wanted: Iterable[HostPort]) -> bool:
        """Whether one of the wanted ports is taken."""
        return any(
            is_address_taken(ip, self._addresses.get((protocol, port), ()))
            for protocol, ip, port in wanted
        )

    def shift(self, entry: PodEntry, pods: int) -> None:
        """Take the ports of a pod (``pods`` is 1), or give them back (-1)."""
        (self.take if pods > 0 else self.give_back)(entry.pod.spec.host_ports)

    def refused(self, pod_class: PodClass) -> Refused | None:
        """Return that a port which the class wants is taken; None: none is."""
        if self.conflicts(pod_class.spec.host_ports):
            return Refused((REFUSAL.message,), resolvable=True)
        return None


def cap(pod_class: PodClass, room: Room, count: Ints, _together: bool) -> None:
    """Lower ``count`` (int64[n]): a node takes one pod with host ports, if they are free there."""
    if pod_class.spec.host_ports:
        count[taken(pod_class, room)] = 0
        count.clip(max=1, out=count)


def fits(pod_class: PodClass, room: Room, rows: Ints | None, mask: Mask) -> None:
    """Clear ``mask`` (bool[m]) on those of the rows (None: of all) where a port is taken."""
    if pod_class.spec.host_ports:
        mask &= ~taken(pod_class, room, rows)


def fits_on(pod_class: PodClass, room: Room, row: int, _free: list[int]) -> bool:
    """Whether the node at ``row`` has the ports free that the class wants."""
    return not (pod_class.spec.host_ports and taken(pod_class, room, np.array([row])).any())


def on_node(room: Room, row: int, cluster: Cluster) -> PortsOn:
    """Return the ports that are taken on the node at ``row``."""
    ports = PortsOn()
    for entry in cluster.pods_on(room.snapshot.node(row).name):
        ports.take(entry.pod.spec.host_ports)
    ports.take(room.ports.on(row))
    return ports


def concerns(pod_class: PodClass) -> bool:
    """Whether the class wants host ports."""
    return bool(pod_class.spec.host_ports)


RULE = Rule(
    name="NodePorts",
    kind=RuleKind.USE,
    judge=judge,
    cap=cap,
    fits=fits,
    fits_on=fits_on,
    on_node=on_node,
    concerns=concerns,
)
