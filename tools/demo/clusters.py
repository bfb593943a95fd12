"""``quorate up`` as a process of the demo's own, and requests to it as kubectl would send them.

In: a folder, whether quorate is to schedule. Out: a cluster that is ready. Called by ``__main__``
and ``stage``.
"""

from __future__ import annotations

import base64
import functools
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from quorate.cli.commands.manifests import render
from tools.controlplane import ApiClient, ApiError, ComponentError
from tools.controlplane.applying import collection
from tools.controlplane.process import Component
from tools.signals import stop_if_asked

SHAPE = "coreweave-gb200"
NODES = 4
_READY_S_MAX = 90.0  # on a busy machine; a process that ended is noticed at once
_STOP_S_MAX = 10.0
_POLL_S = 0.02
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/quorate-system/leases/quorate"
_GROUPS = ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")


class ClusterError(Exception):
    """A cluster did not start, or has ended; the one line says what it said last."""


class DemoCluster:
    """One embedded cluster. Its process runs from the start; ``ready`` waits for it."""

    def __init__(self, folder: Path, *, with_quorate: bool) -> None:
        """Start the process; its files are in ``folder``."""
        folder.mkdir()
        data = folder / "cluster"
        self.kubeconfig = data / "kubeconfig"
        self.client: ApiClient
        self._with_quorate = with_quorate
        command = [sys.executable, "-m", "quorate.cli", "up", "--data", str(data)]
        command += ["--shape", SHAPE, "--nodes", str(NODES), "--seed", "1"]
        command += [] if with_quorate else ["--no-scheduler"]
        self._process = Component("up", command, folder)

    def ready(self) -> None:
        """Wait until it answers, knows PodGroups, and quorate leads. Raises ClusterError."""
        self._wait(self.kubeconfig.exists, "writes its kubeconfig")
        self._wait(self._connects, "answers")
        if self._with_quorate:
            self._wait(lambda: bool(self._spec(_LEASE).get("holderIdentity")), "schedules")
        else:
            for crd in yaml.safe_load_all(render(parts=("crds",))):
                self.apply(crd)
        for group in _GROUPS:
            self._wait(functools.partial(self._serves, group), "knows PodGroups")

    def check(self, within_s: float = 0.0) -> None:
        """Raise ClusterError when the process has ended, or ends within this time."""
        try:
            self._process.check(within_s)
        except ComponentError:
            raise ClusterError(f"quorate up ended: {self._last_words()}") from None

    def stop(self) -> None:
        """End the process."""
        if hasattr(self, "client"):
            self.client.close()
        self._process.stop(grace_s=_STOP_S_MAX)

    # Requests as kubectl sends them

    def apply(self, manifest: Mapping[str, Any]) -> None:
        """Do what ``kubectl apply --server-side`` does with one object. Raises ApiError."""
        path = f"{self._path(manifest)}?fieldManager=kubectl"
        self.client.api("PATCH", path, manifest, content_type="application/apply-patch+yaml")

    def wait_for_pods(self, job: Mapping[str, Any]) -> None:
        """Do what ``kubectl wait --for=jsonpath={.status.active}=N`` does. Raises ClusterError."""
        path = self._path(job)
        count = job["spec"]["parallelism"]
        self._wait(
            lambda: self._get(path).get("status", {}).get("active") == count,
            f"makes {count} pods of a Job",
        )

    def scale(self, deployment: str, replicas: int) -> None:
        """Do what ``kubectl scale deployment`` does."""
        self.client.api(
            "PATCH",
            f"/apis/apps/v1/namespaces/default/deployments/{deployment}/scale",
            {"spec": {"replicas": replicas}},
            content_type="application/merge-patch+json",
        )

    def delete_pod(self, name: str) -> None:
        """Do what ``kubectl delete pod`` does."""
        self.client.api("DELETE", f"/api/v1/namespaces/default/pods/{name}")

    def _path(self, manifest: Mapping[str, Any]) -> str:
        return f"{collection(self.client, manifest, 'default')}/{manifest['metadata']['name']}"

    # Waiting

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + _READY_S_MAX
        while not ready():
            stop_if_asked()
            self.check()
            if time.monotonic() > deadline_s:
                raise ClusterError(
                    f"quorate up had {_READY_S_MAX:.0f} s, and it is not true that it {what}; "
                    f"it said last: {self._last_words()}"
                )
            time.sleep(_POLL_S)

    def _last_words(self) -> str:
        said = self._process.log.read_text(errors="replace").strip().splitlines()
        return said[-1].removeprefix("Error: ") if said else "nothing"

    def _connects(self) -> bool:
        try:
            config = json.loads(self.kubeconfig.read_text())
        except ValueError:
            return False  # half written
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = self.kubeconfig.with_name("demo-ca.crt")
        authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        self.client = ApiClient(cluster["server"], authority, user["token"])
        return self.client.is_ready()

    def _serves(self, group: str) -> bool:
        return bool(self._get(f"/apis/{group}/v1alpha1/podgroups"))

    def _spec(self, path: str) -> dict[str, Any]:
        spec: dict[str, Any] = self._get(path).get("spec", {})
        return spec

    def _get(self, path: str) -> dict[str, Any]:
        try:
            return self.client.api("GET", path)
        except ApiError as error:
            if error.status == 404:
                return {}
            raise
