"""Pods as manifests, and as the core is told of them."""

import json

from quorate.shell.watch.pod.decoding import PodDecoder

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
OWNED = frozenset({"quorate", "cw-coscheduler", "coscheduler"})


def manifest(spec=None, status=None, **metadata):
    base = {"name": "p", "namespace": "team-a", "uid": "u1"}
    containers = {"containers": [{"name": "c"}]}
    return {
        "metadata": base | metadata,
        "spec": containers | {"schedulerName": "quorate"} | (spec or {}),
        "status": status or {"phase": "Pending"},
    }


def decode(obj, owned=OWNED):
    return PodDecoder(owned).decode(json.dumps(obj).encode()).pod


def pod(spec=None, status=None, **metadata):
    decoded = decode(manifest(spec, status, **metadata))
    assert decoded.defect == ""
    return decoded
