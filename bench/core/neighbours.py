"""Cases of ``core_bench``: gangs of one class whose pods constrain one another."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.core.measuring import Case, Row, Stopwatch, freeze
from quorate.core.model import (
    GangKey,
    GangSpec,
    LabelSelector,
    Membership,
    Node,
    Pod,
    PodSelector,
    PodSpec,
    PodTerm,
    Requirement,
    SpreadConstraint,
)
from quorate.core.model.changes import GangChanged, NodeChanged, PodChanged

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_WEB = PodSelector(("default",), LabelSelector((Requirement("app", "In", ("web",)),)))
_REQUESTS = (("cpu", 1000), ("memory", 2**30))

_TIES: dict[str, dict[str, Any]] = {
    "hard spread over zones": {"spread": (SpreadConstraint(1, ZONE, True, _WEB),)},
    "hard spread over hosts": {"spread": (SpreadConstraint(1, HOST, True, _WEB),)},
    "hard spread over zones and hosts": {
        "spread": (SpreadConstraint(1, ZONE, True, _WEB), SpreadConstraint(1, HOST, True, _WEB))
    },
    "apart by host": {"anti_affinity": (PodTerm(_WEB, HOST),)},
    "together in a zone": {"affinity": (PodTerm(_WEB, ZONE),)},
}


_RUNS = 5


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases; ``quick`` ones take seconds and mean little."""
    nodes, running, pods = (64, 100, 20) if quick else (5_000, 20_000, 1_000)
    return (
        Case(
            "neighbours",
            tuple(
                Row(f"gang of {pods:,} on {nodes:,} nodes, {tie}{step}", "ms", 50)
                for tie in _TIES
                for step in ("", ": verify")
            ),
            partial(_measured, nodes=nodes, running=running, pods=pods),
        ),
    )


def _measured(stopwatch: Stopwatch, *, nodes: int, running: int, pods: int) -> Iterator[float]:
    for tie in _TIES:
        runs = [_decided_s(stopwatch, tie, nodes, running, pods) for _ in range(_RUNS)]
        yield from (1e3 * statistics.median(each_s) for each_s in zip(*runs, strict=True))


def _decided_s(
    stopwatch: Stopwatch, tie: str, nodes: int, running: int, pods: int
) -> tuple[float, float]:
    """Decide on a gang beside running pods, eight of them of the gang's own kind; then verify."""
    key = GangKey("default", "x-k8s", "gang")
    plain, tied = PodSpec(requests=_REQUESTS), PodSpec(requests=_REQUESTS, **_TIES[tie])
    core = stopwatch.core()
    core.observe(NodeChanged(_node(index)) for index in range(nodes))
    core.observe(
        PodChanged(_pod(f"old-{i}", plain, "db", node=f"node-{i % nodes}")) for i in range(running)
    )
    core.observe(PodChanged(_pod(f"web-{i}", tied, "web", node=f"node-{8 * i}")) for i in range(8))
    core.observe([GangChanged(GangSpec(key, pods))])
    core.observe(PodChanged(_pod(f"new-{i}", tied, "web", member=key)) for i in range(pods))
    freeze()
    plan, took_s = core.place(pods)
    return took_s, stopwatch.cpu_s(lambda: core.scheduler.verified(plan))


def _node(index: int) -> Node:
    return Node(
        f"node-{index}",
        allocatable=(("cpu", 32_000), ("memory", 2**37), ("pods", 110)),
        labels=((HOST, f"node-{index}"), (ZONE, f"z{index % 8}")),
    )


def _pod(
    name: str, spec: PodSpec, app: str, *, node: str = "", member: GangKey | None = None
) -> Pod:
    return Pod(
        f"uid-{name}",
        "default",
        name,
        "quorate" if member else "default-scheduler",
        spec,
        node=node,
        labels=(("app", app),),
        membership=Membership(member) if member else None,
    )
