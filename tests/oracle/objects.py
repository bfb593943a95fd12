"""Short ways to write the objects of a case. All are in the namespace default."""

from typing import Any

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

Object = dict[str, Any]


def node(name: str, *, zone: str | None = None, cpu: str = "4", **spec: Any) -> Object:
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def pod(
    name: str, *, on: str | None = None, cpu: str | None = None, app: str | None = None, **spec: Any
) -> Object:
    container: Object = {"name": "main", "image": "busybox"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": app} if app else {},
        },
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
    }


def named(kind: str, version: str, name: str, *, namespace: str = "", **fields: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def selecting(app: str) -> Object:
    return {"matchLabels": {"app": app}}


def required_affinity(kind: str, app: str, key: str = HOST) -> Object:
    term = {"labelSelector": selecting(app), "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(app: str, *, hard: bool, key: str = ZONE, **fields: Any) -> Object:
    when = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": selecting(app),
        **fields,
    }
