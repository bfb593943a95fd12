"""A CSI provisioner, played by a thread: the part of late binding that is not in Kubernetes.

When a claim of its class is told a node, it makes a volume that only that node can use, kept for
the claim; kube-controller-manager completes the binding. On nodes in ``fails_on`` it gives up, as
the external provisioner does: it takes the node off the claim.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tools.controlplane import ApiError

CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SELECTED = "volume.kubernetes.io/selected-node"
HOSTNAME = "kubernetes.io/hostname"
MERGE = "application/merge-patch+json"


def affinity(node: str) -> dict:
    expression = {"key": HOSTNAME, "operator": "In", "values": [node]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def volume(name: str, storage_class: str, node: str, **spec) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "nodeAffinity": affinity(node),
            **spec,
        },
    }


class Provisioner:
    """Makes volumes for the claims of one storage class."""

    def __init__(self, cluster, storage_class: str) -> None:
        self.cluster = cluster
        self.storage_class = storage_class
        self.fails_on: set[str] = set()
        self.gave_up: list[tuple[str, str]] = []
        self.made: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def working(self) -> Iterator["Provisioner"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            for claim in self.cluster.api("GET", CLAIMS)["items"]:
                if claim["spec"].get("storageClassName") == self.storage_class:
                    try:
                        self._serve(claim)
                    except ApiError as error:
                        if error.status not in (404, 409):
                            raise

    def _serve(self, claim: dict) -> None:
        meta = claim["metadata"]
        node = (meta.get("annotations") or {}).get(SELECTED)
        name = f"pv-{meta['uid']}"
        if not node or claim["spec"].get("volumeName") or name in self.made:
            return
        if node in self.fails_on:
            self.gave_up.append((meta["name"], node))
            path = f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims/{meta['name']}"
            gone = {"metadata": {"annotations": {SELECTED: None}}}
            self.cluster.api("PATCH", path, gone, content_type=MERGE)
            return
        ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": meta["uid"]}
        ref |= {"namespace": meta["namespace"], "name": meta["name"]}
        csi = {"driver": "csi.example", "volumeHandle": name}
        made = volume(name, self.storage_class, node, claimRef=ref, csi=csi)
        self.cluster.api("POST", VOLUMES, made)
        self.made.append(name)


@pytest.fixture
def storage_class(cluster, world) -> Iterator[str]:
    """A class whose claims wait for their first pod; its driver is played by the test."""
    yield from _class(cluster, world, "csi.example")


@pytest.fixture
def local_class(cluster, world) -> Iterator[str]:
    """A class whose volumes nobody makes."""
    yield from _class(cluster, world, "kubernetes.io/no-provisioner")


def _class(cluster, world, provisioner: str) -> Iterator[str]:
    name = f"{world.namespace}-{provisioner.rpartition('/')[2].replace('.', '-')}"
    body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    cluster.api("POST", CLASSES, body)
    yield name
    cluster.api("DELETE", f"{CLASSES}/{name}")
    for one in cluster.api("GET", VOLUMES)["items"]:
        if one["spec"].get("storageClassName") == name:
            cluster.api("DELETE", f"{VOLUMES}/{one['metadata']['name']}")


def claim(name: str, storage_class: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def with_claims(pods: list[dict], storage_class: str) -> list[dict]:
    """Give each pod a claim of its own; return the claims."""
    claims = []
    for pod in pods:
        name = f"data-{pod['metadata']['name']}"
        source = {"claimName": name}
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": source}]
        claims.append(claim(name, storage_class))
    return claims
