"""Short ways to write the objects of a case. All are in the namespace default."""

from typing import Any

from tools import objects
from tools.objects import Object

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
DEFAULT = {"namespace": "default"}


def node(name: str, *, zone: str | None = None, cpu: str = "4", **spec: Any) -> Object:
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    return objects.node(name, labels=labels, allocatable={"cpu": cpu}, **spec)


def pod(
    name: str, *, on: str | None = None, cpu: str | None = None, app: str | None = None, **spec: Any
) -> Object:
    about = {"labels": {"app": app} if app else {}, "metadata": DEFAULT, "scheduler": None}
    where = {"nodeName": on} if on else {}
    return objects.pod(name, requests={"cpu": cpu} if cpu else None, **about, **where, **spec)


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
