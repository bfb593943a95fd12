"""What the agents remember between two steps: each node with its room, each pod with its stage.

Plain records, and whether a node takes a pod; ``agents`` decides. Addresses: a node's number gives
it 172.16.0.0/12 and its pods 10.0.0.0/8, so that a cluster of 65,536 nodes has no address twice.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pocketkube.agents.facts import NodeFacts, PodFacts
from pocketkube.agents.pods.needs import HostPort, PodNeeds
from pocketkube.matching.selectors import fits, untolerated
from pocketkube.registry.rules.pods.pod_resources import is_native


class Refusal(NamedTuple):
    """Why a kubelet refuses a pod; ``message`` is without the kubelet's "Pod was rejected: "."""

    reason: str
    message: str


class Room:
    """What the pods take that a node's kubelet has admitted and that have not ended."""

    def __init__(self) -> None:
        self.pods = 0
        self.used: Counter[str] = Counter()
        self.ports: Counter[HostPort] = Counter()

    def take(self, needs: PodNeeds) -> None:
        """Count a pod."""
        self.pods += 1
        for name, amount in needs.requests:
            self.used[name] += amount
        for port in needs.host_ports:
            self.ports[port] += 1

    def free(self, needs: PodNeeds) -> None:
        """Count a pod no longer."""
        self.pods -= 1
        for name, amount in needs.requests:
            self.used[name] -= amount
        for port in needs.host_ports:
            self.ports[port] -= 1


def refusal(needs: PodNeeds, node: NodeFacts, room: Room) -> Refusal | None:
    """Return why the node does not take one more pod with these needs; None when it does."""
    lack = _first_lack(needs, node.allocatable, room)
    if lack is not None:
        return lack
    if not fits(needs.placement, node.name, node.labels):
        return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    held = [port for port, count in room.ports.items() if count > 0] if needs.host_ports else []
    if any(wanted.conflicts(port) for wanted in needs.host_ports for port in held):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    # A pod that was bound before a NoSchedule taint came may stay, so the kubelet ignores those.
    if untolerated(node.taints, needs.tolerations, ("NoExecute",)):
        return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _first_lack(needs: PodNeeds, allocatable: Mapping[str, int], room: Room) -> Refusal | None:
    pods_max = allocatable.get("pods", 0)
    if room.pods + 1 > pods_max:
        return _lack("pods", 1, room.pods, pods_max)
    for name, amount in needs.requests:
        if not is_native(name) and name not in allocatable:
            continue  # a resource of the cluster, not of nodes: the kubelet ignores it
        capacity = allocatable.get(name, 0)
        if amount > capacity - room.used[name]:
            return _lack(name, amount, room.used[name], capacity)
    return None


def _lack(resource: str, requested: int, used: int, capacity: int) -> Refusal:
    return Refusal(
        f"OutOf{resource}",
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, "
        f"capacity: {capacity}",
    )


def _failed(rule: str, why: str) -> Refusal:
    return Refusal(rule, f"Predicate {rule} failed: {why}")


PODS_ON_NODE_MAX = 254
"""As many addresses as a node has for pods; with more pods some share one."""


class Stage(enum.Enum):
    """How far a pod has come on its node."""

    BOUND = enum.auto()
    STARTING = enum.auto()
    RUNNING = enum.auto()
    WAITING = enum.auto()  # for the restart of its containers
    ENDED = enum.auto()
    GONE = enum.auto()  # deleted as far as the kubelet is concerned; finalizers may hold it


@dataclass(slots=True, eq=False)
class Pod:
    """A pod on a node."""

    facts: PodFacts
    stage: Stage
    due_s: float | None = None  # monotonic: when its next turn comes; None: never
    began_s: float = 0.0  # monotonic: when its containers started last
    drawn_s: float | None = None  # its run time, where that is drawn
    exit_code: int = 0  # with which its containers will exit at ``due_s``
    restarts: int = 0
    removal_s: float | None = None  # monotonic: when it goes, once it is being deleted
    holds: bool = False  # it counts in its node's room
    address: int = 0  # its number on the node; 0: none yet


@dataclass(slots=True, eq=False)
class Node:
    """A node, and what its pods take."""

    facts: NodeFacts
    number: int
    prefix: str
    room: Room = field(default_factory=Room)
    failing: str = ""  # what its annotation says, while it fails
    ours: bool = True
    addresses: set[int] = field(default_factory=set)
    last_address: int = 0

    @property
    def acts(self) -> bool:
        """Whether its kubelet does anything."""
        return self.ours and not self.failing

    @property
    def own_ip(self) -> str:
        """The address that its number gives to it."""
        return host_ip(self.number)

    def give_address(self, pod: Pod) -> str:
        """Return the pod's address on this node: the one it has, or the next free one."""
        if not pod.address:
            pod.address = self._next_address()
            self.addresses.add(pod.address)
        return f"{self.prefix}{pod.address}"

    def _next_address(self) -> int:
        number = self.last_address
        for _ in range(PODS_ON_NODE_MAX):
            number = number % PODS_ON_NODE_MAX + 1
            if number not in self.addresses:
                break
        self.last_address = number
        return number


def host_ip(number: int) -> str:
    """Return the address of the node with this number."""
    return f"172.{16 + (number >> 16) % 16}.{number >> 8 & 255}.{number & 255}"


def number_of(address: str) -> int:
    """Return the number of the node with this address; 0 when it is not one of ours."""
    parts = address.split(".")
    if len(parts) != 4 or parts[0] != "172" or not all(part.isdecimal() for part in parts):
        return 0
    _, high, middle, low = (int(part) for part in parts)
    return (high - 16) << 16 | middle << 8 | low if 16 <= high < 32 else 0


def pod_prefix(number: int, pod_cidr: str) -> str:
    """Return the first three parts of the addresses of a node's pods, with a dot at the end."""
    network = pod_cidr.partition("/")[0]
    if network.count(".") == 3:
        return network.rpartition(".")[0] + "."
    return f"10.{number >> 8 & 255}.{number & 255}."
