"""Cases of ``core_bench``: gangs of one class whose pods constrain one another."""

from __future__ import annotations

from typing import Any

from quorate.core.changes import GangChanged, NodeChanged, PodChanged
from quorate.core.model import (
    GangKey,
    GangSpec,
    LabelSelector,
    Membership,
    Node,
    Pod,
    PodSelector,
    PodShape,
    PodTerm,
    Requirement,
    SpreadConstraint,
)
from quorate.core.policy import Policy
from quorate.core.scheduler import Scheduler

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_WEB = PodSelector(("default",), LabelSelector((Requirement("app", "In", ("web",)),)))
_REQUESTS = (("cpu", 1000), ("memory", 2**30))

CASES: dict[str, dict[str, Any]] = {
    "hard spread over zones": {"spread": (SpreadConstraint(1, ZONE, True, _WEB),)},
    "hard spread over hosts": {"spread": (SpreadConstraint(1, HOST, True, _WEB),)},
    "hard spread over zones and hosts": {
        "spread": (SpreadConstraint(1, ZONE, True, _WEB), SpreadConstraint(1, HOST, True, _WEB))
    },
    "apart by host": {"anti_affinity": (PodTerm(_WEB, HOST),)},
    "together in a zone": {"affinity": (PodTerm(_WEB, ZONE),)},
}


def world(case: str, nodes: int = 5_000, running: int = 20_000, pods: int = 1_000) -> Scheduler:
    """Return a core with running pods, eight of them of the gang's own kind, and a waiting gang."""
    key = GangKey("default", "x-k8s", "gang")
    plain, tied = PodShape(requests=_REQUESTS), PodShape(requests=_REQUESTS, **CASES[case])
    scheduler = Scheduler(Policy())
    scheduler.observe(NodeChanged(_node(index)) for index in range(nodes))
    scheduler.observe(
        PodChanged(_pod(f"old-{i}", plain, "db", node=f"node-{i % nodes}")) for i in range(running)
    )
    scheduler.observe(
        PodChanged(_pod(f"web-{i}", tied, "web", node=f"node-{8 * i}")) for i in range(8)
    )
    scheduler.observe([GangChanged(GangSpec(key, pods))])
    scheduler.observe(PodChanged(_pod(f"new-{i}", tied, "web", member=key)) for i in range(pods))
    return scheduler


def _node(index: int) -> Node:
    return Node(
        f"node-{index}",
        allocatable=(("cpu", 32_000), ("memory", 2**37), ("pods", 110)),
        labels=((HOST, f"node-{index}"), (ZONE, f"z{index % 8}")),
    )


def _pod(
    name: str, shape: PodShape, app: str, *, node: str = "", member: GangKey | None = None
) -> Pod:
    return Pod(
        f"uid-{name}",
        "default",
        name,
        "quorate" if member else "default-scheduler",
        shape,
        node=node,
        labels=(("app", app),),
        membership=Membership(member) if member else None,
    )
