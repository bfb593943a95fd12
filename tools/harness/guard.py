"""The admission guard as a test or a bench installs it, and what it is there to prevent."""

import base64
import itertools
from pathlib import Path

from quorate.core.model.quantity import parse_amount
from tools.certificates import write_pair
from tools.controlplane.process import free_port

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_numbers = itertools.count()


class Webhook:
    """A ValidatingWebhookConfiguration for the guard of one test's scheduler.

    ``timeout_s``: after it a binding goes through unasked; 30 is the most that the API takes.
    """

    def __init__(self, cluster, folder: Path, timeout_s: int = 30) -> None:
        self.cluster, self.port, self.folder = cluster, free_port(), folder
        self.timeout_s = timeout_s
        self.name = f"guard-{next(_numbers)}"
        self.cert_file, self.key_file = write_pair(folder)
        self.settings = {
            "enabled": True,
            "address": f"127.0.0.1:{self.port}",
            "certFile": str(self.cert_file),
            "keyFile": str(self.key_file),
        }

    def install(self) -> None:
        self.cluster.api("POST", WEBHOOKS, self._body())

    def trust_new_certificate(self) -> None:
        """Write another certificate into the same files, and have the API server trust only it."""
        write_pair(self.folder)
        self.update()

    def update(self) -> None:
        path = f"{WEBHOOKS}/{self.name}"
        now = self.cluster.api("GET", path)["metadata"]["resourceVersion"]
        body = self._body()
        body["metadata"]["resourceVersion"] = now
        self.cluster.api("PUT", path, body)

    def remove(self) -> None:
        self.cluster.api("DELETE", f"{WEBHOOKS}/{self.name}")

    def _body(self) -> dict:
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.name},
            "webhooks": [
                {
                    "name": "bindings.guard.quorate.dev",
                    "clientConfig": {
                        "url": f"https://127.0.0.1:{self.port}/bindings",
                        "caBundle": base64.b64encode(self.cert_file.read_bytes()).decode(),
                    },
                    "rules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["pods/binding", "bindings"],
                        }
                    ],
                    "failurePolicy": "Ignore",
                    "timeoutSeconds": self.timeout_s,
                    "sideEffects": "NoneOnDryRun",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        }


def overcommitted(world) -> list[str]:
    """Return what nodes hold beyond what they have, added up from the API's own objects."""
    nodes = {
        n["metadata"]["name"]: n["status"]["allocatable"]
        for n in world.cluster.api("GET", "/api/v1/nodes")["items"]
    }
    used: dict[tuple[str, str], int] = {}
    for one in world.cluster.api("GET", "/api/v1/pods")["items"]:
        node = one["spec"].get("nodeName")
        if node is None or one["status"]["phase"] in ("Succeeded", "Failed"):
            continue
        wanted = [("pods", 1)] + [
            (name, parse_amount(name, amount))
            for container in one["spec"]["containers"]
            for name, amount in container["resources"].get("requests", {}).items()
        ]
        for name, amount in wanted:
            used[node, name] = used.get((node, name), 0) + amount
    return [
        f"{node}: {amount} of {name}"
        for (node, name), amount in used.items()
        if node in nodes and amount > parse_amount(name, nodes[node].get(name, "0"))
    ]
