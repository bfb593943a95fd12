"""A running quorate beside a cluster of ours, as the ServiceAccount of the shipped manifests.

Used by the demo; the e2e tests have their own, which also reads metrics. In: a started ``Cluster``.
Out: a process that schedules until the context ends.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tools.controlplane import Cluster
from tools.controlplane.process import Component, free_port, wait_until

_COMMAND = (sys.executable, "-m", "quorate.cli")
_READY_S_MAX = 30.0
_STOP_S_MAX = 15.0


def install(cluster: Cluster) -> None:
    """Apply what a cluster needs before quorate runs beside it: all but the Deployment."""
    command = [*_COMMAND, "manifests"]
    for part in ("crds", "rbac", "flowschema"):
        command += ["--only", part]
    manifests = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cluster.kubectl("apply", "-f", "-", input=manifests)
    for name in ("podgroups.scheduling.x-k8s.io", "podgroups.scheduling.sigs.k8s.io"):
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}")


@contextlib.contextmanager
def running(cluster: Cluster) -> Iterator[None]:
    """Run ``quorate run``. Raises ComponentError, with the end of its log, when it cannot start."""
    port = free_port()
    folder = Path(cluster.data_dir)
    config = folder / "quorate.yaml"
    config.write_text(
        "apiVersion: quorate.dev/v1alpha1\n"
        "kind: SchedulerConfiguration\n"
        f"healthAddress: 127.0.0.1:{port}\n"
        "logFormat: text\n"
    )
    token = cluster.service_account_token("quorate-system", "quorate")
    kubeconfig = cluster.kubeconfig_for(token, name="quorate")
    command = [*_COMMAND, "run", "--kubeconfig", str(kubeconfig), "--config", str(config)]
    process = Component("quorate", command, folder)
    try:
        wait_until(
            lambda: _answers(f"http://127.0.0.1:{port}/readyz"),
            [process],
            "quorate is ready",
            timeout_s=_READY_S_MAX,
        )
        yield
    finally:
        process.stop(grace_s=_STOP_S_MAX)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False
