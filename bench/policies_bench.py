"""What CoreWeave's rules cost a pod: ``python -m bench.policies_bench`` (make bench-policies).

Pods of an organization are created one after another on a real API server, in turn without the
policies and with them. Printed are the median time of a creation as its client sees it, the API
server's own mean, and what the policies add to each.
"""

import argparse
import re
import statistics
import time
from collections.abc import Sequence

from bench.cluster.measurement import summed
from tools.controlplane import Cluster
from tools.harness.policies import ORG, policies
from tools.harness.world import make_namespace
from tools.objects import pod

PODS = 300
NAMESPACE = "policies-bench"
CREATIONS = re.compile(
    r"^apiserver_request_duration_seconds_(sum|count)\{"
    r'(?=[^}]*resource="pods")(?=[^}]*subresource="")(?=[^}]*verb="POST")[^}]*\} (\S+)',
    re.MULTILINE,
)


def create(cluster: Cluster, prefix: str) -> tuple[float, float]:
    """Create pods and delete them; return the client's median and the server's mean, in ms."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print a line for each turn and what the policies add."""
    parser = argparse.ArgumentParser(description="What the policies cost a pod's creation.")
    parser.add_argument("--turns", type=int, default=5, help="turns of each way")
    options = parser.parse_args(arguments)
    added: dict[str, list[float]] = {"client's median": [], "API server's mean": []}
    with Cluster.start() as cluster:
        make_namespace(cluster, NAMESPACE)
        cluster.kubectl("label", "namespace", NAMESPACE, f"{ORG}=acme")
        create(cluster, "warm")
        for turn in range(options.turns):
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
    print(f"the policies add to a pod's creation, of {options.turns} turns:")
    for name, values in added.items():
        low, high = min(values), max(values)
        print(f"  {name}: median {statistics.median(values):.2f} ms ({low:.2f} to {high:.2f})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
