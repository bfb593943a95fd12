"""What objects use, by the names that ResourceQuotas and LimitRanges give it, in billionths.

In: objects as they are stored. Out: ``{"requests.cpu": 500_000_000, "pods": 1_000_000_000}``.
Source: ``pkg/quota/v1/evaluator/core`` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pocketkube.objects import Object
from pocketkube.registry.rules.pods.pod_resources import nano_amounts
from pocketkube.schema.quantities import NANO, nano_units, of_nano

Amounts = Mapping[str, int]

_PLAIN = ("cpu", "memory", "ephemeral-storage")
_FINISHED = ("Succeeded", "Failed")
_COUNTED = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    }
)


def used_by(bucket: str, obj: Object) -> Amounts:
    """Return what one object uses of its namespace's quotas."""
    used = Counter({f"count/{bucket}": NANO})
    if bucket == "pods":
        return used + _pod(obj)
    if bucket in _COUNTED:
        used[bucket] = NANO
    if bucket == "services":
        type_ = obj["spec"].get("type", "ClusterIP")
        ports = len(obj["spec"].get("ports") or ())
        used["services.loadbalancers"] = NANO * (type_ == "LoadBalancer")
        used["services.nodeports"] = NANO * ports * (type_ in ("LoadBalancer", "NodePort"))
    if bucket == "persistentvolumeclaims":
        storage = nano_units(obj["spec"]["resources"]["requests"]["storage"])
        storage_class = obj["spec"].get("storageClassName")
        used["requests.storage"] = storage
        if storage_class:
            of_class = f"{storage_class}.storageclass.storage.k8s.io"
            used[f"{of_class}/requests.storage"] = storage
            used[f"{of_class}/persistentvolumeclaims"] = NANO
    return used


def written(name: str, amount: int) -> str:
    """Return an amount as a quantity: bytes in powers of 1024 where that is exact."""
    return of_nano(amount, binary=name.endswith(("memory", "storage")))


def _pod(pod: Object) -> Counter[str]:
    if (pod.get("status") or {}).get("phase") in _FINISHED:
        return Counter()
    used = Counter({"pods": NANO})
    for field in ("requests", "limits"):
        for name, amount in nano_amounts(pod["spec"], field).items():
            used[f"{field}.{name}"] += amount
            if field == "requests" and name in _PLAIN:
                used[name] += amount
    return used
