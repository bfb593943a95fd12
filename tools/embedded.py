"""``quorate up`` as a process, with the same methods as the real control plane has.

In: a folder. Out: an API server on loopback, without a scheduler unless asked for. Called by
tests/e2e, bench and tests of clients::

    with Embedded.start(tmp_path, nodes=4) as cluster:
        cluster.api("GET", "/api/v1/nodes")
"""

import base64
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import yaml

from pocketkube.private_files import write_private
from tools.controlplane.access import Access
from tools.controlplane.client import ApiClient
from tools.controlplane.process import ComponentError, free_port

READY_TIMEOUT_S = 120.0  # on a busy machine; a process that ended is noticed at once
STOP_TIMEOUT_S = 15.0


def say(message: str) -> None:
    """Print progress to standard error."""
    print(f"embedded: {message}", file=sys.stderr, flush=True)


class Embedded(Access):
    """An embedded cluster and its clients. Make one with ``Embedded.start``; a context manager."""

    ready_timeout_s = READY_TIMEOUT_S

    def __init__(
        self,
        data_dir: Path | None,
        progress: Callable[[str], None],
        extra: Sequence[str],
        *,
        durable: bool,
    ) -> None:
        """Prepare; ``Embedded.start`` is what callers want."""
        super().__init__(data_dir, progress, "quorate-embedded-")
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._extra = list(extra)
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._port = free_port()
        self.kubeconfig = self.data_dir / "kubeconfig"
        self.ca = self.data_dir / "ca.crt"
        self.log_file = self.data_dir / "up.log"

    @classmethod
    def start(
        cls,
        data_dir: Path | None = None,
        *,
        nodes: int = 0,
        allocatable: Mapping[str, str] | None = None,
        progress: Callable[[str], None] = say,
        scheduler: bool = False,
        extra: Sequence[str] = (),
        durable: bool = True,
    ) -> Self:
        """Start ``quorate up`` and wait until it answers; ``extra`` goes to its command line.

        What is not ``durable`` is in memory only, and does not survive ``restart_apiserver``.
        """
        options = [*extra, *([] if scheduler else ["--no-scheduler"])]
        cluster = cls(data_dir, progress, options, durable=durable)
        return cluster._started(cluster.start_apiserver, nodes, allocatable)

    def start_apiserver(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Start the process, on the same port as before, and wait until it is ready."""
        self.kubeconfig.unlink(missing_ok=True)
        command = [sys.executable, "-m", "quorate.cli", "up"]
        command += (
            ["--data", str(self.data_dir)]
            if self._durable
            else ["--write-kubeconfig", str(self.kubeconfig)]
        )
        command += ["--port", str(self._port), "--nodes", "0", *self._extra]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait(timeout_s)

    def stop_apiserver(self, *, kill: bool = False) -> None:
        """Stop the process; with ``kill`` at once, as in a crash."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        if hasattr(self, "client"):
            self.client.forget_connections()

    def _stop_all(self) -> None:
        self.stop_apiserver(kill=self._temporary)

    @property
    def pid(self) -> int:
        """The process id, to measure it."""
        assert self._process is not None, "the cluster is stopped"
        return self._process.pid

    def log(self) -> str:
        """Return what the process printed."""
        return self.log_file.read_text()

    def kubeconfig_for(self, token: str, *, name: str = "user") -> Path:
        """Write a kubeconfig with this bearer token and give its path; ``name`` is in the path."""
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = self.data_dir / f"kubeconfig-{name}"
        write_private(path, json.dumps(config))
        return path

    def _wait(self, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not (self.kubeconfig.exists() and self._answers()):
            assert self._process is not None, "it was just started"
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise ComponentError(f"quorate up is not ready; {self.log_file}:\n{self.log()}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            config = yaml.safe_load(self.kubeconfig.read_text())
            cluster = config["clusters"][0]["cluster"]
        except (yaml.YAMLError, LookupError, TypeError):
            return False  # half written
        if not hasattr(self, "client") or self.server != cluster["server"]:
            self.server = cluster["server"]
            self._port = int(self.server.rpartition(":")[2])
            self.ca.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
            self.admin_token = config["users"][0]["user"]["token"]
            self.client = ApiClient(self.server, self.ca, self.admin_token)
        return self.client.is_ready()
