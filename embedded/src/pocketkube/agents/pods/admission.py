"""Does a node take a pod that is bound to it? The checks of a kubelet of Kubernetes 1.36.

In: a pod's needs, a node's facts and what its pods take. Out: nothing, or a reason and a message.
Source: k8s.io/kubernetes ``pkg/kubelet/lifecycle/predicate.go`` and ``AdmissionCheck`` of the
scheduler. What device plugins, volumes and the topology manager would refuse is not checked; more
GPUs than there are give ``OutOfnvidia.com/gpu``, which is the kubelet's answer to extended
resources without a device plugin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pocketkube.agents.facts import NodeFacts
from pocketkube.agents.pods.needs import HostPort, PodNeeds
from pocketkube.matching.node_rules import fits, untolerated
from pocketkube.registry.rules.pods.pod_resources import is_native

_FIRST = ("cpu", "memory", "ephemeral-storage")


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


def told_refusal(reason: str, needs: PodNeeds, node: NodeFacts, room: Room) -> Refusal:
    """Return the refusal that an annotation asks for, in a kubelet's words where it has some."""
    resource = reason.removeprefix("OutOf")
    if resource != reason and resource:
        requested = 1 if resource == "pods" else dict(needs.requests).get(resource, 0)
        used = room.pods if resource == "pods" else room.used[resource]
        return _lack(resource, requested, used, node.allocatable.get(resource, 0))
    if reason == "UnexpectedAdmissionError":
        devices = next((one for one in needs.requests if "/" in one[0]), ("nvidia.com/gpu", 1))
        return Refusal(
            reason,
            "Allocate failed due to requested number of devices unavailable for "
            f"{devices[0]}. Requested: {devices[1]}, Available: 0, which is unexpected",
        )
    return Refusal(reason, f"node {node.name} was told to refuse pods")


def _first_lack(needs: PodNeeds, allocatable: Mapping[str, int], room: Room) -> Refusal | None:
    pods_max = allocatable.get("pods", 0)
    if room.pods + 1 > pods_max:
        return _lack("pods", 1, room.pods, pods_max)
    for name, amount in _in_order(needs.requests):
        if not is_native(name) and name not in allocatable:
            continue  # a resource of the cluster, not of nodes: the kubelet ignores it
        capacity = allocatable.get(name, 0)
        if amount > capacity - room.used[name]:
            return _lack(name, amount, room.used[name], capacity)
    return None


def _in_order(requests: tuple[tuple[str, int], ...]) -> Iterable[tuple[str, int]]:
    return sorted(
        requests,
        key=lambda one: (_FIRST.index(one[0]) if one[0] in _FIRST else len(_FIRST), one[0]),
    )


def _lack(resource: str, requested: int, used: int, capacity: int) -> Refusal:
    return Refusal(
        f"OutOf{resource}",
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, "
        f"capacity: {capacity}",
    )


def _failed(rule: str, why: str) -> Refusal:
    return Refusal(rule, f"Predicate {rule} failed: {why}")
