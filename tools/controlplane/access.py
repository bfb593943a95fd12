"""What tests and tools do to a running cluster, whichever it is: requests, kubectl, users, nodes.

In: a server URL, its CA, the administrator token. Called as the base of ``Cluster`` (real) and
of ``tools.embedded.Embedded``, which share how they begin and end here.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.controlplane import applying, nodes, versions
from tools.controlplane.client import ApiClient


class KubectlError(RuntimeError):
    """kubectl failed; the text holds its command line and what it said."""


class Access:
    """A cluster as its clients see it; a context manager.

    Subclasses set the attributes, and start and stop what answers.
    """

    server: str  #: URL of the API server
    ca: Path  #: PEM file that verifies the API server
    admin_token: str  #: bearer token in system:masters
    client: ApiClient  #: as admin; safe between threads
    kubeconfig: Path  #: the admin's kubeconfig
    data_dir: Path  #: where its files are
    ready_timeout_s: float  #: how long its start may take

    # Beginning and ending

    def __init__(self, data_dir: Path | None, progress: Callable[[str], None], prefix: str) -> None:
        """Choose the folder: without ``data_dir`` a temporary one, named after ``prefix``."""
        self._temporary = data_dir is None
        self.data_dir = Path(data_dir or tempfile.mkdtemp(prefix=prefix)).resolve()
        self._progress = progress

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _started(
        self, start: Callable[[], None], nodes: int, allocatable: Mapping[str, str] | None
    ) -> Self:
        """Call ``start``, create nodes, say how long it took; what fails is stopped again."""
        start_s = time.monotonic()
        try:
            start()
            if nodes:
                self.create_nodes(nodes, allocatable=allocatable)
        except BaseException:
            self._temporary = False  # the error names logs
            self.stop()
            raise
        self._progress(f"ready in {time.monotonic() - start_s:.1f} s: {self.server}")
        return self

    def stop(self) -> None:
        """Stop what answers, and remove temporary files."""
        self._stop_all()
        if hasattr(self, "client"):
            self.client.close()
        if self._temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _stop_all(self) -> None:
        """Stop every process; temporary data need not be finished: nobody reads it again."""
        raise NotImplementedError

    def start_apiserver(self, timeout_s: float) -> None:
        """Start the API server, on the same port as before, and wait until it is ready."""
        raise NotImplementedError

    def stop_apiserver(self, *, kill: bool = False) -> None:
        """Stop the API server; with ``kill`` at once, as in a crash."""
        raise NotImplementedError

    def restart_apiserver(self, *, kill: bool = False, timeout_s: float = 0) -> None:
        """Stop the API server and start it again on what it kept.

        With much in etcd that takes minutes; without ``timeout_s`` as long as any start may.
        """
        self.stop_apiserver(kill=kill)
        self.start_apiserver(timeout_s or self.ready_timeout_s)

    # Users

    def client_for(self, token: str) -> ApiClient:
        """Give a client of the API server that uses this bearer token."""
        return ApiClient(self.server, self.ca, token)

    def kubeconfig_for(self, token: str, *, name: str = "user") -> Path:
        """Write a kubeconfig with this bearer token and give its path; ``name`` is in the path."""
        raise NotImplementedError

    def service_account_token(self, namespace: str, name: str) -> str:
        """Give a new token of a ServiceAccount that exists; it lasts for a day."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86400},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(self.api("POST", path, body)["status"]["token"])

    # Requests

    @property
    def kubectl_path(self) -> Path:
        """The kubectl that is built from the same version."""
        return versions.binary("kubectl")

    def kubectl(
        self,
        *args: str,
        input: str | None = None,
        check: bool = True,
        kubeconfig: Path | None = None,
        timeout_s: float = 120,
    ) -> str:
        """Run kubectl, as admin unless a ``kubeconfig`` is given, and give what it prints."""
        command = [str(self.kubectl_path), *args]
        environment = {
            **os.environ,
            "HOME": str(self.data_dir),
            "KUBECONFIG": str(kubeconfig or self.kubeconfig),
        }
        done = subprocess.run(
            command,
            input=input,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        if check and done.returncode != 0:
            said = (done.stderr + done.stdout).strip()
            raise KubectlError(f"kubectl {' '.join(args)}: code {done.returncode}\n{said}")
        return done.stdout

    def api(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | list[Any] | None = None,
        *,
        content_type: str = "application/json",
        timeout_s: float = 30,
    ) -> dict[str, Any]:
        """Send one request as admin; raise ApiError for a status of 400 and above."""
        return self.client.api(method, path, body, content_type=content_type, timeout_s=timeout_s)

    def apply(self, *manifests: str | Mapping[str, Any], namespace: str = "default") -> None:
        """Create objects, or merge them into those that are there, without kubectl."""
        for one in applying.documents(manifests):
            applying.apply(self.client, one, namespace)

    def delete(self, path: str) -> None:
        """Delete an object, or all of a collection, and wait until it is gone."""
        applying.delete(self.client, path)

    def exists(self, path: str) -> bool:
        """Return whether there is such an object; a collection is there while it has any."""
        return applying.exists(self.client, path)

    # Nodes

    def create_nodes(
        self,
        names: int | Iterable[str],
        *,
        allocatable: Mapping[str, str] | None = None,
        labels: nodes.Labels | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        annotations: Mapping[str, str] = nodes.ANNOTATION,
        prefix: str = "node-",
    ) -> list[str]:
        """Create nodes that are ready, and give their names.

        ``names`` is a list, or a count: then they are ``prefix`` with 0, 1, ... ``allocatable`` is
        merged over ``nodes.ALLOCATABLE``; ``labels`` may be a function of the node's index.
        Without ``annotations`` nobody plays the nodes' kubelets.
        """
        if isinstance(names, int):
            names = [f"{prefix}{i}" for i in range(names)]
        chosen = list(names)
        start_s = time.monotonic()
        nodes.create(
            self.client,
            chosen,
            allocatable=allocatable or {},
            labels=labels or {},
            taints=taints,
            annotations=annotations,
        )
        elapsed_s = time.monotonic() - start_s
        if elapsed_s > 1:
            self._progress(f"created {len(chosen)} nodes in {elapsed_s:.1f} s")
        return chosen

    def delete_all_nodes(self) -> None:
        """Delete all nodes. Their pods stay until the pod garbage collector sees them (1 min)."""
        self.api("DELETE", "/api/v1/nodes", timeout_s=120)
