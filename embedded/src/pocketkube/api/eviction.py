"""The subresource ``eviction``: a deletion that PodDisruptionBudgets may forbid.

Source: ``pkg/registry/core/pod/storage/eviction.go`` of Kubernetes 1.36.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from pocketkube import errors
from pocketkube.api.api import Api
from pocketkube.api.lifecycle import check_deletion
from pocketkube.api.writing import FROM_INSIDE, Deleting, Writing
from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object, labels_of, say_disrupted

_BUDGETS = "poddisruptionbudgets.policy"
_RETRY_AFTER_S = 10


def evict(
    api: Api, namespace: str, name: str, eviction: Object, how: Writing = FROM_INSIDE
) -> None:
    """Delete a pod if its budgets allow it. Raises ApiError (400, 404, 409, 429, 500)."""
    given = (eviction.get("metadata") or {}).get("name")
    if given != name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    pods = api.registry.named("v1", "pods")
    api.admit("CREATE", pods, (namespace, name), eviction, None, how, subresource="eviction")
    entry = api.store.get("pods", namespace, name)
    if entry is None:
        raise errors.not_found("", "pods", name)
    pod = entry.object
    options = eviction.get("deleteOptions") or {}
    if not _is_free(pod):
        _use_budget(api, pod, dry_run=how.dry_run)
    deleting = Deleting(
        grace_period_s=options.get("gracePeriodSeconds"),
        uid=(options.get("preconditions") or {}).get("uid"),
        resource_version=(options.get("preconditions") or {}).get("resourceVersion"),
        dry_run=how.dry_run,
    )
    check_deletion(pods, pod, deleting)
    if not how.dry_run:
        why, told = "EvictionByEvictionAPI", "Eviction API: evicting"
        more = {"lastProbeTime": None}
        api.amend(
            "pods", namespace, name, lambda obj: say_disrupted(obj, why, told, api.now_s(), **more)
        )
        deleting = dataclasses.replace(deleting, resource_version=None)  # it has just changed
    api.delete(pods, namespace, name, deleting)


def _is_free(pod: Object) -> bool:
    """Tell whether no budget counts this pod: it is finished, pending or terminating already."""
    phase = pod.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _use_budget(api: Api, pod: Object, *, dry_run: bool) -> None:
    namespace = pod["metadata"]["namespace"]
    budgets = [
        budget
        for budget in api.find_all(_BUDGETS, namespace)
        if selector_of(budget["spec"].get("selector")).matches(labels_of(pod))
    ]
    for budget in budgets:
        if not _healthy(pod) and budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            continue
        _check_budget(budget)
        if not dry_run:
            _take_one(api, budget)


def _check_budget(budget: dict[str, Any]) -> None:
    status = budget.get("status") or {}
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.")
    if status.get("disruptionsAllowed", 0) <= 0:
        wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refused(
            f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        )


def _refused(message: str) -> errors.ApiError:
    error = errors.too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.", _RETRY_AFTER_S
    )
    error.details = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    return error


def _take_one(api: Api, budget: Object) -> None:
    def change(found: Object) -> None:
        found["status"]["disruptionsAllowed"] -= 1

    metadata = budget["metadata"]
    api.amend(_BUDGETS, metadata["namespace"], metadata["name"], change, subresource="status")


def _healthy(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
