"""What the tests of all clients share: kubectl as a process, namespaces, manifests."""

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

from tools.controlplane import Access, ApiError
from tools.testing import HANGS_S, wait_for

TRAIN_GROUP = "rail.example.com"
WAITS = f"--timeout={HANGS_S:.0f}s"
"""Of a kubectl that waits."""


class Said(NamedTuple):
    """What a command line printed, and how it ended."""

    code: int
    out: str
    err: str


class Kubectl:
    """kubectl as the administrator, in one namespace."""

    def __init__(self, binary: Path, kubeconfig: Path, home: Path, namespace: str) -> None:
        self.binary = binary
        self.namespace = namespace
        # The home is the session's: discovery is cached there, as on anybody's machine.
        self.environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def command(self, *args: str) -> list[str]:
        return [str(self.binary), "--namespace", self.namespace, *args]

    def run(self, *args: str, manifest: str | None = None, **environment: str) -> Said:
        done = subprocess.run(
            self.command(*args),
            input=manifest,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * HANGS_S,  # after kubectl itself has given up
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def __call__(self, *args: str, manifest: str | None = None, **environment: str) -> str:
        """Run kubectl, which has to succeed, and return what it printed."""
        said = self.run(*args, manifest=manifest, **environment)
        assert said.code == 0, f"kubectl {' '.join(args)}: {said}"
        return said.out.strip()

    def refused(self, *args: str, manifest: str | None = None, **environment: str) -> str:
        """Run kubectl, which has to fail, and return what it complained of."""
        said = self.run(*args, manifest=manifest, **environment)
        assert said.code != 0, f"kubectl {' '.join(args)}: {said}"
        return said.err.strip()


_numbers = itertools.count()


@contextmanager
def a_namespace(cluster: Access) -> Iterator[str]:
    """Make a namespace that pods can be created in at once: it has its service account."""
    name = f"c{next(_numbers)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    cluster.api("POST", "/api/v1/namespaces", body)
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_for(lambda: exists(cluster, account), f"{account} is there")
    yield name
    cluster.api("DELETE", f"/api/v1/namespaces/{name}")


def exists(cluster: Access, path: str) -> bool:
    try:
        cluster.api("GET", path)
    except ApiError as error:
        if error.status not in (404, 429):  # 429: the storage of a new kind starts
            raise
        return False
    return True


def pod(name: str = "solo", **metadata: object) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }


def deployment(name: str = "web", replicas: int = 2) -> dict:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"part": "front"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
            },
        },
    }


def job(name: str = "work", size: int = 2, labels: dict[str, str] | None = None) -> dict:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": size,
            "parallelism": size,
            "template": {
                "metadata": {"labels": labels or {}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "busybox"}],
                },
            },
        },
    }


def pod_group(name: str = "gang", minimum: int = 2) -> dict:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
    }


def config_map(name: str = "settings", **data: str) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def claim(name: str = "data") -> dict:
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources},
    }


def train_crd() -> dict:
    """A kind of the tests' own, with a schema, defaults, columns, status and scale."""
    spec = {
        "type": "object",
        "required": ["cars"],
        "properties": {
            "cars": {"type": "integer", "minimum": 1, "maximum": 20, "description": "How many."},
            "line": {"type": "string", "default": "red"},
        },
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}
        },
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.cars", "statusReplicasPath": ".status.cars"},
        },
        "additionalPrinterColumns": [
            {"name": "Cars", "type": "integer", "jsonPath": ".spec.cars"},
            {"name": "Line", "type": "string", "jsonPath": ".spec.line", "priority": 1},
        ],
    }
    names = {"plural": "trains", "singular": "train", "kind": "Train", "shortNames": ["tr"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"trains.{TRAIN_GROUP}"},
        "spec": {
            "group": TRAIN_GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


def train(name: str = "express", cars: int = 4) -> dict:
    return {
        "apiVersion": f"{TRAIN_GROUP}/v1",
        "kind": "Train",
        "metadata": {"name": name},
        "spec": {"cars": cars},
    }


def as_yaml(*objects: dict) -> str:
    """Write manifests as one file of several documents."""
    return yaml.safe_dump_all(objects, sort_keys=False)
