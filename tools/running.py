"""A running quorate beside a cluster of ours, as the ServiceAccount of the shipped manifests.

Used by the demo, by ``make cluster`` and by hand; the e2e tests have their own, which also reads
metrics. In: a started ``Cluster``. Out: a process that schedules until the context ends.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tools.controlplane import Cluster

READY_S_MAX = 30.0
STOP_S_MAX = 15.0


def install(cluster: Cluster) -> None:
    """Apply what a cluster needs before quorate runs beside it: all but the Deployment."""
    command = [sys.executable, "-m", "quorate.cli", "manifests"]
    for part in ("crds", "rbac", "flowschema"):
        command += ["--only", part]
    manifests = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cluster.kubectl("apply", "-f", "-", input=manifests)
    for name in ("podgroups.scheduling.x-k8s.io", "podgroups.scheduling.sigs.k8s.io"):
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}")


@contextlib.contextmanager
def running(cluster: Cluster) -> Iterator[Path]:
    """Run ``quorate run``; yields the path of its log. Raises RuntimeError when it cannot start."""
    port = _free_port()
    config = Path(cluster.data_dir) / "quorate.yaml"
    config.write_text(
        "apiVersion: quorate.dev/v1alpha1\n"
        "kind: SchedulerConfiguration\n"
        f"healthAddress: 127.0.0.1:{port}\n"
        "logFormat: text\n"
    )
    token = cluster.service_account_token("quorate-system", "quorate")
    kubeconfig = cluster.kubeconfig_for(token, name="quorate")
    log = Path(cluster.data_dir) / "quorate.log"
    command = [sys.executable, "-m", "quorate.cli", "run"]
    command += ["--kubeconfig", str(kubeconfig), "--config", str(config)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        _wait_until_ready(process, port, log)
        yield log
    finally:
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline_s = time.monotonic() + READY_S_MAX
    while time.monotonic() < deadline_s and process.poll() is None:
        with (
            contextlib.suppress(URLError, OSError),
            urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2),
        ):
            return
        time.sleep(0.05)
    raise RuntimeError(
        f"quorate did not become ready; its log ends with:\n{log.read_text()[-2000:]}"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
