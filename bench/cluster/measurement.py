"""One measured run: create the gangs, watch them being bound, and sample the scheduler's CPU.

In: a case, the driver's watch, and who is measured. Out: a filled-in ``Result``. Called by
``gang_bench``.
"""

import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from bench.cluster import cases
from bench.cluster.cases import Case
from bench.cluster.pod_watch import PodWatch

IDLE_WINDOW_S = 10.0
LOAD_TIMEOUT_S = 60.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class BenchError(RuntimeError):
    """A run failed for a reason that is not the measured scheduler's."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Result:
    """One run of one case by one peer. Times and CPU are in seconds; None: not reached."""

    case: str
    peer: str
    run: int
    seconds: float | None = None  #: what the case measures, see Case.clock
    first_created_to_last_bind_s: float | None = None
    creation_s: float = 0.0  #: how long the load process took to create the pods
    created_to_bound_s: list[float] = dataclasses.field(default_factory=list)  #: of each bound pod
    binds: int = 0
    cpu_s: float = 0.0  #: of the scheduler, from before the first pod to the last wanted bind
    cpu_ms_per_bind: float | None = None
    whole: int = 0  #: gangs, at the end of the run
    partial: int = 0
    hold_cpu_s: float | None = None  #: of the scheduler, over Case.hold_s
    idle_cpu_percent: float | None = None  #: of one core, over the last IDLE_WINDOW_S
    watch_interruptions: int = 0  #: how often the API server cut the driver's own watch
    other_cores: float = 0.0  #: kept busy just before the run, by something else
    error: str = ""

    def in_short(self) -> str:
        """Give one line for the progress."""
        if self.error:
            return self.error.partition("\n")[0]
        return "not reached" if self.seconds is None else f"{self.seconds:.2f} s"


def summed(pattern: re.Pattern[str], metrics: str) -> tuple[float, float]:
    """Return sum and count of a histogram; ``pattern`` finds which of the two, and a value."""
    of = {"sum": 0.0, "count": 0.0}
    for kind, value in pattern.findall(metrics):
        of[kind] += float(value)
    return of["sum"], of["count"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who is measured: a process, a folder for its files and, for the ceiling, what it is told.

    The name of each of ``gangs_told`` is written to ``tell`` as soon as all its pods exist.
    """

    pid: int
    folder: Path
    tell: IO[str] | None = None
    gangs_told: Sequence[str] = ()


class Measurement:
    """One run; make a new one for each."""

    def __init__(self, case: Case, watch: PodWatch, result: Result, actor: Actor) -> None:
        self._case = case
        self._watch = watch
        self._result = result
        self._actor = actor
        self._untold = set(actor.gangs_told)
        self._cpu_before_s = 0.0
        self._reached = False
        self._idle_from: tuple[float, float] | None = None

    def run(self, kubeconfig: Path, gangs: Sequence[str], pods: Sequence[dict[str, Any]]) -> None:
        """Create the pods and follow them until the case is over. Raises BenchError."""
        self._watch.begin(gangs)
        job = {
            "kubeconfig": str(kubeconfig),
            "path": cases.PODS_PATH,
            "objects": pods,
            "per_s": self._case.created_per_s,
        }
        self._cpu_before_s = cpu_s(self._actor.pid)
        with Job(self._actor.folder, "create", job) as load:
            started_s = time.monotonic()
            while not self._is_over(time.monotonic() - started_s):
                self._watch.wait(0.25)
                self._tell()
                self._sample(time.monotonic() - started_s)
                if load.process.poll() not in {None, 0}:
                    raise BenchError(f"the load failed: {load.errors()}")
            self._sample_at_end(time.monotonic())
            self._result.creation_s = _creation_s(load)
        self._fill_in()

    def _is_over(self, elapsed_s: float) -> bool:
        if self._case.hold_s:
            return elapsed_s > self._case.hold_s
        return self._reached or elapsed_s > self._case.timeout_s

    def _tell(self) -> None:
        if not self._untold:
            return
        for gang in self._watch.complete(self._case.members):
            if gang in self._untold:
                assert self._actor.tell is not None, "somebody to tell"
                self._actor.tell.write(f"{gang}\n")
                self._actor.tell.flush()
                self._untold.discard(gang)

    def _sample(self, elapsed_s: float) -> None:
        case = self._case
        if not self._reached and self._watch.whole(case.members) >= case.wanted:
            self._reached = True
            self._result.cpu_s = cpu_s(self._actor.pid) - self._cpu_before_s
        if case.hold_s and self._idle_from is None and elapsed_s > case.hold_s - IDLE_WINDOW_S:
            self._idle_from = (time.monotonic(), cpu_s(self._actor.pid))

    def _sample_at_end(self, now_s: float) -> None:
        result, cpu_now_s = self._result, cpu_s(self._actor.pid)
        if not self._reached:
            result.cpu_s = cpu_now_s - self._cpu_before_s
        if self._idle_from is not None:
            result.hold_cpu_s = cpu_now_s - self._cpu_before_s
            idle_s, idle_cpu_s = self._idle_from
            result.idle_cpu_percent = 100 * (cpu_now_s - idle_cpu_s) / (now_s - idle_s)

    def _fill_in(self) -> None:
        case, watch, result = self._case, self._watch, self._result
        result.whole, result.partial = watch.whole(case.members), watch.partial(case.members)
        result.binds = len(watch.bound_s)
        result.created_to_bound_s = [
            round(bound_s - watch.created_s[pod], 4) for pod, bound_s in watch.bound_s.items()
        ]
        result.watch_interruptions = watch.interruptions
        if result.binds:
            result.cpu_ms_per_bind = 1000 * result.cpu_s / result.binds
        whole_s: dict[str, float] = {}
        for pod, bound_s in watch.bound_s.items():
            gang = watch.gang_of[pod]
            whole_s[gang] = max(whole_s.get(gang, 0.0), bound_s)
        ends = sorted(whole_s[g] for g, count in watch.bound_of.items() if count >= case.members)
        if len(ends) < case.wanted:
            return
        first_s, last_s = min(watch.created_s.values()), max(watch.created_s.values())
        end_s = ends[case.wanted - 1]
        result.first_created_to_last_bind_s = end_s - first_s
        result.seconds = end_s - (first_s if case.clock == "first-created" else last_s)


class Job:
    """A process of ``bench.cluster.loads``, killed at the end of the block if it still runs."""

    def __init__(self, folder: Path, kind: str, job: dict[str, Any]) -> None:
        path = folder / f"{kind}.json"
        path.write_text(json.dumps(job))
        self._errors = folder / f"{kind}.stderr"
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bench.cluster.loads", kind, str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def read_line(self) -> str:
        """Give the next line that the process prints, "" when there is none any more."""
        assert self.process.stdout is not None, "a pipe"
        return self.process.stdout.readline()

    def errors(self) -> str:
        """Give the end of what the process wrote to standard error."""
        return self._errors.read_text()[-2000:].strip()


def cpu_s(pid: int) -> float:
    """Give the CPU time of a process so far, user and system, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def machine_cpu_s() -> float:
    """Give the time that all cores together have been busy, since the machine started."""
    user, nice, system, _idle, _wait, irq, softirq = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]
    )
    return (user + nice + system + irq + softirq) / _TICKS_PER_S


def _creation_s(load: Job) -> float:
    try:
        code = load.process.wait(timeout=LOAD_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise BenchError(f"the pods were not created in time. {load.errors()}") from None
    if code != 0:
        raise BenchError(f"the load failed: {load.errors()}")
    created = json.loads(load.read_line())
    return float(created["last_s"] - created["first_s"])
