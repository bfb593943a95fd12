"""A CSI provisioner, played by a thread: the part of late binding that is not in Kubernetes.

When a claim of its class is told a node, it makes a volume that only that node can use, kept for
the claim; kube-controller-manager completes the binding. On nodes in ``fails_on`` it gives up, as
the external provisioner does: it takes the node off the claim.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tools.controlplane import ApiError
from tools.testing import HANGS_S

CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SELECTED = "volume.kubernetes.io/selected-node"
HOSTNAME = "kubernetes.io/hostname"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
MERGE = "application/merge-patch+json"


def affinity(node: str) -> dict:
    expression = {"key": HOSTNAME, "operator": "In", "values": [node]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def volume(name: str, storage_class: str, node: str | None, **spec) -> dict:
    """Return a volume that only this node can use, or (None) any."""
    spec = spec or {"hostPath": {"path": "/mnt"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            **({"nodeAffinity": affinity(node)} if node else {}),
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
            self._thread.join(HANGS_S)

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


@contextmanager
def storage_classes(cluster, prefix: str) -> Iterator[tuple[str, str]]:
    """Make two classes whose claims wait for their first pod, and delete them and their volumes.

    The volumes of the first are made by whoever plays its driver; those of the second by nobody.
    """
    provisioners = {f"{prefix}-made": "csi.example", f"{prefix}-local": NO_PROVISIONER}
    for name, provisioner in provisioners.items():
        body = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        cluster.api("POST", CLASSES, body)
    made, local = provisioners
    yield made, local
    for name in provisioners:
        cluster.api("DELETE", f"{CLASSES}/{name}")
    for one in cluster.api("GET", VOLUMES)["items"]:
        if one["spec"].get("storageClassName") in provisioners:
            cluster.api("DELETE", f"{VOLUMES}/{one['metadata']['name']}")


def claims_of(world) -> dict[str, dict]:
    path = f"/api/v1/namespaces/{world.namespace}/persistentvolumeclaims"
    return {one["metadata"]["name"]: one for one in world.cluster.api("GET", path)["items"]}


def selected(world) -> list[str]:
    """Return the claims that were told a node."""
    return [
        name
        for name, one in claims_of(world).items()
        if SELECTED in (one["metadata"].get("annotations") or {})
    ]


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
