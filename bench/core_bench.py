"""Measure the core without I/O: deciding, applying a change, explaining, memory.

Prints a table with the budget of each figure, and writes JSON with ``--json``.
Each figure is the median of several runs. Machines differ, so the table starts with the time of a
fixed piece of NumPy work on the same machine: compare figures of two machines by their ratio to it.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from bench import core_claims, core_neighbours, core_singles
from quorate.core.changes import GangChanged, NodeChanged, PodBound, PodChanged
from quorate.core.model import (
    GangKey,
    GangSpec,
    Membership,
    Node,
    Pod,
    PodShape,
    Taint,
    Toleration,
)
from quorate.core.policy import Policy
from quorate.core.scheduler import Scheduler

SHAPE = PodShape(
    requests=(("cpu", 1000), ("memory", 2**30), ("nvidia.com/gpu", 1)),
    node_selector=(("class", "gpu"),),
    tolerations=(Toleration(key="gpu", operator="Exists"),),
)


def node(index: int) -> Node:
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
        ),
        taints=(Taint("gpu", "NoSchedule", "true"),) if index % 2 else (),
    )


def gang_world(nodes: int, pods: int) -> Scheduler:
    """Return a core that knows the nodes and one waiting gang."""
    key = GangKey("default", "x-k8s", "gang")
    scheduler = Scheduler(Policy())
    scheduler.observe(NodeChanged(node(index)) for index in range(nodes))
    scheduler.observe([GangChanged(GangSpec(key, pods))])
    scheduler.observe(PodChanged(pod(index, key)) for index in range(pods))
    return scheduler


def pod(index: int, key: GangKey, node_name: str = "") -> Pod:
    return Pod(
        f"uid-{index}",
        key.namespace,
        f"pod-{index}",
        "quorate",
        SHAPE,
        node=node_name,
        membership=Membership(key),
    )


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def decide_s(nodes: int, pods: int, runs: int) -> dict[str, float]:
    """Return the medians of deciding and of verifying, in seconds."""
    timings = [decide_once_s(gang_world(nodes, pods), pods) for _ in range(runs)]
    decided, verified = zip(*timings, strict=True)
    return {"decide": statistics.median(decided), "verify": statistics.median(verified)}


def decide_once_s(scheduler: Scheduler, pods: int) -> tuple[float, float]:
    plans = []
    decided = timed(lambda: plans.append(scheduler.decide(0.0)))
    assert sum(len(gang.binds) for gang in plans[0].gangs) == pods, "the gang fits"
    return decided, timed(lambda: scheduler.verified(plans[0]))


def change_s(nodes: int, pods: int) -> dict[str, float]:
    """Return seconds for each kind of change, as a mean over ``pods`` changes."""
    key = GangKey("default", "x-k8s", "gang")
    scheduler = Scheduler(Policy())
    scheduler.observe(NodeChanged(node(index)) for index in range(nodes))
    created = [PodChanged(pod(i, key)) for i in range(pods)]
    bound = [PodChanged(pod(i, key, f"node-{i % nodes}")) for i in range(pods)]
    outcomes = [PodBound(f"uid-{i}", f"node-{i % nodes}") for i in range(pods)]
    return {
        "pod created": timed(lambda: scheduler.observe(created)) / pods,
        "pod bound": timed(lambda: scheduler.observe(bound)) / pods,
        "outcome": timed(lambda: scheduler.observe(outcomes)) / pods,
        "node changed": timed(
            lambda: scheduler.observe(NodeChanged(node(i + 1)) for i in range(nodes - 1))
        )
        / (nodes - 1),
    }


def blocked_s(nodes: int, gangs: int) -> float:
    """Return seconds of a decision that wakes ``gangs`` blocked gangs for one freed node."""
    scheduler = Scheduler(Policy())
    scheduler.observe(NodeChanged(node(index)) for index in range(nodes))
    for number in range(gangs):
        key = GangKey("default", "x-k8s", f"gang-{number}")
        scheduler.observe([GangChanged(GangSpec(key, nodes * 8 + 1))])
        scheduler.observe(
            PodChanged(pod(number * (nodes * 8 + 1) + i, key)) for i in range(nodes * 8 + 1)
        )
    scheduler.decide(0.0)
    scheduler.observe([NodeChanged(node(nodes))])
    return timed(lambda: scheduler.decide(1.0))


def memory_mb(nodes: int, pods: int) -> float:
    """Return what ``nodes`` and ``pods`` bound pods take, in MB of resident memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    key = GangKey("default", "x-k8s", "gang")
    scheduler = Scheduler(Policy())
    scheduler.observe(NodeChanged(node(index)) for index in range(nodes))
    scheduler.observe(PodChanged(pod(i, key, f"node-{i % nodes}")) for i in range(pods))
    assert len(scheduler.cluster.pods) == pods
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def neighbours_s(case: str, runs: int) -> float:
    """Return the median of deciding 1,000 pods on 5,000 nodes with 20,000 running, in seconds."""
    timings = [decide_once_s(core_neighbours.world(case), 1_000)[0] for _ in range(runs)]
    return statistics.median(timings)


def claims_s(case: str, runs: int) -> float:
    """Return the median of deciding 1,000 pods with a claim each on 5,000 nodes, in seconds."""
    timings = []
    for _ in range(runs):
        scheduler = core_claims.world(case)
        timings.append(timed(partial(scheduler.decide, 0.0)))
    return statistics.median(timings)


def reference_s() -> float:
    """Return the time of a fixed piece of NumPy work: slots of 100,000 nodes, ten times."""
    free = np.full((100_000, 4), 10**9, np.int64)
    return statistics.median(
        timed(lambda: [np.minimum.reduce(free // 1000, axis=1) for _ in range(10)])
        for _ in range(5)
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.core_bench", description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    memory = memory_mb(5_000, 100_000)  # first: the high-water mark only ever rises
    small = decide_s(5_000, 1_000, options.runs)
    large = decide_s(100_000, 100_000, max(2, options.runs - 2))
    changes = change_s(1_000, 10_000)
    tied = {case: neighbours_s(case, options.runs) for case in core_neighbours.CASES}
    tied |= {case: claims_s(case, 1) for case in core_claims.CASES}
    singles = list(core_singles.rows(pods=1_000))
    rows = [
        ("reference work (NumPy)", reference_s() * 1e3, "ms", ""),
        ("decide 1,000 pods on 5,000 nodes", small["decide"] * 1e3, "ms", "<= 20 ms"),
        ("... and verify the plan again", small["verify"] * 1e3, "ms", ""),
        ("decide 100,000 pods on 100,000 nodes", large["decide"] * 1e3, "ms", "<= 500 ms"),
        ("... and verify the plan again", large["verify"] * 1e3, "ms", ""),
        ("wake 20 gangs that still do not fit", blocked_s(100, 20) * 1e3, "ms", ""),
        *((f"1,000 pods, {case}", s * 1e3, "ms", "<= 50 ms") for case, s in tied.items()),
        *((f"change: {name}", s * 1e6, "us", "<= 50 us") for name, s in changes.items()),
        *((name, s * 1e6, "us", "") for name, s in singles),
        ("memory of 5,000 nodes and 100,000 pods", memory, "MB", ""),
    ]
    for name, value, unit, budget in rows:
        print(f"{name:<48} {value:>9.1f} {unit:<3} {budget}")
    if options.json:
        figures = {name: {"value": value, "unit": unit} for name, value, unit, _ in rows}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
