"""Does a node take a pod that is bound to it? The checks of a kubelet of Kubernetes 1.36.

In: a pod's shape, a node's facts and what its pods take. Out: nothing, or a reason and a message.
Source: k8s.io/kubernetes ``pkg/kubelet/lifecycle/predicate.go`` and ``AdmissionCheck`` of the
scheduler. What device plugins, volumes and the topology manager would refuse is not checked; more
GPUs than there are give ``OutOfnvidia.com/gpu``, which is the kubelet's answer to extended
resources without a device plugin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorate.core.model import HostPort, PodShape, Requirement, SelectorTerm
from quorate.core.model.selectors import tolerates
from quorate.embedded.agents.facts import NodeFacts

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

    def take(self, shape: PodShape) -> None:
        """Count a pod."""
        self.pods += 1
        for name, amount in shape.requests:
            self.used[name] += amount
        for port in shape.host_ports:
            self.ports[port] += 1

    def free(self, shape: PodShape) -> None:
        """Count a pod no longer."""
        self.pods -= 1
        for name, amount in shape.requests:
            self.used[name] -= amount
        for port in shape.host_ports:
            self.ports[port] -= 1


def refusal(shape: PodShape, node: NodeFacts, room: Room) -> Refusal | None:
    """Return why the node does not take one more pod of this shape; None when it does."""
    lack = _first_lack(shape, node.allocatable, room)
    if lack is not None:
        return lack
    if not matches_affinity(shape, node):
        return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    held = [port for port, count in room.ports.items() if count > 0] if shape.host_ports else []
    if any(wanted.conflicts(port) for wanted in shape.host_ports for port in held):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    for taint in node.taints:
        # A pod that was bound before a NoSchedule taint came may stay, so the kubelet ignores them.
        if taint.effect == "NoExecute" and not tolerates(shape.tolerations, taint):
            return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def told_refusal(reason: str, shape: PodShape, node: NodeFacts, room: Room) -> Refusal:
    """Return the refusal that an annotation asks for, in a kubelet's words where it has some."""
    resource = reason.removeprefix("OutOf")
    if resource != reason and resource:
        requested = 1 if resource == "pods" else dict(shape.requests).get(resource, 0)
        used = room.pods if resource == "pods" else room.used[resource]
        return _lack(resource, requested, used, node.allocatable.get(resource, 0))
    if reason == "UnexpectedAdmissionError":
        devices = next((one for one in shape.requests if "/" in one[0]), ("nvidia.com/gpu", 1))
        return Refusal(
            reason,
            "Allocate failed due to requested number of devices unavailable for "
            f"{devices[0]}. Requested: {devices[1]}, Available: 0, which is unexpected",
        )
    return Refusal(reason, f"node {node.name} was told to refuse pods")


def matches_affinity(shape: PodShape, node: NodeFacts) -> bool:
    """Whether the node has the labels of the pod's selector and matches its required affinity."""
    if any(node.labels.get(key) != value for key, value in shape.node_selector):
        return False
    terms = shape.required_terms
    return terms is None or any(_matches_term(term, node) for term in terms)


def _first_lack(shape: PodShape, allocatable: Mapping[str, int], room: Room) -> Refusal | None:
    pods_max = allocatable.get("pods", 0)
    if room.pods + 1 > pods_max:
        return _lack("pods", 1, room.pods, pods_max)
    for name, amount in _in_order(shape.requests):
        if _is_extended(name) and name not in allocatable:
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


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _lack(resource: str, requested: int, used: int, capacity: int) -> Refusal:
    return Refusal(
        f"OutOf{resource}",
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, "
        f"capacity: {capacity}",
    )


def _failed(rule: str, why: str) -> Refusal:
    return Refusal(rule, f"Predicate {rule} failed: {why}")


def _matches_term(term: SelectorTerm, node: NodeFacts) -> bool:
    if not term.expressions and not term.fields:
        return False
    return all(_matches(one, node.labels.get(one.key)) for one in term.expressions) and all(
        _matches_name(one, node.name) for one in term.fields
    )


def _matches(requirement: Requirement, value: str | None) -> bool:
    operator = requirement.operator
    if operator == "In":
        return value in requirement.values
    if operator == "NotIn":
        return value not in requirement.values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    try:
        actual, bound = int(value or ""), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return actual > bound if operator == "Gt" else operator == "Lt" and actual < bound


def _matches_name(requirement: Requirement, name: str) -> bool:
    if requirement.key != "metadata.name" or requirement.operator not in ("In", "NotIn"):
        return False
    return (name in requirement.values) == (requirement.operator == "In")
