"""What the admission guard costs: ``python -m bench.guard_bench [--pairs N]`` (make bench-guard).

A gang of 1,000 is bound on one real API server by quorate without the guard, with it, and with it
for other schedulers only (a match condition leaves quorate's own user out), in turn. Printed are
the time from the last pod's creation to the last bind, the API server's own time for a bind, and
their ratios within a turn. Plain binds by another client show what a foreign scheduler pays.
"""

import argparse
import base64
import dataclasses
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.cluster import cases
from bench.cluster.cases import CASES, Case
from bench.cluster.gang_bench import ClusterBench
from bench.cluster.measurement import Actor, Result, summed
from bench.peers.build import say
from bench.peers.processes import PEERS, STOP_GRACE_S, start
from tools.certificates import write_pair
from tools.controlplane import ApiError
from tools.controlplane.process import free_port

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NAME = "guard-bench"
EFFECTIVE_S = 3.0
ALONE = 200
WAYS = ("off", "on", "others only")
BIND = re.compile(
    r'^apiserver_request_duration_seconds_(sum|count)\{(?=[^}]*subresource="binding")[^}]*\} (\S+)',
    re.MULTILINE,
)
REVIEW = re.compile(
    r"^apiserver_admission_webhook_admission_duration_seconds_(sum|count)\{[^}]*\} (\S+)",
    re.MULTILINE,
)


class GuardBench(ClusterBench):
    """Runs of one case by quorate, with a guard that the API server asks or not."""

    def __init__(self, folder: Path) -> None:
        super().__init__(say)
        self.cert_file, self.key_file = write_pair(folder)
        self.port = free_port()

    def warm_up(self, case: Case) -> None:
        """Create nodes, and run the case once: the first run is unlike all others."""
        self._set_nodes(case.nodes)
        self._run(case, PEERS["ceiling"], -1)

    def ask(self, way: str) -> None:
        """Have the API server ask the guard, or not, from now on."""
        try:
            self.cluster.api("DELETE", f"{WEBHOOKS}/{NAME}")
        except ApiError as error:
            if error.status != 404:
                raise
        if way != "off":
            self.cluster.api("POST", WEBHOOKS, self._webhook(others_only=way == "others only"))
        time.sleep(EFFECTIVE_S)

    def _webhook(self, *, others_only: bool) -> dict[str, object]:
        own = "request.userInfo.username != 'admin'"  # whom quorate is in a benchmark
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": NAME},
            "webhooks": [
                {
                    "name": "bindings.guard.quorate.dev",
                    "clientConfig": {
                        "url": f"https://127.0.0.1:{self.port}/bindings",
                        "caBundle": base64.b64encode(self.cert_file.read_bytes()).decode(),
                    },
                    "rules": [{**rule, "resources": ["pods/binding", "bindings"]}],
                    "matchConditions": [{"name": "others", "expression": own}] * others_only,
                    "failurePolicy": "Ignore",
                    "timeoutSeconds": 1,
                    "sideEffects": "NoneOnDryRun",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        }

    def run(self, case: Case, way: str, number: int) -> dict[str, float]:
        """Give the figures of one way: of a gang, and of somebody else's binds."""
        self.ask(way)
        prefix = f"{way.replace(' ', '-')}-{number}"
        folder = self.folder / prefix
        folder.mkdir()
        guard = {
            "enabled": way != "off",
            "address": f"127.0.0.1:{self.port}",
            "certFile": str(self.cert_file),
            "keyFile": str(self.key_file),
        }
        scheduler = start(PEERS["quorate"], self.cluster, folder, {"guard": guard})
        try:
            figures = self._gang(case, prefix, Actor(pid=scheduler.pid, folder=folder))
            if way != "others only":
                foreign = self._run(case, PEERS["ceiling"], 100 * WAYS.index(way) + number)
                figures["plain binds, s"] = foreign.seconds or float("nan")
                figures["one bind at a time, ms"] = self._alone(prefix)
            scheduler.check()
        finally:
            scheduler.stop(grace_s=STOP_GRACE_S)
        return figures

    def _gang(self, case: Case, prefix: str, actor: Actor) -> dict[str, float]:
        peer, result = PEERS["quorate"], Result(case=case.name, peer="quorate", run=0)
        before = self._sums()
        try:
            self._measure(case, peer, prefix, result, actor)
            (bind_s, binds), (_, reviews) = (
                (new[0] - old[0], new[1] - old[1])
                for old, new in zip(before, self._sums(), strict=True)
            )
        finally:
            self._clean_up(peer)
        return {
            "gang, s": result.seconds or float("nan"),
            "gang, API server's ms a bind": 1000 * bind_s / binds,
            "gang, CPU ms a bind of quorate": result.cpu_ms_per_bind or float("nan"),
            "reviews a bind": reviews / binds,
        }

    def _alone(self, prefix: str) -> float:
        """Give the median milliseconds of binds that are sent one after another."""
        few = dataclasses.replace(CASES[0], gangs=1, members=ALONE)
        path = f"/api/v1/namespaces/{cases.NAMESPACE}/pods"
        pods = cases.pods(few, f"alone-{prefix}", "none", "nobody")
        for pod in pods:
            self.cluster.api("POST", path, pod)
        self._settle()
        took_s = []
        for index, pod in enumerate(pods):
            name = pod["metadata"]["name"]
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name},
                "target": {"kind": "Node", "name": f"node-{index}"},
            }
            began_s = time.perf_counter()
            self.cluster.api("POST", f"{path}/{name}/binding", body)
            took_s.append(time.perf_counter() - began_s)
        self._clean_up(PEERS["ceiling"])
        return 1000 * statistics.median(took_s)

    def _sums(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Give seconds and number of all binds so far, then of all reviews."""
        text = self.cluster.client.text("/metrics")
        return summed(BIND, text), summed(REVIEW, text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print one line for each run and the ratios."""
    parser = argparse.ArgumentParser(description="What the admission guard costs.")
    parser.add_argument("--pairs", type=int, default=5, help="turns of each way")
    options = parser.parse_args(arguments)
    case = next(one for one in CASES if one.name == "gang-1000")
    ratios: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, GuardBench(Path(folder)) as bench:
        bench.warm_up(case)
        for number in range(options.pairs):
            base: dict[str, float] = {}
            for way in WAYS:
                figures = bench.run(case, way, number)
                shown = ", ".join(f"{name}: {value:.2f}" for name, value in figures.items())
                print(f"turn {number + 1}, guard {way}: {shown}", flush=True)
                figures.pop("reviews a bind")
                for name, value in figures.items():
                    if way == "off":
                        base[name] = value
                    else:
                        ratios.setdefault(f"{name}, guard {way}", []).append(value / base[name])
    print(f"ratios to the guard off, of {options.pairs} turns:")
    for name, values in ratios.items():
        low, high = min(values), max(values)
        print(f"  {name}: median {statistics.median(values):.2f} ({low:.2f} to {high:.2f})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
