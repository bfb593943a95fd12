"""What each node has, what is in use of it and by whom: facts for ``quorate nodes``.

In: a core that knows the cluster. Out: one ``NodeUsage`` for each node, and data of kind
``NodeUsageList``. Free is what the scheduler takes for free: what pods ask for counts, not what
they use. GPUs are those that nodes list as resources; devices of ResourceSlices are not among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from quorate.cli.show.gang_data import API_VERSION
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.model import Node
from quorate.core.model.life_cycle import CONTROL_PLANE, LifeCycleLabels, NodeLife
from quorate.core.model.quantity import counts_gpus, gpus_in
from quorate.core.model.selectors import Requirement

READY, CORDONED, NOT_READY = "ready", "cordoned", "not-ready"
_NOT_READY_TAINTS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class Amount(NamedTuple):
    """How much a node has of a resource, and how much of that is free, in base units."""

    total: int
    free: int


class NodeUsage(NamedTuple):
    """One node. ``gpus`` is in use by ``holders``: how many GPUs each has, by its name."""

    name: str
    state: str
    resources: dict[str, Amount]
    gpus: Amount
    holders: Counter[str]
    node: Node
    life: NodeLife
    is_closed: bool
    """Whether its labels and a taint keep users' pods away: only the control plane's may come."""

    @property
    def takes_pods(self) -> bool:
        """Whether new pods may be placed on it, as far as cordon, readiness and life-cycle go."""
        return self.state == READY and not self.is_closed


def usages(
    cluster: Cluster, wanted: Sequence[Requirement], labels: LifeCycleLabels
) -> list[NodeUsage]:
    """Return the nodes whose labels satisfy all requirements: those with GPUs first, by name.

    ``labels`` are those of the life-cycle.
    """
    found = list(_usages(cluster, wanted, labels))
    return sorted(found, key=lambda one: (not one.gpus.total, one.name))


def _usages(
    cluster: Cluster, wanted: Sequence[Requirement], labels: LifeCycleLabels
) -> Iterator[NodeUsage]:
    snapshot = cluster.snapshot()
    columns = {name: column for name, column in cluster.resources.columns.items() if name}
    for name, row in cluster.nodes.rows.items():
        node = snapshot.node(row)
        borne = dict(node.labels)
        if not all(one.holds(borne) for one in wanted):
            continue
        listed = dict(node.allocatable)
        resources = {
            resource: Amount(listed[resource], max(0, int(snapshot.free[row, column])))
            for resource, column in columns.items()
            if resource in listed
        }
        of_gpus = [amount for resource, amount in resources.items() if counts_gpus(resource)]
        gpus = Amount(sum(one.total for one in of_gpus), sum(one.free for one in of_gpus))
        holders = _holders(cluster.pods_on(name)) if gpus.total else Counter[str]()
        life = labels.of(borne, cordoned=node.unschedulable)
        is_closed = bool(life.closed) or life.reserved == CONTROL_PLANE
        is_closed &= any(one.key == labels.reserved for one in node.taints)
        yield NodeUsage(name, _state(node), resources, gpus, holders, node, life, is_closed)


def _state(node: Node) -> str:
    if any(taint.key in _NOT_READY_TAINTS for taint in node.taints):
        return NOT_READY
    return CORDONED if node.unschedulable else READY


def _holders(pods: Sequence[PodEntry]) -> Counter[str]:
    """Return how many GPUs each gang, or pod without a gang, has on a node."""
    held: Counter[str] = Counter()
    for entry in pods:
        gpus = gpus_in(entry.pod.spec.requests)
        if gpus and not entry.pod.finished:
            held[_holder(entry)] += gpus
    return held


def _holder(entry: PodEntry) -> str:
    pod = entry.pod
    if pod.membership is not None:
        return f"{pod.namespace}/{pod.membership.key.name}"
    return f"{pod.namespace}/{pod.name}"


class Totals(NamedTuple):
    """Sums over nodes. ``unreachable`` GPUs are free, and on nodes that take no pods."""

    nodes: int
    states: Counter[str]
    gpus: int
    used: int
    free: int
    unreachable: int
    sizes: Counter[int]
    """How many nodes have so many GPUs."""
    whole: int
    """How many nodes take pods and have all their GPUs free."""

    @classmethod
    def of(cls, found: Sequence[NodeUsage]) -> Totals:
        """Add up."""
        with_gpus = [one for one in found if one.gpus.total]
        free = sum(one.gpus.free for one in with_gpus)
        reachable = sum(one.gpus.free for one in with_gpus if one.takes_pods)
        gpus = sum(one.gpus.total for one in with_gpus)
        return cls(
            nodes=len(found),
            states=Counter(one.state for one in found),
            gpus=gpus,
            used=gpus - free,
            free=reachable,
            unreachable=free - reachable,
            sizes=Counter(one.gpus.total for one in with_gpus),
            whole=sum(one.takes_pods and one.gpus.free == one.gpus.total for one in with_gpus),
        )


def usage_list(found: Sequence[NodeUsage]) -> dict[str, Any]:
    """Return the nodes as an object of kind ``NodeUsageList``."""
    totals = Totals.of(found)
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeUsageList",
        "totals": {
            "nodes": totals.nodes,
            "ready": totals.states[READY],
            "cordoned": totals.states[CORDONED],
            "notReady": totals.states[NOT_READY],
            "gpus": totals.gpus,
            "gpusUsed": totals.used,
            "gpusFree": totals.free,
            "gpusUnreachable": totals.unreachable,
            "nodesWithAllGpusFree": totals.whole,
        },
        "items": [_usage_object(one) for one in found],
    }


def _usage_object(one: NodeUsage) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeUsage",
        "metadata": {"name": one.name, "labels": dict(one.node.labels)},
        "state": one.state,
        "lifeCycle": _life(one.life),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in one.node.taints
        ],
        "gpus": {"total": one.gpus.total, "free": one.gpus.free},
        "resources": [
            {"name": name, "total": amount.total, "free": amount.free}
            for name, amount in one.resources.items()
        ],
        "holders": [{"name": name, "gpus": gpus} for name, gpus in one.holders.most_common()],
    }


def _life(life: NodeLife) -> dict[str, Any] | None:
    if life == NodeLife():
        return None
    return {
        "state": life.state,
        "reserved": life.reserved,
        "desired": life.desired,
        "leaving": life.is_leaving,
    }
