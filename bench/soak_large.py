"""Run quorate on a large cluster with churn, and hold memory, pauses and its start to budgets.

In: nothing. Out: a table beside the budgets, and JSON with ``--json``; the exit code is 1 if one is
missed. On a real etcd and kube-apiserver, without controllers: nodes and pods are objects, whose
kubelets ``soak.load`` plays. Nothing outlives it, also not after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import yaml
from rich.console import Console
from rich.table import Table

from bench.cluster.gang_bench import say
from bench.cluster.measurement import cpu_s
from bench.reliability_bench import Row
from bench.soak import objects
from bench.soak.bare_lists import read_all
from bench.soak.load import LoadJob, Started
from bench.soak.sampling import Lag, Sample, Sampler, growth, mib, own_lag_s
from bench.soak.seed import Seed
from tools.controlplane import Cluster
from tools.controlplane.process import ComponentError, die_with_parent
from tools.harness.scheduler import Quorate
from tools.testing import manifests

LAG_P99_S, LAG_MAX_S = 0.1, 0.25
START_S = 15.0
FLOORS_MAX = 1.25
GROWTH_MAX = 0.03
START_TIMEOUT_S = 300.0
RESTART_S = 200.0
"""With 1.2 GB in etcd the API server takes longer to be ready than on an empty cluster."""
AFTER_START_S = 5.0
LEASE = {"leaseDurationSeconds": 300, "renewDeadlineSeconds": 240, "retryPeriodSeconds": 2}
"""Long: there is one API server, which takes longer to restart here than the lease lasts."""
FIRST_SIZE = 8


class Soak:
    """One control plane, what is on it, and one scheduler after the other."""

    def __init__(self, options: argparse.Namespace, folder: Path, cluster: Cluster) -> None:
        self.options = options
        self.folder = folder
        self.cluster = cluster
        self.rows: list[Row] = []
        self.started: list[Started] = []
        self.starts: list[str] = []
        """What each start took."""
        self.restarts: list[tuple[float, float]] = []
        """When the API server went, and when it had been back for as long as a start may take."""
        self._firsts = 0

    def fill(self) -> None:
        """Make nodes and pods."""
        options, cluster = self.options, self.cluster
        for only in ("crds", "rbac", "flowschema"):
            cluster.kubectl("apply", "-f", "-", input=manifests("--only", only))
        seed = Seed(cluster, say)
        seed.namespaces()
        seed.nodes(options.nodes)
        seed.pods(options.pods, options.nodes, options.pod_bytes)
        self.rows.append(Row("JSON of a pod", seed.pod_bytes, unit="bytes"))

    @contextmanager
    def scheduler(self) -> Iterator[tuple[Quorate, Sampler, float]]:
        """Start a scheduler beside a gang that waits; give what it took until that was bound."""
        self._firsts += 1
        names = self._waiting_gang(f"first-{self._firsts}")
        config = {
            "schedulerNames": ["quorate"],
            "leaderElection": LEASE,
            "recorder": {"enabled": self.options.recorder == "on"},
        }
        quorate = Quorate(self.cluster, self.folder, config)
        server = self.cluster.pid("kube-apiserver")
        started_s, server_cpu_s = time.monotonic(), cpu_s(server)
        quorate.start(wait_ready=False)
        assert quorate.process is not None, "it was started"
        sampler = Sampler(quorate.process.pid, quorate.page)
        try:
            self._wait_bound(quorate, names)
            took_s = time.monotonic() - started_s
            own_s, server_s = cpu_s(quorate.process.pid), cpu_s(server) - server_cpu_s
            say(f"first bind {took_s:.1f} s after the start")
            self.starts.append(f"{took_s:.1f} s (CPU {own_s:.1f} s, API server {server_s:.1f} s)")
            time.sleep(AFTER_START_S)  # what follows the first bind belongs to the start
            yield quorate, sampler, took_s
        finally:
            sampler.stop()
            code = quorate.stop()
            if complaints := quorate.complaints() or (code and quorate.log()[-2000:]):
                say(f"the scheduler's log (code {code}):\n{complaints}")

    def run(self) -> None:
        """Start, churn, start again with everything there; fill in the rows."""
        with self.scheduler() as (quorate, sampler, took_s):
            starts_s = [took_s]
            self._lag_rows("at the start", sampler.lag, sampler.samples)
            if self.options.minutes:
                self._churn(quorate, sampler)
            peaks = [sampler.peak_bytes()]
        floor_s, size_bytes = read_all(self.cluster)
        say(f"to read all pods and drop them takes {floor_s:.1f} s")
        with self.scheduler() as (_, sampler, took_s):
            starts_s.append(took_s)
            self._lag_rows("at the second start", sampler.lag, sampler.samples)
            peaks.append(sampler.peak_bytes())
        note = " and ".join(self.starts)
        self.rows += [
            Row("start to first bind", max(starts_s), START_S, "s", note),
            Row("all pods read and dropped", floor_s, unit="s", note=f"{mib(size_bytes):.0f} MiB"),
            Row("second start, times that", starts_s[-1] / floor_s, FLOORS_MAX, "x"),
            Row("peak of memory", mib(max(peaks)), mib(memory_limit_bytes()), "MiB"),
        ]

    def _churn(self, quorate: Quorate, sampler: Sampler) -> None:
        options = self.options
        with self._load() as lines:
            begun_s, before = time.monotonic(), sampler.lag
            end_s = begun_s + 60 * options.minutes
            relists = [
                begun_s + 60 * options.minutes * (number + 0.5) / options.relists
                for number in range(options.relists)
            ]
            say_s = begun_s
            while (now_s := time.monotonic()) < end_s:
                if relists and now_s >= relists[0]:
                    relists.pop(0)
                    say("the API server restarts: all is listed anew")
                    self._restart_apiserver()
                    self.restarts.append((now_s, time.monotonic() + START_S))
                self._take(lines)
                if now_s >= say_s:
                    say_s = now_s + 15.0
                    self._say_progress(now_s - begun_s, sampler)
                assert quorate.process is not None
                if quorate.process.poll() is not None:
                    raise RuntimeError(f"the scheduler has ended:\n{quorate.log()[-4000:]}")
                time.sleep(0.5)
            samples = sampler.between(begun_s, end_s)
        self._lag_rows("with churn", sampler.lag.since(before), samples)
        self._churn_rows(quorate, samples)

    def _restart_apiserver(self) -> None:
        """Restart it as after a crash; on a busy machine it may give up its own start, once."""
        try:
            self.cluster.restart_apiserver(kill=True, timeout_s=RESTART_S)
        except ComponentError as error:
            say(f"once more: {str(error).partition(chr(10))[0]}")
            self.cluster.restart_apiserver(kill=True, timeout_s=RESTART_S)

    def _say_progress(self, elapsed_s: float, sampler: Sampler) -> None:
        newest = sampler.samples[-1]
        waits = sorted(one.wait_s for one in self.started if one.wait_s is not None)
        median = statistics.median(waits) if waits else 0.0
        worst_s = max(one.lag_max_s for one in sampler.samples[-30:])
        say(
            f"{elapsed_s:5.0f} s: {mib(newest.rss_bytes):.0f} MiB, lag up to "
            f"{1000 * worst_s:.0f} ms, {len(waits)} gangs, median {median:.2f} s"
        )

    def _take(self, lines: queue.Queue[str]) -> None:
        while not lines.empty():
            self.started.append(msgspec.json.decode(lines.get(), type=Started))

    @contextmanager
    def _load(self) -> Iterator[queue.Queue[str]]:
        """Run the load beside us; give what it prints."""
        options = self.options
        job = LoadJob(
            kubeconfig=str(self.cluster.kubeconfig),
            seed=options.seed,
            nodes=options.nodes,
            foreign_per_s=options.foreign_per_s,
            foreign_life_s=30.0,
            pod_beats_per_s=options.foreign_per_s,
            node_beats_per_s=options.nodes / 300,
            gang_every_s=options.gang_every_s,
            gang_life_s=30.0,
            large_every_s=max(15.0, 60 * options.minutes / 6),
            large_size=min(1000, 2 * options.nodes),
            backlog_gangs=20,
            padding=options.pod_bytes // 2,
        )
        path = self.folder / "load.json"
        path.write_bytes(msgspec.json.encode(job))
        command = die_with_parent([sys.executable, "-m", "bench.soak.load", str(path)])
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None, "a pipe"
        lines: queue.Queue[str] = queue.Queue()
        try:
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError("the load did not start")
            threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
            yield lines
        finally:
            process.kill()
            process.communicate()

    # A gang to start with

    def _waiting_gang(self, gang: str) -> list[str]:
        names = [f"{gang}-{member}" for member in range(FIRST_SIZE)]
        self.cluster.client.forget_connections()  # the server has closed them meanwhile
        path = f"/api/v1/namespaces/{objects.CHURN}/pods"
        for name in names:
            made = objects.waiting_member(name, gang, FIRST_SIZE, {"cpu": "1"})
            self.cluster.api("POST", path, made)
        return names

    def _wait_bound(self, quorate: Quorate, names: list[str]) -> None:
        """Wait until the first of them is bound."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        path = f"/api/v1/namespaces/{objects.CHURN}/pods/{names[0]}"
        while not self.cluster.api("GET", path)["spec"].get("nodeName"):
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"nothing was bound:\n{quorate.log()[-4000:]}")
            time.sleep(0.1)

    # Figures

    def _lag_rows(self, when: str, lag: Lag, samples: list[Sample]) -> None:
        worst_s = max((one.lag_max_s for one in samples), default=0.0)
        p99_s = lag.quantile_s(0.99)
        looks = int(max(lag.buckets.values(), default=0.0))
        own = f"at least {1000 * own_lag_s(samples):.0f} ms of it not for want of a core"
        self.rows += [
            Row(f"loop lag {when}, p99", 1000 * p99_s, 1000 * LAG_P99_S, "ms", f"{looks} looks"),
            Row(f"loop lag {when}, max", 1000 * worst_s, 1000 * LAG_MAX_S, "ms", own),
        ]

    def _churn_rows(self, quorate: Quorate, samples: list[Sample]) -> None:
        second_half = samples[len(samples) // 2 :]
        grew = f"{mib(samples[-1].rss_bytes):.0f} MiB at the end"
        relists = quorate.metric("quorate_watch_relists", resource="/api/v1/pods")
        note = f"CPU {_measured(samples)}; pods listed anew {relists:.0f} x"
        gave_up = sum(one.wait_s is None for one in self.started)
        growth_max = 100 * GROWTH_MAX
        self.rows += [
            Row(
                "memory grows in the second half", 100 * growth(second_half), growth_max, "%", grew
            ),
            Row("leads no more at the end", 1 - quorate.metric("quorate_leader"), 0),
            Row("invariants violated", quorate.violations(), 0),
            Row("gangs that did not start in time", gave_up, 0),
            Row("gangs started", len(self.started) - gave_up, note=note),
        ]
        beside = [one for one in self.started if self._is_beside_a_restart(one)]
        apart = [one for one in self.started if one not in beside]
        self._wait_rows("last pod created to bound", [one for one in apart if one.size <= 256])
        self._wait_rows("... gangs of more than 256", [one for one in apart if one.size > 256])
        self._wait_rows("... while the API server restarts", beside)

    def _wait_rows(self, what: str, gangs: list[Started]) -> None:
        waits = sorted(one.wait_s for one in gangs if one.wait_s is not None)
        if waits:
            p99_s = waits[min(len(waits) - 1, int(0.99 * len(waits)))]
            note = f"median {statistics.median(waits):.2f} s, {len(waits)} gangs"
            self.rows.append(Row(f"{what}, p99", p99_s, unit="s", note=note))

    def _is_beside_a_restart(self, one: Started) -> bool:
        ended_s = one.created_s + (one.wait_s or 0.0)
        return any(one.created_s <= last and ended_s >= first for first, last in self.restarts)


def _read(stream: IO[str], lines: queue.Queue[str]) -> None:
    for line in stream:
        lines.put(line)


def _measured(samples: list[Sample]) -> str:
    """Say how much CPU the scheduler took over some samples."""
    if len(samples) < 2:
        return "not known"
    first, last = samples[0], samples[-1]
    took_s, waited_s = last.cpu_s - first.cpu_s, last.waited_s - first.waited_s
    return f"{took_s:.1f} s in {last.at_s - first.at_s:.0f} s, waited {waited_s:.1f} s for a core"


def memory_limit_bytes() -> int:
    """Return the limit of the Deployment that we ship."""
    for part in yaml.safe_load_all(manifests("--only", "deployment")):
        if part["kind"] == "Deployment":
            container = part["spec"]["template"]["spec"]["containers"][0]
            written = str(container["resources"]["limits"]["memory"])
            return int(written.removesuffix("Gi")) * 2**30
    raise AssertionError("no Deployment is shipped")


def main() -> int:
    """Run it and print the table; give the exit code: 1 if a budget is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak_large", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000, help="pods that run (150000)")
    parser.add_argument("--pod-bytes", type=int, default=8192, help="JSON of a pod (8192)")
    parser.add_argument("--minutes", type=float, default=30.0, help="of churn (30); 0: only starts")
    parser.add_argument("--relists", type=int, default=3, help="restarts of the API server (3)")
    parser.add_argument("--foreign-per-s", type=float, default=20.0, help="other pods that come")
    parser.add_argument("--gang-every-s", type=float, default=3.0, help="gangs of 8 to 256 (3)")
    parser.add_argument("--recorder", choices=("on", "off"), default="on")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()
    say(f"seed {options.seed}")
    soak: Soak | None = None
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quorate-soak-")))
        cluster = stack.enter_context(Cluster.start(controllers=False, progress=say))
        soak = Soak(options, folder, cluster)
        try:
            soak.fill()
            soak.run()
        except KeyboardInterrupt:
            say("interrupted")
            return 130
        finally:
            _print(soak.rows)
    if options.json:
        values: list[dict[str, Any]] = [
            {"figure": row.figure, "value": row.value, "limit": row.limit, "unit": row.unit}
            for row in soak.rows
        ]
        options.json.write_text(json.dumps(values, indent=2) + "\n")
    return 0 if all(row.is_met for row in soak.rows) else 1


def _print(rows: list[Row]) -> None:
    table = Table("figure", "budget", "measured", "", box=None, pad_edge=False)
    for row in rows:
        budget = "" if row.limit is None else f"<= {row.limit:g} {row.unit}".strip()
        value = f"{row.value:,.{2 if row.unit in ('s', 'x') else 0}f} {row.unit}".strip()
        table.add_row(row.figure, budget, value, row.note if row.is_met else f"{row.note} MISSED")
    Console(width=120).print(table)


if __name__ == "__main__":
    sys.exit(main())
