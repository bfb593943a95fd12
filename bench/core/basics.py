"""Cases of ``core_bench``: deciding on one gang, applying a change, memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.core.measuring import Case, Core, Row, Stopwatch, freeze, rss_mb
from quorate.core.model import (
    GangKey,
    GangSpec,
    Membership,
    Node,
    Pod,
    PodSpec,
    Taint,
    Toleration,
)
from quorate.core.model.changes import GangChanged, NodeChanged, PodBound, PodChanged

SPEC = PodSpec(
    requests=(("cpu", 1000), ("memory", 2**30), ("nvidia.com/gpu", 1)),
    node_selector=(("class", "gpu"),),
    tolerations=(Toleration(key="gpu", operator="Exists"),),
)
KEY = GangKey("default", "x-k8s", "gang")
_ALIKE = 20


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases; ``quick`` ones take seconds and mean little."""
    pods, nodes, large = (20, 30, 60) if quick else (1_000, 5_000, 100_000)
    on = 10 if quick else 1_000
    stored, held = (1_000, 50) if quick else (100_000, 5_000)
    gang = f"gang of {pods:,} on {nodes:,} nodes"
    all_of = f"gang of {large:,} on {large:,} nodes"
    return (
        Case(
            "reference",
            (Row("reference work (NumPy)", "ms"), Row("reference work (Python)", "ms")),
            _reference,
        ),
        Case(
            "gang",
            (Row(f"{gang}: decide", "ms", 3.6), Row(f"{gang}: verify", "ms")),
            partial(_gang, nodes=nodes, pods=pods, runs=7),
        ),
        Case(
            "gang-large",
            (Row(f"{all_of}: decide", "ms", 500), Row(f"{all_of}: verify", "ms")),
            partial(_gang, nodes=large, pods=large, runs=3),
            is_ordinary=False,
        ),
        Case("alike", (Row(f"wake {_ALIKE} gangs that still do not fit", "ms"),), _alike),
        Case(
            "changes",
            tuple(
                Row(f"change: {what}: observe", "us", 50)
                for what in ("pod created", "outcome", "pod bound", "node changed")
            ),
            partial(_changes, nodes=on),
        ),
        Case(
            "memory",
            (Row(f"memory of a bound pod, {held:,} nodes and {stored:,} pods", "KB"),),
            partial(_memory, nodes=held, pods=stored),
        ),
    )


def node(index: int, labels: tuple[tuple[str, str], ...] = ()) -> Node:
    return Node(
        f"node-{index}",
        allocatable=(
            ("cpu", 64_000),
            ("memory", 2**38),
            ("nvidia.com/gpu", 8),
            ("pods", 110),
        ),
        labels=(
            ("class", "gpu"),
            ("kubernetes.io/hostname", f"node-{index}"),
            ("zone", f"z{index % 3}"),
            *labels,
        ),
        taints=(Taint("gpu", "NoSchedule", "true"),) if index % 2 else (),
    )


def pod(index: int, key: GangKey = KEY, *, node_name: str = "") -> Pod:
    return Pod(
        f"uid-{index}",
        key.namespace,
        f"pod-{index}",
        "quorate",
        SPEC,
        node=node_name,
        membership=Membership(key),
    )


def gang_world(core: Core, nodes: int, pods: int) -> None:
    """Tell of nodes and of one waiting gang."""
    core.observe(NodeChanged(node(index)) for index in range(nodes))
    core.observe([GangChanged(GangSpec(KEY, pods))])
    core.observe(PodChanged(pod(index)) for index in range(pods))


def _reference(stopwatch: Stopwatch) -> Iterator[float]:
    """Measure fixed pieces of work: of arrays, and of the interpreter."""
    free = np.full((100_000, 4), 10**9, np.int64)

    def slots_of_nodes() -> None:
        for _ in range(10):
            np.minimum.reduce(free // 1000, axis=1)

    def counts_by_key() -> None:
        counts: dict[tuple[str, int], int] = {}
        for number in range(100_000):
            key = ("default", number % 1_000)
            counts[key] = counts.get(key, 0) + 1

    for work in (slots_of_nodes, counts_by_key):
        yield 1e3 * statistics.median(stopwatch.cpu_s(work) for _ in range(5))


def _gang(stopwatch: Stopwatch, *, nodes: int, pods: int, runs: int) -> Iterator[float]:
    timings = [_gang_once_s(stopwatch, nodes, pods) for _ in range(runs)]
    for seconds in zip(*timings, strict=True):
        yield 1e3 * statistics.median(seconds)


def _gang_once_s(stopwatch: Stopwatch, nodes: int, pods: int) -> tuple[float, float]:
    core = stopwatch.core()
    gang_world(core, nodes, pods)
    freeze()
    plan, decided_s = core.place(pods)
    return decided_s, stopwatch.cpu_s(lambda: core.scheduler.verified(plan))


def _alike(stopwatch: Stopwatch) -> Iterator[float]:
    """Measure a decision that wakes blocked gangs for a node that has not room enough."""
    core, nodes = stopwatch.core(), 100
    core.observe(NodeChanged(node(index)) for index in range(nodes))
    size = nodes * 8 + 9
    for number in range(_ALIKE):
        key = GangKey("default", "x-k8s", f"gang-{number}")
        core.observe([GangChanged(GangSpec(key, size))])
        core.observe(PodChanged(pod(number * size + i, key)) for i in range(size))
    core.settle(0.0)
    core.observe([NodeChanged(node(nodes))])
    freeze()
    yield 1e3 * core.settle(1.0).cpu_s


def _changes(stopwatch: Stopwatch, *, nodes: int) -> Iterator[float]:
    """Measure the life of a gang that fills all nodes, then a label that each node gets."""
    core = stopwatch.core()
    pods = 8 * nodes
    gang_world(core, nodes, 0)
    core.observe([GangChanged(GangSpec(KEY, pods))])
    created = [PodChanged(pod(i)) for i in range(pods)]
    freeze()
    yield 1e6 * core.observe_s(created) / pods
    plan, _ = core.place(pods)
    at = {bind.uid: bind.node for gang in plan.gangs for bind in gang.binds}
    outcomes = [PodBound(*bind) for bind in at.items()]
    bound = [PodChanged(pod(i, node_name=at[f"uid-{i}"])) for i in range(pods)]
    others = [NodeChanged(node(i, labels=(("new", "label"),))) for i in range(nodes)]
    for changes in (outcomes, bound, others):
        freeze()
        yield 1e6 * core.observe_s(changes) / len(changes)


def _memory(stopwatch: Stopwatch, *, nodes: int, pods: int) -> Iterator[float]:
    core = stopwatch.core()
    core.observe(NodeChanged(node(index)) for index in range(nodes))
    before_mb = rss_mb()
    core.observe(PodChanged(pod(i, node_name=f"node-{i % nodes}")) for i in range(pods))
    yield 1e3 * (rss_mb() - before_mb) / pods
    core.settle(0.0)  # the core is needed until here
