"""Measure how quorate fails: kills, fail-over, recovery of a large gang, kubelets that refuse.

In: nothing. Out: a table beside the budgets, and JSON with ``--json``. On one real control plane;
the faults, and the check of what must hold after each, are those of ``tests/e2e``. The seed of all
chance is printed first and can be given.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.cluster.gang_bench import say
from bench.large_gang import finished_s, undone_s
from tools.controlplane import Cluster
from tools.harness import invariants
from tools.harness.faults import contend_with_kube_scheduler, kill_in_mid_commit
from tools.harness.scheduler import Quorate, Replicas
from tools.harness.world import World
from tools.testing import manifests, wait_for

LEASES: dict[str, dict[str, float]] = {
    "15 s": {"leaseDurationSeconds": 15, "renewDeadlineSeconds": 10, "retryPeriodSeconds": 2},
    "3 s": {"leaseDurationSeconds": 3, "renewDeadlineSeconds": 2, "retryPeriodSeconds": 0.3},
}
GANG = 10
REST_S = 20.0


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``limit`` is what ``value`` may be at most; None: no budget."""

    figure: str
    value: float
    limit: float | None = None
    unit: str = ""
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the budget is kept."""
        return self.limit is None or self.value <= self.limit


class Bench:
    """One control plane, and the cases on it."""

    def __init__(self, cluster: Cluster, folder: Path, chance: random.Random, runs: int) -> None:
        self.cluster = cluster
        self.folder = folder
        self.chance = chance
        self.runs = runs
        self.left_in_part = self.lost = self.overfull = 0
        self._numbers = itertools.count()

    @contextmanager
    def apart(self) -> Iterator[tuple[World, Replicas]]:
        """A namespace, and schedulers that are replicas of one another."""
        number = next(self._numbers)
        with Replicas(self.cluster, self.folder, f"replicas-{number}") as replicas:
            world = World(self.cluster, None, f"bench-{number}", replicas.scheduler_name)
            try:
                yield world, replicas
            finally:
                world.remove()

    def judge(self, world: World, sizes: dict[str, int]) -> None:
        """Count broken promises once all has had time to settle."""
        deadline_s = time.monotonic() + REST_S
        while (broken := invariants.broken(world, sizes)) and time.monotonic() < deadline_s:
            time.sleep(0.2)
        for wrong in broken:
            say(f"BROKEN: {wrong}")
            self.left_in_part += "in part" in wrong
            self.overfull += "allocatable" in wrong
            self.lost += "reason" in wrong

    # Cases

    def kills(self) -> list[Row]:
        """The leader is killed at random instants while three gangs of 60 commit."""
        with self.apart() as (world, replicas):
            done = kill_in_mid_commit(world, replicas, self.chance, 10 * self.runs)
        return [
            Row("kill -9 while gangs commit, survived", done.kills, note=f"of {done.kills}"),
            Row("... of which in mid-commit", done.torn),
            Row("... slowest recovery, successor leads to whole", done.slowest_s, 5.0, "s"),
        ]

    def fail_over(self) -> list[Row]:
        """From the leader's end to the next bind, by its successor."""
        rows = []
        for name, lease in LEASES.items():
            limit = lease["leaseDurationSeconds"] + 1.0
            seen = [self._fail_over_s(lease, Quorate.kill) for _ in range(self.runs)]
            rows.append(_row(f"leader killed to next bind, lease {name}", seen, limit))
        seen = [self._fail_over_s(LEASES["15 s"], Quorate.stop) for _ in range(self.runs)]
        rows.append(_row("leader stopped (SIGTERM) to next bind, lease 15 s", seen, 1.0))
        return rows

    def _fail_over_s(self, lease: dict[str, float], end: Callable[[Quorate], object]) -> float:
        config = {"leaderElection": lease}
        with self.apart() as (world, replicas):
            first = replicas(config)
            wait_for(first.leads, "the first leads")
            replicas(config)
            world.nodes(1)
            # Gangs arrive all the time; this one when the leader has just gone.
            pods = world.gang("g", GANG)
            time.sleep(self.chance.uniform(1.0, 1.0 + lease["retryPeriodSeconds"]))
            started_s = time.monotonic()
            end(first)
            world.create_pods(pods)
            wait_for(world.bound, "the successor binds")
            took_s = time.monotonic() - started_s
            world.wait_bound(GANG)
            self.judge(world, {"g": GANG})
        return took_s

    def recovery(self) -> list[Row]:
        """The leader is killed in mid-commit of a gang of 1,000; its successor stands by."""
        rows = []
        for what, measure in (("whole", finished_s), ("undone: no room", undone_s)):
            seen = []
            for _ in range(self.runs):
                with self.apart() as (world, replicas):
                    seen.append(measure(world, replicas, self.chance))
                    self.judge(world, {"g": 1000})
            rows.append(_row(f"gang of 1,000 in part: successor leads to {what}", seen, 5.0))
        return rows

    def refusals(self) -> list[Row]:
        """kube-scheduler fills the same nodes at the same time, and kubelets refuse."""
        self.cluster.start_kube_scheduler().close()
        try:
            with self.apart() as (world, replicas):
                seen = contend_with_kube_scheduler(world, replicas, self.chance, 4 * self.runs)
        finally:
            self.cluster.stop_kube_scheduler()
        repaired = seen.repaired_s
        rows = [
            Row("kubelets' refusals of our pods, beside kube-scheduler", seen.ours),
            Row("... not repaired or undone", seen.ours - len(repaired), 0),
        ]
        if repaired:
            rows.append(_row("... refusal to whole or undone", repaired, None))
        return rows

    def broken_promises(self) -> list[Row]:
        """What was broken in all of the above; the cases themselves fail on it too."""
        return [
            Row("gangs left in part", self.left_in_part, 0),
            Row("pods lost", self.lost, 0),
            Row("overcommitted nodes", self.overfull, 0),
        ]


def _row(figure: str, seen: list[float], limit: float | None) -> Row:
    median = statistics.median(seen)
    return Row(figure, max(seen), limit, "s", f"median {median:.2f}, {len(seen)} times")


CASES = {
    "kills": Bench.kills,
    "fail-over": Bench.fail_over,
    "recovery": Bench.recovery,
    "refusals": Bench.refusals,
}


def main() -> int:
    """Run the cases and print the table; give the exit code: 1 if a budget is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.reliability_bench", description=__doc__)
    parser.add_argument("--case", default=",".join(CASES), help=f"of {','.join(CASES)}")
    parser.add_argument("--runs", type=int, default=3, help="runs of each fault (3)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()
    say(f"seed {options.seed}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder, Cluster.start() as cluster:
        cluster.kubectl("apply", "-f", "-", input=manifests("--only", "crds", "--only", "rbac"))
        cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
        bench = Bench(cluster, Path(folder), random.Random(options.seed), options.runs)
        try:
            for name in options.case.split(","):
                say(f"measuring: {name}")
                rows += CASES[name](bench)
            rows += bench.broken_promises()
        finally:
            _print(rows)  # also what there is when a case fails
    if options.json:
        values: list[dict[str, Any]] = [{"figure": r.figure, "value": r.value} for r in rows]
        options.json.write_text(json.dumps(values, indent=2) + "\n")
    return 0 if all(row.is_met for row in rows) else 1


def _print(rows: list[Row]) -> None:
    table = Table("figure", "budget", "measured (worst)", "", box=None, pad_edge=False)
    for row in rows:
        digits = 2 if row.unit else 0
        budget = "" if row.limit is None else f"<= {row.limit:g} {row.unit}".strip()
        value = f"{row.value:.{digits}f} {row.unit}".strip()
        table.add_row(row.figure, budget, value, row.note if row.is_met else f"{row.note} MISSED")
    Console(width=120).print(table)


if __name__ == "__main__":
    sys.exit(main())
