"""Where the core differs from kube-scheduler on purpose: each with a case that shows it.

Documented in docs/maintainers/parity.md. A case of random drawing never contains one of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Named(NamedTuple):
    """One deliberate difference: a case, what kube-scheduler says of it, and what we say.

    ``cleared`` is the node where pods are deleted for the pending pod.
    """

    name: str
    case: dict[str, Any]
    their_feasible: tuple[str, ...] = ()
    our_feasible: tuple[str, ...] = ()
    their_cleared: str = ""
    our_cleared: str = ""


def _node(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "10"}},
    }


def _pod(name: str, namespace: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c"}], **spec},
    }


def _namespace(name: str, kind: str) -> dict[str, Any]:
    meta = {"name": name, "labels": {"kind": kind}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


_ABSENCE = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "namespaceSelector": {
        "matchExpressions": [{"key": "kind", "operator": "NotIn", "values": ["prod"]}]
    },
}
_APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_ABSENCE]}}


_CSI = {"driver": "csi.example", "volumeHandle": "v"}
_FOR_ONE_POD = {
    "accessModes": ["ReadWriteOncePod"],
    "volumeName": "v",
    "resources": {"requests": {"storage": "1Gi"}},
}


def _user(name: str, namespace: str, priority: int, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    return _pod(name, namespace, priority=priority, volumes=_CLAIMS[:1], **spec)


def _devices(node: str, **attributes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0", "attributes": attributes}],
        },
    }


def _class(name: str = "gpu", **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


_FAST = 'device.attributes["gpu.example.com"].speed > 1'
_DEVICE_CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "mine", "namespace": "test"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}
_DEVICE_CLAIM["spec"]["devices"]["requests"][0]["exactly"] |= {
    "allocationMode": "ExactCount",
    "count": 1,
}
_USES = {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]}
_CLAIMS = [{"name": name, "persistentVolumeClaim": {"claimName": "c"}} for name in ("a", "b")]
_CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c", "namespace": "test", "uid": "c"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
_BOUND = {
    **_CLAIM,
    "metadata": {
        "name": "c",
        "namespace": "test",
        "uid": "c",
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
    },
    "spec": {**_CLAIM["spec"], "volumeName": "v"},  # type: ignore[dict-item]
}
_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def _volume(**spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            **spec,
        },
        "status": {"phase": "Available"},
    }


NAMED = (
    Named(
        # An attribute that one device lacks: there the expression has no value. kube-scheduler
        # gives the pod up as soon as it looks at that node.
        "an expression that is broken for some devices rules out their nodes only",
        {
            "nodes": [_node("n0"), _node("n1")],
            "pods": [],
            "pod": _pod("pending", "test", **_USES),
            "objects": [
                _namespace("test", "test"),
                _class(selectors=[{"cel": {"expression": _FAST}}]),
                _devices("n0", speed={"int": 2}),
                _devices("n1", model={"string": "a"}),
                _DEVICE_CLAIM,
            ],
        },
        their_feasible=(),
        our_feasible=("n0",),
    ),
    Named(
        # When VolumeRestrictions thinks a pod away, it looks at the names of its claims alone: a
        # pod of another namespace, whose claim happens to have the same name, would die in vain.
        "a pod whose claim only has the name of a wanted one is not deleted for it",
        {
            "nodes": [_node("n0"), _node("n1")],
            "pods": [
                _user("bystander", "other", 0, nodeName="n0"),
                _user("holder", "test", 100, nodeName="n1"),
            ],
            "pod": _user("pending", "test", 50),
            "objects": [
                _namespace("test", "test"),
                _namespace("other", "test"),
                {**_BOUND, "spec": _FOR_ONE_POD},
                _volume(claimRef={"namespace": "test", "name": "c", "uid": "c"}, csi=_CSI),
            ],
        },
        their_cleared="n0",
    ),
    Named(
        # The plugin loses the selector's answer and asks it anew with no labels at all, which
        # NotIn and DoesNotExist match: so pods of every namespace count, prod's too.
        "a namespaceSelector of absence means the namespaces that it matches",
        {
            "nodes": [_node("n0"), _node("n1")],
            "pods": [_pod("running", "prod", nodeName="n0")],
            "pod": _pod("pending", "test", affinity=_APART),
            "objects": [_namespace("prod", "prod"), _namespace("test", "test")],
        },
        their_feasible=("n1",),
        our_feasible=("n0", "n1"),
    ),
    Named(
        # VolumeBinding looks for a volume for each of the pod's volumes, not for each claim.
        "a pod that names one unbound claim twice needs one volume",
        {
            "nodes": [_node("n0")],
            "pods": [],
            "pod": _pod("pending", "test", volumes=_CLAIMS),
            "objects": [
                _namespace("test", "test"),
                _CLASS,
                _CLAIM,
                _volume(local={"path": "/mnt"}),
            ],
        },
        their_feasible=(),
        our_feasible=("n0",),
    ),
)
