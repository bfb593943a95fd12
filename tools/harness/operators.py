"""Operators as their releases ship them: own manifests, own rights, own webhooks, as processes.

What a cluster's network and its kubelets do for a pod of theirs is done here: a Service that leads
to the process, and the files of a Secret that the pod would mount.
"""

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from tools.controlplane import Access, releases, versions
from tools.controlplane.process import Component
from tools.testing import free_port, wait_for


class Operator:
    """An operator on a cluster: install it once, then start and kill it at will."""

    name: ClassVar[str]
    namespace: ClassVar[str]
    """Of its own pod, as its manifests have it."""

    def __init__(self, cluster: Access, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._component: Component | None = None
        self._given: tuple[str, ...] = ()
        self._install()
        token = cluster.service_account_token(self.namespace, self.name)
        self._kubeconfig = cluster.kubeconfig_for(token, name=self.name)

    def _install(self) -> None:
        """Apply the manifests, as ``kubectl apply -k`` would, but for the Deployment."""
        overlay = releases.manifests(self.name) / "overlays" / "standalone"
        texts = self._cluster.kubectl("kustomize", str(overlay)).split("\n---\n")
        kinds = [one for one in texts if "\nkind: CustomResourceDefinition\n" in f"\n{one}"]
        # They are megabytes, which Python's YAML would take half a minute for.
        self._cluster.kubectl("apply", "--server-side", "-f", "-", input="\n---\n".join(kinds))
        others = [yaml.safe_load(one) for one in texts if one not in kinds]
        self._cluster.apply(*(self._here(one) for one in others if one["kind"] != "Deployment"))
        self._cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")

    def _here(self, one: dict[str, Any]) -> dict[str, Any]:
        """Return an object of the manifests as it has to be where the operator is a process."""
        return one

    def start(self, *flags: str) -> None:
        """Start it with these flags instead of the one that runs; wait until it is ready."""
        self.kill()
        self._given = flags
        command = [str(versions.binary(self.name)), *self._flags(), *flags]
        self._component = Component(self.name, command, self._folder, self._environment())
        wait_for(self._is_ready, f"{self.name} is ready")

    def restart(self) -> None:
        """Start it again as it was started, where it was killed or runs."""
        self.start(*self._given)

    def kill(self) -> None:
        """End it as a crash would."""
        if self._component is not None:
            self._component.stop(grace_s=0)
            self._component = None

    def told(self) -> str:
        """Return the end of its log."""
        return self._component.log_tail(60) if self._component else f"{self.name} does not run"

    def _flags(self) -> list[str]:
        return []

    def _environment(self) -> Mapping[str, str]:
        return {"KUBECONFIG": str(self._kubeconfig)}

    def _is_ready(self) -> bool:
        assert self._component is not None
        self._component.check()
        return True


class TrainingOperator(Operator):
    """Kubeflow's training-operator, with its validating webhook."""

    name = "training-operator"
    namespace = "kubeflow"

    def __init__(self, cluster: Access, folder: Path) -> None:
        self._webhook_port = free_port()
        self._webhooks: list[str] = []
        """Their paths."""
        super().__init__(cluster, folder)

    def _here(self, one: dict[str, Any]) -> dict[str, Any]:
        if one["kind"] == "Service":
            one["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        if one["kind"] == "ValidatingWebhookConfiguration":
            for webhook in one["webhooks"]:
                service = webhook["clientConfig"]["service"]
                service["port"] = self._webhook_port
                self._webhooks.append(service["path"])
        return one

    def _flags(self) -> list[str]:
        return [
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            f"--webhook-server-port={self._webhook_port}",
        ]

    def _environment(self) -> Mapping[str, str]:
        # Below its folder for temporary files are its certificates.
        mine = {"MY_POD_NAMESPACE": self.namespace, "TMPDIR": str(self._folder)}
        return {**super()._environment(), **mine}

    def _is_ready(self) -> bool:
        super()._is_ready()
        self._mount()
        return all(self._answers(path) for path in self._webhooks)

    def _answers(self, path: str) -> bool:
        """Whether a webhook is served, which is so a moment after /readyz says that all is well."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        address = f"https://127.0.0.1:{self._webhook_port}{path}"
        try:
            with urlopen(address, timeout=5, context=context):
                return True
        except (URLError, OSError):
            return False

    def _mount(self) -> None:
        """Give it the certificate that it has put into its Secret, as a kubelet does."""
        path = f"/api/v1/namespaces/{self.namespace}/secrets/training-operator-webhook-cert"
        folder = self._folder / "k8s-webhook-server" / "serving-certs"
        folder.mkdir(parents=True, exist_ok=True)
        data = self._cluster.api("GET", path).get("data", {})
        for name, value in sorted(data.items(), reverse=True):  # it looks for tls.crt, so that last
            partial = folder / f".{name}"
            partial.write_bytes(base64.b64decode(value))
            partial.rename(folder / name)  # as a kubelet does it: whole, in one step


class MpiOperator(Operator):
    """Kubeflow's mpi-operator."""

    name = "mpi-operator"
    namespace = "mpi-operator"

    def start(self, *flags: str) -> None:
        """Start it; the lease of one that was killed is spared it, as its expiry would."""
        self.kill()
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{self.name}"
        if self._cluster.exists(path):
            self._cluster.api("DELETE", path)
        super().start(*flags)

    def _flags(self) -> list[str]:
        return ["-alsologtostderr", f"--lock-namespace={self.namespace}"]
