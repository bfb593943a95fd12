"""What CoreWeave's rules cost: ``python -m bench.cks_bench`` (make bench-cks).

``policies``: pods of an organization are created one after another on a real API server, in turn
without the policies and with them. Printed are the median time of a creation as its client sees it,
the API server's own mean, and what the policies add to each.

``nodes``: all nodes of a large cluster are given to another organization at once. Printed is how
long it takes until each is reserved for it, and what quorate cks-nodes needs for that and at rest.
"""

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.cluster.measurement import cpu_s, summed
from bench.soak.sampling import status_bytes
from tools.controlplane import Cluster
from tools.harness.cks import DESIRED, NAMESPACE, ORG, RESERVED, STATE, Keeper, policies
from tools.harness.world import make_namespace
from tools.objects import pod

PODS = 300
PODS_NAMESPACE = "policies-bench"
NODES = 5000
WRITERS = 8
TURNS_MAX = 3
"""Of nodes: who is given to and fro more often is held."""
REST_S = 20.0
CREATIONS = re.compile(
    r"^apiserver_request_duration_seconds_(sum|count)\{"
    r'(?=[^}]*resource="pods")(?=[^}]*subresource="")(?=[^}]*verb="POST")[^}]*\} (\S+)',
    re.MULTILINE,
)


def create(cluster: Cluster, prefix: str) -> tuple[float, float]:
    """Create pods and delete them; return the client's median and the server's mean, in ms."""
    path = f"/api/v1/namespaces/{PODS_NAMESPACE}/pods"
    before, took_s = _served(cluster), list[float]()
    for index in range(PODS):
        body = pod(f"{prefix}-{index}", scheduler="nobody")
        began_s = time.perf_counter()
        cluster.api("POST", path, body)
        took_s.append(time.perf_counter() - began_s)
    seconds, count = (new - old for old, new in zip(before, _served(cluster), strict=True))
    cluster.api("DELETE", f"{path}?gracePeriodSeconds=0", timeout_s=120)
    return 1000 * statistics.median(took_s), 1000 * seconds / count


def _served(cluster: Cluster) -> tuple[float, float]:
    """Return the seconds that creations of pods took so far, and their number."""
    return summed(CREATIONS, cluster.client.text("/metrics"))


def measure_policies(turns: int) -> None:
    """Print a line for each turn and what the policies add."""
    added: dict[str, list[float]] = {"client's median": [], "API server's mean": []}
    with Cluster.start() as cluster:
        make_namespace(cluster, PODS_NAMESPACE)
        cluster.kubectl("label", "namespace", PODS_NAMESPACE, f"{ORG}=acme")
        create(cluster, "warm")
        for turn in range(turns):
            without = create(cluster, f"without-{turn}")
            with policies(cluster, ["acme", "zeta"]):
                under = create(cluster, f"under-{turn}")
            print(
                f"turn {turn + 1}, without and with: client's median {without[0]:.2f} ms,"
                f" {under[0]:.2f} ms; API server's mean {without[1]:.2f} ms, {under[1]:.2f} ms",
                flush=True,
            )
            for name, less, more in zip(added, without, under, strict=True):
                added[name].append(more - less)
    print(f"the policies add to a pod's creation, of {turns} turns:")
    for name, values in added.items():
        low, high = min(values), max(values)
        print(f"  {name}: median {statistics.median(values):.2f} ms ({low:.2f} to {high:.2f})")


def measure_nodes(turns: int) -> None:
    """Print for each turn how long all nodes take to be another organization's."""
    organizations = ["acme", "zeta"]
    with tempfile.TemporaryDirectory() as folder, Cluster.start() as cluster:
        make_namespace(cluster, NAMESPACE)
        keeper = Keeper(cluster, Path(folder), organizations)
        keeper.install()
        labels = {STATE: "production", DESIRED: "acme"}
        names = cluster.create_nodes(NODES, labels=labels, annotations={})
        began_s = time.monotonic()
        keeper.start()
        try:
            took_s = _all_reserved(cluster, "acme", began_s)
            print(f"{NODES} nodes that are new to it: all kept after {took_s:.1f} s", flush=True)
            for turn in range(turns):
                owner = organizations[(turn + 1) % 2]
                cpu_before_s, began_s = cpu_s(keeper.process.pid), time.monotonic()
                _give(cluster, names, owner)
                given_s = time.monotonic() - began_s
                took_s = _all_reserved(cluster, owner, began_s)
                used_s = cpu_s(keeper.process.pid) - cpu_before_s
                print(
                    f"turn {turn + 1}: {NODES} nodes relabelled in {given_s:.1f} s, all reserved"
                    f" {took_s:.1f} s after the first; {used_s:.1f} s of CPU",
                    flush=True,
                )
            _measure_kept(cluster, names, organizations[turns % 2], organizations[(turns + 1) % 2])
            cpu_before_s = cpu_s(keeper.process.pid)
            time.sleep(REST_S)
            used_s = cpu_s(keeper.process.pid) - cpu_before_s
            memory_mb = status_bytes(keeper.process.pid, "VmRSS") / 1e6
            print(f"at rest: {100 * used_s / REST_S:.1f}% of a core, {memory_mb:.0f} MB")
        finally:
            keeper.stop()


def _measure_kept(cluster: Cluster, names: Sequence[str], before: str, after: str) -> None:
    """Print how long nodes take that pods keep: to be closed, and to be given when these end."""
    make_namespace(cluster, PODS_NAMESPACE)
    cluster.kubectl("label", "namespace", PODS_NAMESPACE, f"{ORG}={before}")
    path = f"/api/v1/namespaces/{PODS_NAMESPACE}/pods"

    def run(name: str) -> None:
        cluster.api("POST", path, pod(f"on-{name}", nodeName=name))

    _for_each(names, run)
    began_s = time.monotonic()
    _give(cluster, names, after)
    closed_s = _all_reserved(cluster, "control-plane", began_s)
    began_s = time.monotonic()
    cluster.api("DELETE", f"{path}?gracePeriodSeconds=0", timeout_s=120)
    ended_s = time.monotonic() - began_s
    took_s = _all_reserved(cluster, after, began_s)
    print(
        f"with a pod on each: all closed {closed_s:.1f} s after the first label; the pods were"
        f" deleted in {ended_s:.1f} s, and all nodes given {took_s:.1f} s after the first",
        flush=True,
    )


def _give(cluster: Cluster, names: Sequence[str], owner: str) -> None:
    """Ask for all nodes for an organization, as a platform's automation would."""
    body = {"metadata": {"labels": {DESIRED: owner}}}

    def ask(name: str) -> None:
        path, kind = f"/api/v1/nodes/{name}", "application/merge-patch+json"
        cluster.api("PATCH", path, body, content_type=kind)

    _for_each(names, ask)


def _for_each(names: Sequence[str], do: Callable[[str], None]) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(do, names))


def _all_reserved(cluster: Cluster, owner: str, began_s: float) -> float:
    """Wait until all nodes are this organization's, with its taint; return the seconds since."""
    while cluster.api("GET", f"/api/v1/nodes?limit=1&labelSelector={RESERVED}!={owner}")["items"]:
        time.sleep(0.2)
    return time.monotonic() - began_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the options say, and print it."""
    parser = argparse.ArgumentParser(description="What CoreWeave's rules cost.")
    parser.add_argument("--turns", type=int, default=5, help="turns of each way")
    parser.add_argument("--case", choices=["policies", "nodes"], help="else both")
    options = parser.parse_args(arguments)
    if options.case != "nodes":
        measure_policies(options.turns)
    if options.case != "policies":
        measure_nodes(min(options.turns, TURNS_MAX))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
