"""A running control plane: etcd, kube-apiserver, kube-controller-manager and kwok on loopback.

In: cached binaries and a folder. Out: an API server with users, and nodes on demand. Called by
tests/e2e, bench and ``up``::

    with Cluster.start(tmp_path, nodes=4) as cluster:
        cluster.kubectl("get", "nodes")
"""

import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Self

from pocketkube.private_files import private_folder
from tools.controlplane import credentials, flags, versions
from tools.controlplane.access import Access
from tools.controlplane.client import ApiClient
from tools.controlplane.process import Component, ComponentError, free_port, wait_until

READY_TIMEOUT_S = 90
STOP_GRACE_S = 5


def say(message: str) -> None:
    """Print progress to standard error."""
    print(f"controlplane: {message}", file=sys.stderr, flush=True)


class Cluster(Access):
    """A control plane and its clients. Make one with ``Cluster.start``; a context manager.

    Start it from a thread that outlives it: the kernel ends the components with that thread.
    """

    ready_timeout_s = READY_TIMEOUT_S

    def __init__(self, data_dir: Path | None, progress: Callable[[str], None]) -> None:
        """Prepare files and ports; ``Cluster.start`` is what callers want."""
        missing = versions.missing_binaries()
        if missing:
            raise ComponentError(
                f"Not built yet: {', '.join(missing)}. Run: python -m tools.controlplane build"
            )
        super().__init__(data_dir, progress, "quorate-cluster-")
        private_folder(self.data_dir, credentials.FILES)
        self._components: dict[str, Component] = {}  # in the order of their start
        self._restores_sigterm = False
        self._client_ca: Path | None = None
        self._credentials = credentials.prepare(self.data_dir)
        self._etcd_port, self._etcd_peer_port = free_port(), free_port()
        self._port = free_port()
        self.etcd = f"http://127.0.0.1:{self._etcd_port}"  #: URL of etcd
        self.server = f"https://127.0.0.1:{self._port}"  #: URL of the API server
        self.ca = self._credentials.ca  #: PEM file that verifies the API server
        self.admin_token = self._credentials.tokens["admin"]  #: bearer token in system:masters
        self.client = self.client_for(self.admin_token)  #: as admin; safe between threads
        self.kubeconfig = self._kubeconfig_of("admin")  #: path of the admin's kubeconfig

    @classmethod
    def start(
        cls,
        data_dir: Path | None = None,
        *,
        nodes: int = 0,
        allocatable: Mapping[str, str] | None = None,
        progress: Callable[[str], None] = say,
        controllers: bool = True,
        client_ca: Path | None = None,
    ) -> Self:
        """Start a control plane and wait until it is ready for pods.

        Without ``controllers`` only etcd and the API server run: nothing acts on objects. Without
        ``data_dir`` its files are temporary. A folder that is given stays, and a cluster
        started on it again finds its objects; the log of each component is ``<component>.log``.
        ``client_ca`` is the certificate that those of clients are signed with.
        """
        progress(f"starting Kubernetes {versions.KUBERNETES}")
        cluster = cls(data_dir, progress)
        cluster._client_ca = client_ca
        start = partial(cluster._start_all, controllers=controllers)
        return cluster._started(start, nodes, allocatable)

    def stop(self) -> None:
        """Stop every component, last started first, and remove temporary files."""
        super().stop()
        if self._restores_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._restores_sigterm = False

    def _stop_all(self) -> None:
        for name in reversed(list(self._components)):
            self._stop_component(name, grace_s=0 if self._temporary else STOP_GRACE_S)

    # Components

    def start_apiserver(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Start the API server, on the same port as before, and wait until it is ready."""
        port, etcd_port = self._port, self._etcd_port
        command = flags.kube_apiserver(self._credentials, port, etcd_port, self._client_ca)
        self._run("kube-apiserver", command)
        self._wait("kube-apiserver", self._apiserver_is_ready, timeout_s)

    def stop_apiserver(self, *, kill: bool = False) -> None:
        """Stop the API server; with ``kill`` at once, as in a crash."""
        self._stop_component("kube-apiserver", grace_s=0 if kill else STOP_GRACE_S)
        self.client.forget_connections()

    def start_kube_scheduler(self, config: Mapping[str, Any] | None = None) -> ApiClient:
        """Start kube-scheduler and wait until it is ready; give a client for its /metrics.

        ``config`` is merged over a KubeSchedulerConfiguration whose client is not throttled.
        """
        kubeconfig = self._kubeconfig_of("system:kube-scheduler")
        defaults = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
        }
        path = self.data_dir / "kube-scheduler.yaml"
        path.write_text(json.dumps({**defaults, **(config or {})}, indent=2))
        port, certificates = free_port(), self.data_dir / "scheduler-certificates"
        self._run("kube-scheduler", flags.kube_scheduler(path, port, certificates))
        ca = certificates / "kube-scheduler.crt"
        client = ApiClient(f"https://127.0.0.1:{port}", ca, self.admin_token)
        self._wait("kube-scheduler", lambda: ca.exists() and client.is_ready())
        return client

    def stop_kube_scheduler(self) -> None:
        """Stop kube-scheduler."""
        self._stop_component("kube-scheduler", grace_s=STOP_GRACE_S)

    def pid(self, component: str) -> int:
        """Give the process id of a component, such as ``kube-apiserver``, to measure it."""
        return self._components[component].pid

    @property
    def clients(self) -> list[Component]:
        """The components that are clients of the API server."""
        servers = ("etcd", "kube-apiserver")
        return [one for name, one in self._components.items() if name not in servers]

    def kubeconfig_for(self, token: str, *, name: str = "user") -> Path:
        """Write a kubeconfig with this bearer token and give its path; ``name`` is in the path."""
        return self._credentials.write_kubeconfig(name, self.server, token)

    # Inside

    def _start_all(self, *, controllers: bool) -> None:
        self._handle_sigterm()
        data = self.data_dir / "etcd"
        self._run("etcd", flags.etcd(data, self._etcd_port, self._etcd_peer_port))
        self.start_apiserver()  # retries until etcd answers
        if not controllers:
            self._wait("the default namespace", self._has_namespace)
            return
        manager = self._kubeconfig_of("system:kube-controller-manager")
        self._run(
            "kube-controller-manager", flags.kube_controller_manager(self._credentials, manager)
        )
        self._run("kwok", flags.kwok(self._kubeconfig_of("kwok")))
        self._wait("the default ServiceAccount", self._has_service_account)

    def _kubeconfig_of(self, user: str) -> Path:
        return self.kubeconfig_for(self._credentials.tokens[user], name=user)

    def _run(self, name: str, command: list[str]) -> None:
        if name in self._components:
            raise ComponentError(f"{name} runs already; stop it first.")
        self._components[name] = Component(name, command, self.data_dir)

    def _stop_component(self, name: str, *, grace_s: float) -> None:
        component = self._components.pop(name, None)
        if component is not None:
            component.stop(grace_s=grace_s)

    def _wait(
        self, what: str, ready: Callable[[], bool], timeout_s: float = READY_TIMEOUT_S
    ) -> None:
        components = list(self._components.values())
        wait_until(ready, components, what, timeout_s=timeout_s)

    def _apiserver_is_ready(self) -> bool:
        return self.ca.exists() and self.client.is_ready()

    def _has_service_account(self) -> bool:
        return self.exists("/api/v1/namespaces/default/serviceaccounts/default")

    def _has_namespace(self) -> bool:
        return self.exists("/api/v1/namespaces/default")

    def _handle_sigterm(self) -> None:
        """Have SIGTERM unwind the stack, hence stop the cluster, unless somebody handles it."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _exit_on_sigterm)
            self._restores_sigterm = True


def _exit_on_sigterm(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)
