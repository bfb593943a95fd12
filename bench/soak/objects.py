"""What a large cluster holds: nodes, gangs, pods of other schedulers, all as large as real ones.

Out: JSON bodies. Called by ``soak.seed``, which fills a cluster with copies of a few of them, and
by ``soak.load``, which lets others come and go.
"""

from typing import Any

from bench.cluster.cases import GANG_LABEL, POD_REQUESTS
from quorate.core.model import GangKey
from quorate.core.model.journal import entry_of
from quorate.dialects import coscheduler as dialect
from quorate.shell.annotations import ATTEMPT, ATTEMPT_SIZE, GANG, STARTED

NODE = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
NAMESPACES = 20
CHURN, FOREIGN_CHURN = "soak-gangs", "soak-foreign"
RUNNING_SIZE = 8
FOREIGN_REQUESTS = ("100m", "200m", "250m", "500m", "750m", "1")
_PADDING = "soak.quorate.dev/padding"
_NOW = "2026-11-01T00:00:00Z"
Json = dict[str, Any]


def namespace(number: int) -> str:
    """Name one of the namespaces of seeded pods; all names are equally long."""
    return f"soak-{number:02d}"


def node(name: str) -> Json:
    """Describe a node; its status comes with it."""
    kinds = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    images = [
        {"names": [f"registry.example/team/image-{i}@sha256:{i:064d}"], "sizeBytes": 10**9 + i}
        for i in range(20)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": "zone-a",
            },
        },
        "status": {
            "capacity": NODE,
            "allocatable": NODE,
            "conditions": [
                {"type": kind, "status": str(kind == "Ready"), "lastHeartbeatTime": _NOW}
                for kind in kinds
            ],
            "addresses": [{"type": "Hostname", "address": name}],
            "images": images,
        },
    }


def foreign_pod(name: str, app: str, node_name: str, cpu: str, padding: int = 0) -> Json:
    """Describe a pod of another scheduler that is on a node already."""
    metadata: Json = {
        "name": name,
        "labels": {"app": app, "pod-template-hash": "5d8f7c9b64", "team": "platform"},
        "annotations": {_PADDING: "x" * padding},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{app}-5d8f7c9b64",
                "uid": "0b8b4d9e-4f5e-4c22-9d5c-3a1c0a1b2c3d",
                "controller": True,
            }
        ],
    }
    requests = {"cpu": cpu, "memory": "256Mi"}
    return _pod(metadata, "default-scheduler", requests, node_name)


def running_member(name: str, gang: str, where: str, node_name: str, padding: int = 0) -> Json:
    """Describe a member of a gang of ours that was bound a while ago, as our Bindings leave it."""
    metadata: Json = {
        "name": name,
        "labels": {dialect.MEMBER_LABEL: gang, dialect.MIN_LABEL: str(RUNNING_SIZE)},
        "annotations": {
            ATTEMPT: f"seed-{gang}",
            ATTEMPT_SIZE: str(RUNNING_SIZE),
            GANG: entry_of(GangKey(where, dialect.NAME, gang)),
            STARTED: "true",
            _PADDING: "x" * padding,
        },
    }
    return _pod(metadata, "quorate", POD_REQUESTS, node_name)


def waiting_member(name: str, gang: str, size: int, requests: dict[str, str]) -> Json:
    """Describe a member of a gang that is to be bound."""
    labels = {GANG_LABEL: gang, dialect.MEMBER_LABEL: gang, dialect.MIN_LABEL: str(size)}
    return _pod({"name": name, "labels": labels}, "quorate", requests, "")


def running_status(pod_ip: str = "10.0.0.1") -> Json:
    """Describe the status of a pod that runs, as a kubelet writes it."""
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "hostIP": "192.0.2.10",
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": _NOW,
        "qosClass": "Burstable",
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": _NOW} for kind in kinds
        ],
        "containerStatuses": [
            {
                "name": name,
                "image": f"registry.example/team/{name}:1",
                "imageID": f"registry.example/team/{name}@sha256:{0:064d}",
                "containerID": f"containerd://{0:064d}",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": _NOW}},
            }
            for name in ("main", "sidecar")
        ],
    }


def _pod(metadata: Json, scheduler: str, requests: dict[str, str], node_name: str) -> Json:
    spec: Json = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "containers": [
            _container("main", requests),
            _container("sidecar", {"cpu": "10m", "memory": "32Mi"}),
        ],
        "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [
            {"name": "config", "configMap": {"name": "config", "optional": True}},
            {"name": "scratch", "emptyDir": {}},
        ],
    }
    if node_name:
        spec["nodeName"] = node_name
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(name: str, requests: dict[str, str]) -> Json:
    devices = {key: value for key, value in requests.items() if "/" in key}
    return {
        "name": name,
        "image": f"registry.example/team/{name}:1",
        "resources": {"requests": requests, "limits": devices},
        "env": [{"name": f"SETTING_{i}", "value": f"value-of-{name}-{i}"} for i in range(6)],
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/config", "readOnly": True},
            {"name": "scratch", "mountPath": "/scratch"},
        ],
        "ports": [{"name": "http", "containerPort": 8080}] if name == "main" else [],
    }
