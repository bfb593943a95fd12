"""A running ``quorate run``, and how to install one more beside the suite's own."""

import re
from pathlib import Path

import yaml

from tools.controlplane import Access
from tools.harness.running import Running
from tools.testing import command_line, manifests, wait_for

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
    # Long, so that a restart of the API server on a busy machine costs no term of office.
    "leaderElection": {
        "leaseDurationSeconds": 90,
        "renewDeadlineSeconds": 75,
        "retryPeriodSeconds": 1,
    },
    "logFormat": "json",
}
SHORT_LEASE = {"leaseDurationSeconds": 12, "renewDeadlineSeconds": 10, "retryPeriodSeconds": 0.3}
"""For leaders that are to lose it. A request may take half the deadline: on a busy machine an API
server that stores the binds of whole gangs needs seconds for the lease, and who leads stays."""
RBAC = "/apis/rbac.authorization.k8s.io/v1"
BESIDE_ROLE = "quorate-preempting"


def install_beside(cluster: Access, namespace: str) -> None:
    """Give a second scheduler the shipped RBAC in a namespace of its own, with its own lease.

    It may preempt, which the suite's own may not: so its ClusterRole has another name.
    """
    options = ("--namespace", namespace, "--only", "rbac", "--preemption")
    parts = list(yaml.safe_load_all(manifests(*options)))
    for part in parts:
        if part["kind"] == "ClusterRoleBinding":
            part["metadata"]["name"] = f"quorate-{namespace}"
            part["roleRef"]["name"] = BESIDE_ROLE
        if part["kind"] == "ClusterRole":
            part["metadata"]["name"] = BESIDE_ROLE
    cluster.apply(*parts)


def uninstall(cluster: Access, namespace: str) -> None:
    cluster.delete(f"{RBAC}/clusterrolebindings/quorate-{namespace}")
    cluster.api("DELETE", f"/api/v1/namespaces/{namespace}")


class Quorate(Running):
    """A running ``quorate run``, as the ServiceAccount of the shipped manifests, or as another."""

    command_line = staticmethod(command_line)

    def __init__(
        self,
        cluster: Access,
        folder: Path,
        config: dict | None = None,
        namespace: str = "quorate-system",
        relay_port: int = 0,
        kubeconfig: Path | None = None,
    ) -> None:
        """Prepare; with ``relay_port`` it reaches the API server through that port."""
        super().__init__(folder)
        settings = {**CONFIG, **(config or {}), "healthAddress": f"127.0.0.1:{self.port}"}
        self.config_file = folder / f"config-{self.port}.yaml"
        self.config_file.write_text(yaml.safe_dump(settings))
        if kubeconfig is None:
            token = cluster.service_account_token(namespace, "quorate")
            kubeconfig = cluster.kubeconfig_for(token, name=f"quorate-{self.port}")
        self.kubeconfig = kubeconfig
        self.ends: list[str] = []
        if relay_port:
            text = self.kubeconfig.read_text()
            relayed = text.replace(cluster.server, f"https://127.0.0.1:{relay_port}")
            self.kubeconfig.write_text(relayed)

    def command(self) -> list[str]:
        command = self.command_line("run", "--kubeconfig", str(self.kubeconfig))
        return [*command, "--config", str(self.config_file)]

    def revive(self) -> None:
        """Start it again where it has ended by itself, as a kubelet does; note why it did."""
        if self.process is None or self.process.poll() is None:
            return
        self.ends.append(f"{self.process.returncode}: {self.log().splitlines()[-1]}")
        self.start()
        wait_for(
            self.leads, "it leads again", CONFIG["leaderElection"]["leaseDurationSeconds"] + 30
        )

    def leads(self) -> bool:
        return self.metric("quorate_leader") == 1.0

    def wait_well(self) -> None:
        """Wait until it is as the tests that follow need it: it leads, and lacks nothing."""
        wait_for(lambda: self.page("/readyz") == "ok" and self.leads(), "it is well")

    def identity(self) -> str:
        """Return what its attempts' ids begin with."""
        started = re.findall(r'"identity": ?"[^"]*_([^"_]+)"', self.log())
        assert started, "it has started"
        return started[-1]

    def violations(self) -> float:
        """Return how many defects its own checks have found."""
        name = "quorate_invariant_violations_total{"
        lines = (one for one in self.page("/metrics").splitlines() if one.startswith(name))
        return sum(float(line.rpartition(" ")[2]) for line in lines)


class Replicas:
    """Starts schedulers beside all others: own names, own ServiceAccount, own lease.

    All that it starts share them, and the scheduler name ``scheduler_name``. A context manager;
    at its end none of them may have complained.
    """

    def __init__(self, cluster: Access, folder: Path, name: str) -> None:
        self.scheduler_name = name
        self._cluster = cluster
        self._folder = folder
        self.running: list[Quorate] = []
        install_beside(cluster, name)

    def __call__(
        self, config: dict | None = None, *, wait_ready=True, relay_port=0, through=""
    ) -> Quorate:
        """Start one; ``config`` is merged over the suite's, ``through`` is a proxy without TLS."""
        election = {"leaseDurationSeconds": 90, "renewDeadlineSeconds": 75}
        election |= {"retryPeriodSeconds": 1, **(config or {}).get("leaderElection", {})}
        own = {"schedulerNames": [self.scheduler_name], **(config or {})}
        own["leaderElection"] = {**election, "namespace": self.scheduler_name}
        made = Quorate(self._cluster, self._folder, own, self.scheduler_name, relay_port)
        if through:
            made.go_through(through)
        self.running.append(made)
        return made.start(wait_ready=wait_ready)

    def __enter__(self) -> "Replicas":
        return self

    def __exit__(self, *error: object) -> None:
        for one in self.running:
            one.resume()  # what is frozen cannot stop
            one.stop()
        uninstall(self._cluster, self.scheduler_name)
        if not any(error):
            assert not [one.complaints() for one in self.running if one.complaints()]
