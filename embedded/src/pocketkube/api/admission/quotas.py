"""ResourceQuotas: how much the pods of a namespace may ask for, and how many objects there may be.

``charge`` is asked before an object is created; ``recount`` says what is in use, for the quota's
status. Amounts are in billionths, by the names that quotas give them: ``requests.cpu``, ``pods``,
``count/jobs.batch``. Others, and other scopes than of priorities, are refused
(``registry.rules.core``). Source: ``pkg/quota/v1`` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pocketkube import errors
from pocketkube.objects import Object, name_of
from pocketkube.registry.rules.core import QUOTA_PARTS
from pocketkube.registry.rules.pods.pod_resources import nano_amounts
from pocketkube.schema.quantities import NANO, nano_units, of_nano
from pocketkube.schema.resource import Resource
from pocketkube.store.store import Store

QUOTAS = "resourcequotas"


def charge(store: Store, resource: Resource, obj: Object, *, dry_run: bool) -> None:
    """Count a new object in the quotas of its namespace. Raises ApiError (403): too much.

    What is in use is kept in each quota's status, as upstream does.
    """
    namespace = obj["metadata"].get("namespace", "")
    if not namespace or resource.bucket in (QUOTAS, "events") or not store.count(QUOTAS):
        return
    wanted = _used_by(resource.bucket, obj)
    quotas = [entry.object for entry in store.entries(QUOTAS, namespace)]
    quotas = [quota for quota in quotas if _in_scope(quota["spec"], resource.bucket, obj)]
    charged = [quota for quota in quotas if _charge_one(store, quota, resource, obj, wanted)]
    if not dry_run:
        for quota in charged:
            store.put(QUOTAS, quota)


def _charge_one(
    store: Store, quota: Object, resource: Resource, obj: Object, wanted: Mapping[str, int]
) -> bool:
    """Count the object in one quota's value; tell whether it changed. Raises ApiError (403)."""
    hard = quota["spec"].get("hard") or {}
    names = [name for name in hard if wanted.get(name)]
    missing = _missing(obj, hard) if resource.bucket == "pods" else ""
    if missing:
        _refuse(resource, obj, f"failed quota: {name_of(quota)}: must specify {missing}")
    if not names:
        return False
    status = quota.get("status") or {}
    if status.get("hard") != hard:
        status = recount(store, quota)
    used = {name: nano_units(amount) for name, amount in (status.get("used") or {}).items()}
    over = [n for n in names if used.get(n, 0) + wanted[n] > nano_units(hard[n])]
    if over:
        told = [
            ",".join(f"{name}={_written(name, amounts.get(name, 0))}" for name in sorted(over))
            for amounts in (wanted, used)
        ]
        limits = ",".join(f"{name}={hard[name]}" for name in sorted(over))
        why = f"exceeded quota: {name_of(quota)}, requested: {told[0]}, used: {told[1]}"
        _refuse(resource, obj, f"{why}, limited: {limits}")
    for name in names:
        used[name] = used.get(name, 0) + wanted[name]
    quota["status"] = {**status, "used": {name: _written(name, n) for name, n in used.items()}}
    return True


def recount(store: Store, quota: Object) -> dict[str, Any]:
    """Return the status of a quota, from all objects of its namespace that it counts."""
    hard = quota["spec"].get("hard") or {}
    used: Counter[str] = Counter()
    counted = {name.removeprefix("count/") for name in hard if name.startswith("count/")}
    for bucket in (counted | {"pods"}) & set(store.buckets()):
        for entry in store.entries(bucket, quota["metadata"]["namespace"]):
            obj = entry.object
            if _in_scope(quota["spec"], bucket, obj):
                used.update(_used_by(bucket, obj))
    return {"hard": dict(hard), "used": {name: _written(name, used[name]) for name in hard}}


def _in_scope(spec: Mapping[str, Any], bucket: str, obj: Object) -> bool:
    """Tell whether a quota takes the object: one with scopes takes pods of some priorities."""
    scopes = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return not scopes or (
        bucket == "pods"
        and all(obj["spec"].get("priorityClassName") in scope["values"] for scope in scopes)
    )


def _used_by(bucket: str, obj: Object) -> Mapping[str, int]:
    """Return what one object uses of its namespace's quotas."""
    used = Counter({f"count/{bucket}": NANO})
    if bucket != "pods" or (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return used
    used["pods"] = NANO
    for part in QUOTA_PARTS:
        for name, amount in nano_amounts(obj["spec"], part).items():
            used[f"{part}.{name}"] = amount
            if part == "requests":
                used[name] = amount
    return used


def _written(name: str, amount: int) -> str:
    """Return an amount as a quantity: bytes in powers of 1024 where that is exact."""
    return of_nano(amount, binary=name.endswith(("memory", "storage")))


def _missing(pod: Object, hard: Mapping[str, str]) -> str:
    """Return which requests and limits of containers a quota needs; empty when they are there."""
    lacking = []
    for name in sorted(hard):
        part, _, resource = name.rpartition(".")
        if resource not in ("cpu", "memory"):
            continue
        without = [
            container["name"]
            for container in pod["spec"].get("containers") or ()
            if resource not in ((container.get("resources") or {}).get(part or "requests") or {})
        ]
        if without:
            lacking.append(f"{name} for: {','.join(without)}")
    return "; ".join(lacking)


def _refuse(resource: Resource, obj: Object, why: str) -> None:
    raise errors.forbidden(resource.group, resource.plural, name_of(obj), why)
