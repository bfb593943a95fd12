"""One real control plane for the whole suite, and quorate beside it with exactly its shipped RBAC.

Each test has nodes and namespaces of its own and leaves none behind.
"""

import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.conftest import skip_or_fail
from tests.e2e.world import World, wait_for
from tools.controlplane import Cluster
from tools.controlplane.versions import missing_binaries

CONFIG = {
    "apiVersion": "quorate.dev/v1alpha1",
    "kind": "SchedulerConfiguration",
    "schedulerNames": [
        "quorate",
        "cw-coscheduler",
        "coscheduler",
        "scheduler-plugins-scheduler",
        "volcano",
    ],
    "logFormat": "json",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Quorate:
    """A running ``quorate run``, as the ServiceAccount of the shipped manifests."""

    def __init__(self, cluster: Cluster, folder: Path, config: dict | None = None) -> None:
        self.port = free_port()
        self.folder = folder
        settings = {**CONFIG, **(config or {}), "healthAddress": f"127.0.0.1:{self.port}"}
        self.config_file = folder / "config.yaml"
        self.config_file.write_text(yaml.safe_dump(settings))
        token = cluster.service_account_token("quorate-system", "quorate")
        self.kubeconfig = cluster.kubeconfig_for(token, name=f"quorate-{self.port}")
        self.log_file = folder / "quorate.log"
        self.process: subprocess.Popen | None = None

    def start(self) -> "Quorate":
        command = [sys.executable, "-m", "quorate.cli", "run"]
        command += ["--kubeconfig", str(self.kubeconfig), "--config", str(self.config_file)]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(lambda: self.page("/readyz") == "ok", "quorate is ready", timeout_s=30)
        return self

    def page(self, path: str) -> str:
        """Return the text of a page; empty when there is no answer."""
        from urllib.error import HTTPError, URLError
        from urllib.request import urlopen

        try:
            with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return response.read().decode().strip()
        except HTTPError as error:
            with error:
                return error.read().decode().strip()
        except (URLError, OSError):
            return ""

    def metric(self, name: str, **labels: str) -> float:
        """Return the value of one metric; 0 when it is not there."""
        wanted = "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" if labels else ""
        for line in self.page("/metrics").splitlines():
            if line.startswith(f"{name}{wanted} "):
                return float(line.rpartition(" ")[2])
        return 0.0

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        """Ask it to stop; return its exit code."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -9


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    missing = missing_binaries()
    if missing:
        skip_or_fail(f"the real control plane is not built ({', '.join(missing)}): make controlplane")
    with Cluster.start(tmp_path_factory.mktemp("cluster")) as started:
        command = [sys.executable, "-m", "quorate.cli", "manifests"]
        for part in ("crds", "rbac", "flowschema"):
            command += ["--only", part]
        manifests = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        started.kubectl("apply", "-f", "-", input=manifests)
        for crd in ("podgroups.scheduling.x-k8s.io", "podgroups.scheduling.sigs.k8s.io"):
            started.kubectl("wait", "--for=condition=Established", f"crd/{crd}")
        yield started


@pytest.fixture(scope="session")
def quorate(cluster, tmp_path_factory) -> Iterator[Quorate]:
    running = Quorate(cluster, tmp_path_factory.mktemp("quorate")).start()
    yield running
    code = running.stop()
    log = running.log_file.read_text()
    assert code == 0, f"quorate did not stop cleanly ({code}):\n{log[-4000:]}"
    assert "Traceback" not in log, log[-8000:]
    assert "failed verification" not in log, log[-8000:]


_numbers = itertools.count()


@pytest.fixture
def world(cluster, quorate, request) -> Iterator[World]:
    """A namespace and nodes for one test, with quorate running."""
    made = World(cluster, quorate, f"t{next(_numbers)}")
    yield made
    made.remove()
