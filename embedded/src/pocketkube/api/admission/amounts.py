"""What objects use, by the names that ResourceQuotas and LimitRanges give it, in billionths.

In: objects as they are stored. Out: ``{"requests.cpu": 500_000_000, "pods": 1_000_000_000}``.
Source: ``pkg/quota/v1/evaluator/core`` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pocketkube.objects import Object
from pocketkube.registry.quantities import NANO, nano_units, of_nano

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
    if not name.endswith(("memory", "storage")):
        return of_nano(amount)
    whole, rest = divmod(amount, NANO)
    suffixes = iter(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))
    suffix = ""
    while whole and not rest and whole % 1024 == 0 and suffix != "Ei":
        whole, suffix = whole // 1024, next(suffixes)
    return of_nano(amount) if rest else f"{whole}{suffix}"


def _pod(pod: Object) -> Counter[str]:
    if (pod.get("status") or {}).get("phase") in _FINISHED:
        return Counter()
    used = Counter({"pods": NANO})
    for field in ("requests", "limits"):
        for name, amount in pod_amounts(pod["spec"], field).items():
            used[f"{field}.{name}"] += amount
            if field == "requests" and name in _PLAIN:
                used[name] += amount
    return used


def pod_amounts(spec: Mapping[str, Any], field: str) -> Amounts:
    """Return the sum of a pod's ``requests`` or ``limits``, by resource.

    Init containers run one after the other, so the largest counts; those that stay (sidecars) are
    added to all that come after them. Source: ``PodRequests`` of k8s.io/component-helpers.
    """
    total = _sum(spec.get("containers") or (), field)
    stays: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in spec.get("initContainers") or ():
        own = _amounts_of(container, field)
        if container.get("restartPolicy") == "Always":
            stays.update(own)
            total.update(own)
            peak |= stays
        else:
            peak |= stays + own
    total |= peak
    whole = {
        name: nano_units(str(amount))
        for name, amount in ((spec.get("resources") or {}).get(field) or {}).items()
    }
    total = Counter({**total, **whole})
    total.update({n: nano_units(str(a)) for n, a in (spec.get("overhead") or {}).items()})
    return total


def _sum(containers: Iterable[Mapping[str, Any]], field: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for container in containers:
        total.update(_amounts_of(container, field))
    return total


def _amounts_of(container: Mapping[str, Any], field: str) -> Counter[str]:
    given = (container.get("resources") or {}).get(field) or {}
    return Counter({name: nano_units(str(amount)) for name, amount in given.items()})
