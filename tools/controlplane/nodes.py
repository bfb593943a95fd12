"""Fake nodes, born ready. In: names and resources. Out: Node manifests, created in parallel.

Called by ``cluster``. kwok plays their kubelets, because of the annotation they carry.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from tools.controlplane import versions
from tools.controlplane.client import ApiClient

ALLOCATABLE = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "100Gi", "pods": "110"}
ANNOTATION = {"kwok.x-k8s.io/node": "fake"}
# The controller manager adds the old ones where they are missing: one more write for each node.
_LABELS = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": "amd64",
}
_CONDITIONS = {
    "Ready": "True",
    "MemoryPressure": "False",
    "DiskPressure": "False",
    "PIDPressure": "False",
}
_THREADS = 8

Labels = Mapping[str, str] | Callable[[int], Mapping[str, str]]


def manifest(
    name: str,
    allocatable: Mapping[str, str],
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
    annotations: Mapping[str, str] = ANNOTATION,
) -> dict[str, Any]:
    """Describe a node that is ready; the API server keeps the status that a new node brings."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {"type": kind, "status": status, "lastHeartbeatTime": now, "lastTransitionTime": now}
        for kind, status in _CONDITIONS.items()
    ]
    own_labels = {**_LABELS, "kubernetes.io/hostname": name}
    resources = {**ALLOCATABLE, **allocatable}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**own_labels, **labels},
            "annotations": dict(annotations),
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": conditions,
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": _node_info(),
        },
    }


def create(
    client: ApiClient,
    names: Sequence[str],
    *,
    allocatable: Mapping[str, str],
    labels: Labels,
    taints: Sequence[Mapping[str, str]],
    annotations: Mapping[str, str] = ANNOTATION,
) -> None:
    """Create the nodes; ``labels`` may be a function of the node's position in ``names``."""

    def create_slice(first: int) -> None:
        for index in range(first, len(names), _THREADS):
            own = labels(index) if callable(labels) else labels
            node = manifest(names[index], allocatable, own, taints, annotations)
            client.api("POST", "/api/v1/nodes", node)
        client.close()

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(create_slice, range(_THREADS)))


def _node_info() -> dict[str, str]:
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "kubeletVersion": versions.KUBERNETES,
        "kubeProxyVersion": versions.KUBERNETES,
        "containerRuntimeVersion": f"kwok://{versions.KWOK}",
        "bootID": "",
        "kernelVersion": "",
        "machineID": "",
        "osImage": "",
        "systemUUID": "",
    }
