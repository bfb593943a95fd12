"""ResourceQuotas: how much the objects of a namespace may use in all.

``charge`` is asked before an object is created; ``recount`` says what is in use, for the quota's
status. Source: ``staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota`` and
``pkg/quota/v1`` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pocketkube import errors
from pocketkube.api.admission.amounts import Amounts, used_by, written
from pocketkube.objects import Object, name_of
from pocketkube.schema.quantities import nano_units
from pocketkube.schema.resource import Resource
from pocketkube.store.store import Store

QUOTAS = "resourcequotas"
_COMPUTE = ("cpu", "memory", "requests.", "limits.")


def charge(store: Store, resource: Resource, obj: Object, *, dry_run: bool) -> None:
    """Count a new object in the quotas of its namespace. Raises ApiError (403): too much.

    What is in use is kept in each quota's status, as upstream does.
    """
    namespace = obj["metadata"].get("namespace", "")
    if not namespace or resource.bucket in (QUOTAS, "events") or not store.count(QUOTAS):
        return
    wanted = used_by(resource.bucket, obj)
    charged = []
    for entry in store.entries(QUOTAS, namespace):
        quota = entry.object
        counts = _in_scope(quota["spec"], resource.bucket, obj)
        if counts and _charge_one(store, quota, resource, obj, wanted):
            charged.append(quota)
    if not dry_run:
        for quota in charged:
            store.put(QUOTAS, quota)


def _charge_one(
    store: Store, quota: Object, resource: Resource, obj: Object, wanted: Amounts
) -> bool:
    """Count the object in one quota's value; tell whether it changed. Raises ApiError (403)."""
    hard = quota["spec"].get("hard") or {}
    names = [name for name in hard if wanted.get(name)]
    missing = _missing(resource.bucket, obj, hard)
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
            ",".join(f"{name}={written(name, amounts.get(name, 0))}" for name in sorted(over))
            for amounts in (wanted, used)
        ]
        limits = ",".join(f"{name}={hard[name]}" for name in sorted(over))
        why = f"exceeded quota: {name_of(quota)}, requested: {told[0]}, used: {told[1]}"
        _refuse(resource, obj, f"{why}, limited: {limits}")
    for name in names:
        used[name] = used.get(name, 0) + wanted[name]
    quota["status"] = {**status, "used": {name: written(name, n) for name, n in used.items()}}
    return True


def recount(store: Store, quota: Object) -> dict[str, Any]:
    """Return the status of a quota, from all objects of its namespace that it counts."""
    hard = quota["spec"].get("hard") or {}
    used: Counter[str] = Counter()
    for bucket in _buckets_of(hard, store):
        for entry in store.entries(bucket, quota["metadata"]["namespace"]):
            obj = entry.object
            if _in_scope(quota["spec"], bucket, obj):
                used.update(used_by(bucket, obj))
    return {"hard": dict(hard), "used": {name: written(name, used[name]) for name in hard}}


def _buckets_of(hard: Mapping[str, str], store: Store) -> set[str]:
    found = {name.removeprefix("count/") for name in hard if name.startswith("count/")}
    for name in hard:
        if name == "pods" or (name.startswith(_COMPUTE) and "storage" not in name):
            found.add("pods")
        if name.startswith("services"):
            found.add("services")
        if name == "requests.storage" or "persistentvolumeclaims" in name or "storageclass" in name:
            found.add("persistentvolumeclaims")
        if "ephemeral-storage" in name:
            found.add("pods")
    return (found | {name for name in hard if "/" not in name}) & set(store.buckets())


def _missing(bucket: str, obj: Object, hard: Mapping[str, str]) -> str:
    """Return which requests and limits of containers a quota needs; empty when they are there."""
    if bucket != "pods":
        return ""
    lacking = []
    for name in sorted(hard):
        field, _, what = (
            name.rpartition(".")
            if name.startswith(("requests.", "limits."))
            else (
                "requests",
                "",
                name,
            )
        )
        if what not in ("cpu", "memory"):
            continue
        without = [
            one["name"]
            for one in obj["spec"].get("containers") or ()
            if what not in ((one.get("resources") or {}).get(field) or {})
        ]
        if without:
            lacking.append(f"{name} for: {','.join(without)}")
    return "; ".join(lacking)


def _refuse(resource: Resource, obj: Object, why: str) -> None:
    raise errors.forbidden(resource.group, resource.plural, name_of(obj), why)


def _in_scope(spec: Mapping[str, Any], bucket: str, obj: Object) -> bool:
    """Tell whether a quota's scopes take the object; quotas with scopes count pods alone."""
    scopes = [{"scopeName": one, "operator": "Exists"} for one in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return not scopes or (bucket == "pods" and all(_matches(one, obj) for one in scopes))


def _matches(scope: Mapping[str, Any], pod: Object) -> bool:
    spec, name = pod["spec"], str(scope["scopeName"])
    if name in ("Terminating", "NotTerminating"):
        return (spec.get("activeDeadlineSeconds") is not None) == (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        resources = [one.get("resources") or {} for one in containers]
        best_effort = not any(one.get("requests") or one.get("limits") for one in resources)
        return best_effort == (name == "BestEffort")
    if name == "PriorityClass":
        given, values = spec.get("priorityClassName") or "", scope.get("values") or ()
        match scope.get("operator"):
            case "In":
                return bool(given in values)
            case "NotIn":
                return bool(given not in values)
            case "DoesNotExist":
                return not given
        return bool(given)
    return False
