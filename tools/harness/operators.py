"""Operators as their releases ship them: own manifests, own rights, own webhooks, as processes.

What a cluster's network and its kubelets do for a pod of theirs is done here: a Service that leads
to the process, and the files of a Secret that the pod would mount.
"""

import base64
import re
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import yaml

from tools.certificates import write_pair
from tools.controlplane import Access, releases, versions
from tools.controlplane.process import Component
from tools.testing import free_port, wait_for

_LED_HERE = re.compile(r"^kind: (?:Service|\w+WebhookConfiguration)$", re.MULTILINE)


class Operator:
    """An operator on a cluster: install it once, then start and kill it at will."""

    name: ClassVar[str]
    namespace: ClassVar[str]
    account: ClassVar[str]
    """Of its own pod, as its manifests have them. Its Deployment has the account's name."""

    def __init__(self, cluster: Access, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._component: Component | None = None
        self._given: tuple[str, ...] = ()
        self._install()
        token = cluster.service_account_token(self.namespace, self.account)
        self._kubeconfig = cluster.kubeconfig_for(token, name=self.name)

    def _install(self) -> None:
        """Apply the manifests, but for what would run in pods.

        Where its Deployment is, somebody has applied all of them: what is there is led to here.
        """
        texts = self._manifests()
        deployments = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        if self._cluster.exists(f"{deployments}/{self.account}"):
            texts = [one for one in texts if _LED_HERE.search(one)]
        kinds = [one for one in texts if "\nkind: CustomResourceDefinition\n" in f"\n{one}"]
        # They are megabytes, which Python's YAML would take half a minute for.
        if kinds:
            whole = "\n---\n".join(kinds)
            self._cluster.kubectl("apply", "--server-side", "-f", "-", input=whole)
        others = [yaml.safe_load(one) for one in texts if one not in kinds]
        mine = [one for one in others if one["kind"] not in ("Deployment", "Job")]
        self._cluster.apply(*(self._here(one) for one in mine))
        if kinds:
            self._cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")

    def _manifests(self) -> list[str]:
        """Return the objects of its manifests, as ``kubectl apply -k`` would apply them."""
        overlay = releases.manifests(self.name) / "overlays" / "standalone"
        return self._cluster.kubectl("kustomize", str(overlay)).split("\n---\n")

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


class _WithWebhooks(Operator):
    """An operator whose webhooks the API server calls, by a Service that leads here."""

    def __init__(self, cluster: Access, folder: Path) -> None:
        self._port = free_port()
        self._paths: list[str] = []
        super().__init__(cluster, folder)

    def _here(self, one: dict[str, Any]) -> dict[str, Any]:
        if one["kind"] == "Service":
            one["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        for webhook in one.get("webhooks", ()):
            service = webhook["clientConfig"]["service"]
            service["port"] = self._port
            self._paths.append(service["path"])
        return one

    def _is_ready(self) -> bool:
        super()._is_ready()
        # Served a moment after /readyz says that all is well.
        return all(_answers(f"https://127.0.0.1:{self._port}{path}") for path in self._paths)


class TrainingOperator(_WithWebhooks):
    """Kubeflow's training-operator, with its validating webhook."""

    name = account = "training-operator"
    namespace = "kubeflow"

    def _flags(self) -> list[str]:
        return [
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            f"--webhook-server-port={self._port}",
        ]

    def _environment(self) -> Mapping[str, str]:
        # Below its folder for temporary files are its certificates.
        mine = {"MY_POD_NAMESPACE": self.namespace, "TMPDIR": str(self._folder)}
        return {**super()._environment(), **mine}

    def _is_ready(self) -> bool:
        self._mount()
        return super()._is_ready()

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

    name = account = "mpi-operator"
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


class Volcano(Operator):
    """Volcano's controllers, and its definitions. Its scheduler does not run."""

    name = "vc-controller-manager"
    namespace = "volcano-system"
    account = "volcano-controllers"

    def __init__(self, cluster: Access, folder: Path) -> None:
        self._health = f"127.0.0.1:{free_port()}"
        super().__init__(cluster, folder)

    def _manifests(self) -> list[str]:
        return [one for one in _of_volcano(self.name) if "volcano-admission" not in one]

    def _flags(self) -> list[str]:
        health = ["--enable-healthz", f"--healthz-address={self._health}"]
        return ["--leader-elect=false", f"--kubeconfig={self._kubeconfig}", *health]

    def _is_ready(self) -> bool:
        return super()._is_ready() and _answers(f"http://{self._health}/healthz")


class VolcanoAdmission(_WithWebhooks):
    """Volcano's admission, installed after its definitions."""

    name = "vc-webhook-manager"
    namespace = "volcano-system"
    account = "volcano-admission"

    def _manifests(self) -> list[str]:
        return [one for one in _of_volcano(self.name) if "volcano-admission" in one]

    def _flags(self) -> list[str]:
        service = "volcano-admission-service"
        certificate, key = write_pair(self._folder, f"{service}.{self.namespace}.svc")
        return [
            f"--kubeconfig={self._kubeconfig}",
            f"--enabled-admission={','.join(self._paths)}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--ca-cert-file={certificate}",
            f"--webhook-namespace={self.namespace}",
            f"--webhook-service-name={service}",
            "--listen-address=127.0.0.1",
            f"--port={self._port}",
        ]


def _answers(address: str) -> bool:
    """Whether something is served there, and not only a port listened on."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urlopen(address, timeout=5, context=context):
            return True
    except HTTPError as error:
        return error.code == HTTPStatus.BAD_REQUEST  # a webhook's answer to an empty request
    except (URLError, OSError):
        return False


def _of_volcano(name: str) -> list[str]:
    whole = (releases.manifests(name) / "volcano-development.yaml").read_text(encoding="utf-8")
    return [one for one in whole.split("\n---\n") if "\nkind:" in one]
