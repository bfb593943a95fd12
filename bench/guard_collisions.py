"""How often two schedulers collide: ``python -m bench.guard_collisions [--rounds N]``.

Eight gangs of 10 of quorate's and 60 pods of kube-scheduler's wait for ten nodes, which then
appear; together they want 2.5 times what there is. Counted are the nodes that hold more than they
have, with the guard off and on in turn. No kubelet refuses anything here: on such a node a real
one would have refused a pod.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.controlplane import Cluster
from tools.harness.guard import Webhook, overcommitted
from tools.harness.scheduler import Quorate, install_beside
from tools.harness.world import World
from tools.objects import pod
from tools.testing import manifests, wait_for

NAMESPACE = "collisions"
SETTLED_S = 8.0
GANGS, MEMBERS, SINGLES, NODES = 8, 10, 60, 10


def collide(cluster: Cluster, quorate: Quorate, name: str) -> str:
    """Run one round and give its line."""
    denied = "quorate_guard_reviews_total"
    before = quorate.metric(denied, answer="denied")
    world = World(cluster, quorate, name, NAMESPACE)
    gangs = [world.gang(f"g{i}", MEMBERS) for i in range(GANGS)]
    foreign = {"scheduler": "default-scheduler", "requests": {"cpu": "2"}}
    world.create_pods(*gangs, [pod(f"single-{i}", **foreign) for i in range(SINGLES)])
    world.nodes(NODES, allocatable={"cpu": "8"})
    time.sleep(SETTLED_S)
    over = len(overcommitted(world))
    bound = [one["metadata"]["name"] for one in world.pods() if "nodeName" in one["spec"]]
    counts = [sum(one.startswith(f"g{i}-") for one in bound) for i in range(GANGS)]
    part = sum(0 < count < MEMBERS for count in counts)
    refused = quorate.metric(denied, answer="denied") - before
    world.remove()
    return f"{over} of {NODES} nodes overcommitted, {part} gangs in part, {refused:g} denied"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds and print a line for each."""
    parser = argparse.ArgumentParser(description="How often two schedulers collide.")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args(arguments)
    with Cluster.start() as cluster, tempfile.TemporaryDirectory() as folder:
        parts = ("--only", "crds", "--only", "rbac", "--only", "flowschema")
        cluster.kubectl("apply", "-f", "-", input=manifests(*parts))
        install_beside(cluster, NAMESPACE)
        webhook = Webhook(cluster, Path(folder), timeout_s=1)  # as in the manifests
        election = {"leaseDurationSeconds": 90, "renewDeadlineSeconds": 75}
        config = {
            "schedulerNames": [NAMESPACE],
            "guard": webhook.settings,
            "leaderElection": {**election, "namespace": NAMESPACE, "retryPeriodSeconds": 1},
        }
        quorate = Quorate(cluster, Path(folder), config, NAMESPACE).start()
        wait_for(quorate.leads, "it leads")
        cluster.start_kube_scheduler()
        for number in range(options.rounds):
            line = collide(cluster, quorate, f"off-{number}")
            print(f"round {number + 1}, guard off: {line}", flush=True)
            webhook.install()
            time.sleep(2.0)
            line = collide(cluster, quorate, f"on-{number}")
            print(f"round {number + 1}, guard on: {line}", flush=True)
            webhook.remove()
            time.sleep(1.0)
        quorate.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
