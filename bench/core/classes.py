"""Cases of ``core_bench``: many classes of pods wait at the same time, and one node changes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

from bench.core.measuring import Case, Core, Row, Stopwatch, freeze
from bench.core.world import GI, node, nodes, pod
from quorate.core.model import PodSpec
from quorate.core.model.changes import NodeChanged, PodChanged

_CHANGES = 9
_TOO_LARGE = 65_000
"""Millicores that no node has; each class asks for some more."""


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases; ``quick`` ones take seconds and mean little."""
    few, many, hosts = (40, 60, 50) if quick else (2_000, 2_500, 5_000)
    classes, large = (30, 100) if quick else (1_000, 50_000)
    label = f"a node's label changes, {classes:,} classes wait on {large:,} nodes"
    return (
        Case(
            "classes",
            (
                Row(f"a node grows, {few:,} classes wait on {hosts:,} nodes", "ms", 100),
                Row(f"a node grows, {many:,} classes wait / {few:,} classes", "x", 1.3),
            ),
            partial(_node_grows, few=few, many=many, hosts=hosts),
        ),
        Case(
            "label-change",
            (Row(label, "ms", 100),),
            partial(_label_changes, classes=classes, hosts=large),
        ),
    )


def _node_grows(stopwatch: Stopwatch, *, few: int, many: int, hosts: int) -> Iterator[float]:
    """Measure one node that grows, yet not enough for anybody, in two cores in turn."""
    cores = [_waiting_classes(stopwatch, classes, hosts) for classes in (few, many)]
    changes = [NodeChanged(node(index, cpu=64_001)) for index in range(_CHANGES)]
    heard_s = [[_heard_s(core, change) for core in cores] for change in changes]
    few_s, many_s = (statistics.median(column) for column in zip(*heard_s, strict=True))
    yield 1e3 * few_s
    yield many_s / few_s


def _label_changes(stopwatch: Stopwatch, *, classes: int, hosts: int) -> Iterator[float]:
    core = _waiting_classes(stopwatch, classes, hosts)
    yield 1e3 * statistics.median(
        _heard_s(core, NodeChanged(node(index, labels=(("new", "label"),))))
        for index in range(_CHANGES)
    )


def _waiting_classes(stopwatch: Stopwatch, classes: int, hosts: int) -> Core:
    """Return a core with one waiting pod of each class, of which some share a node selector."""
    core = stopwatch.core()
    core.observe(nodes(hosts))
    racks = max(1, hosts // 16)
    for index in range(classes):
        requests = ("cpu", _TOO_LARGE + index), ("memory", GI)
        selector = (("rack", f"r{index % racks}"),)
        core.observe([PodChanged(pod(f"one-{index}", PodSpec(requests, selector)))])
    freeze()
    core.settle(0.0)
    return core


def _heard_s(core: Core, change: NodeChanged) -> float:
    """Return the CPU seconds of hearing of a change, and of deciding then."""
    return core.observe_s([change]) + core.settle(1.0).cpu_s
