"""Start and stop the schedulers that are measured, each as a process of its own.

In: a running cluster. Out: a process with a pid. Called by ``gang_bench``. All of them
are the same user, who is exempt from API priority and fairness, and none limits its own rate.
"""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import peers
from bench.cluster.cases import Dialect
from bench.peers.build import coscheduling_binary
from tools.controlplane import versions
from tools.controlplane.client import ApiClient
from tools.controlplane.cluster import Cluster
from tools.controlplane.process import Component, free_port, wait_until

QUORATE_COMMAND = (sys.executable, "-m", "quorate.cli.main", "run")
READY_TIMEOUT_S = 60.0
STOP_GRACE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One scheduler: how it is called, and in which dialect it is given gangs."""

    name: str
    title: str
    dialect: Dialect
    scheduler_name: str


PEERS = {
    peer.name: peer
    for peer in (
        # A scheduler name that nobody has: the ceiling binds what no scheduler touches.
        Peer(name="ceiling", title="ceiling", dialect="none", scheduler_name="nobody"),
        Peer(name="quorate", title="quorate", dialect="x-k8s", scheduler_name="quorate"),
        Peer(
            name="native",
            title="kube-scheduler 1.36 native gangs",
            dialect="native",
            scheduler_name=peers.NATIVE_SCHEDULER_NAME,
        ),
        Peer(
            name="coscheduling",
            title="scheduler-plugins 0.33.5",
            dialect="x-k8s",
            scheduler_name=peers.COSCHEDULING_SCHEDULER_NAME,
        ),
        Peer(
            name="kube-scheduler",
            title="kube-scheduler 1.36",
            dialect="none",
            scheduler_name=peers.DEFAULT_SCHEDULER_NAME,
        ),
    )
}

_CONFIGS = {
    "native": peers.native_config,
    "coscheduling": peers.coscheduling_config,
    "kube-scheduler": peers.default_config,
}


def start(
    peer: Peer, cluster: Cluster, folder: Path, settings: Mapping[str, Any] | None = None
) -> Component:
    """Start a scheduler and wait until it says that it is ready.

    ``settings`` are merged over quorate's configuration.

    Raises ComponentError, with the end of its log, when it ends or takes too long.
    """
    port = free_port()
    if peer.name == "quorate":
        command, ready = _quorate(cluster, folder, port, settings or {})
    else:
        command, ready = _kube_scheduler(peer, cluster, folder, port)
    component = Component(peer.name, command, folder)
    try:
        wait_until(ready, [component], f"the start of {peer.title}", timeout_s=READY_TIMEOUT_S)
    except BaseException:
        component.stop(grace_s=0)
        raise
    return component


def _quorate(
    cluster: Cluster, folder: Path, port: int, settings: Mapping[str, Any]
) -> tuple[list[str], Callable[[], bool]]:
    config = folder / "quorate.json"  # JSON is YAML
    fields = {
        "apiVersion": "quorate.dev/v1alpha1",
        "kind": "SchedulerConfiguration",
        "leaderElection": {"enabled": False},
        "healthAddress": f"127.0.0.1:{port}",
        **settings,
    }
    config.write_text(json.dumps(fields, indent=2))
    command = [*QUORATE_COMMAND, "--kubeconfig", str(cluster.kubeconfig), "--config", str(config)]
    return command, lambda: _answers(f"http://127.0.0.1:{port}/readyz")


def _kube_scheduler(
    peer: Peer, cluster: Cluster, folder: Path, port: int
) -> tuple[list[str], Callable[[], bool]]:
    native = peer.name == "native"
    config = folder / f"{peer.name}.json"
    config.write_text(json.dumps(_CONFIGS[peer.name](cluster.kubeconfig), indent=2))
    certificates = folder / f"{peer.name}-certificates"
    is_other = peer.name == "coscheduling"
    binary = coscheduling_binary() if is_other else versions.binary("kube-scheduler")
    command = [
        str(binary),
        f"--config={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={certificates}",
        "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
    ]
    if native:
        command.append(f"--feature-gates={peers.NATIVE_FEATURE_GATES}")
    ca = certificates / "kube-scheduler.crt"

    def ready() -> bool:
        client = ApiClient(f"https://127.0.0.1:{port}", ca, cluster.admin_token)
        return ca.exists() and client.is_ready()

    return command, ready


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
