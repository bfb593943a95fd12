"""What a Deployment asks of its ReplicaSets: pure functions over objects.

Source: ``pkg/controller/deployment`` (sync.go, rolling.go, util) of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

from pocketkube.controllers.conditions import condition_of, with_condition
from pocketkube.controllers.templates import owner_reference, scaled_value
from pocketkube.objects import Object, annotations_of, parsed_time_s, rfc3339

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    }
)
Scaling = tuple[Object, int]
"""A ReplicaSet and the replicas it shall have."""


def size(replica_set: Object) -> int:
    """Return the replicas that a ReplicaSet is asked for."""
    return int(replica_set["spec"].get("replicas", 1))


def total(replica_sets: list[Object], field: str = "") -> int:
    """Return the sum of the replicas asked for, or of a field of their statuses."""
    if not field:
        return sum(map(size, replica_sets))
    return sum((rs.get("status") or {}).get(field, 0) for rs in replica_sets)


def is_rolling(deployment: Object) -> bool:
    """Tell whether pods are replaced step by step."""
    return bool(deployment["spec"].get("strategy", {}).get("type", "RollingUpdate") != "Recreate")


def limits(deployment: Object) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable in pods; never both 0."""
    replicas = size(deployment)
    if not is_rolling(deployment) or replicas == 0:
        return 0, 0
    given = deployment["spec"].get("strategy", {}).get("rollingUpdate") or {}
    surge = scaled_value(given.get("maxSurge"), replicas, up=True, otherwise="25%")
    unavailable = scaled_value(given.get("maxUnavailable"), replicas, up=False, otherwise="25%")
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, replicas)


def new_of(deployment: Object, replica_sets: list[Object]) -> Object | None:
    """Return the ReplicaSet whose template is the Deployment's; the oldest if there are more."""
    wanted = deployment["spec"]["template"]
    return next(
        (rs for rs in by_age(replica_sets) if _plain(rs["spec"]["template"]) == wanted), None
    )


def _plain(template: Object) -> Object:
    metadata = dict(template.get("metadata") or {})
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    metadata["labels"] = labels
    if not labels:
        del metadata["labels"]
    return {**template, "metadata": metadata}


def by_age(replica_sets: list[Object]) -> list[Object]:
    """Return the oldest first."""
    return sorted(
        replica_sets, key=lambda rs: (rs["metadata"]["creationTimestamp"], rs["metadata"]["name"])
    )


def revision_of(obj: Object) -> int:
    """Return the revision that the annotation says; 0 when there is none."""
    text = annotations_of(obj).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def copied_annotations(deployment: Object) -> dict[str, str]:
    """Return the annotations that a ReplicaSet takes over from its Deployment."""
    return {k: v for k, v in annotations_of(deployment).items() if k not in _NOT_COPIED}


def replica_annotations(deployment: Object) -> dict[str, str]:
    """Return the annotations that remember how large the Deployment was."""
    surge, _ = limits(deployment)
    replicas = size(deployment)
    return {DESIRED: str(replicas), MAXIMUM: str(replicas + surge)}


def new_replica_set(deployment: Object, hash_: str, revision: int, others: list[Object]) -> Object:
    """Return the ReplicaSet of the Deployment's template; ``others`` are those there already."""
    template = deployment["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), HASH_LABEL: hash_}
    selector = deployment["spec"]["selector"]
    matched = {**(selector.get("matchLabels") or {}), HASH_LABEL: hash_}
    spec: dict[str, Any] = {
        "replicas": new_size(deployment, None, others),
        "selector": {**selector, "matchLabels": matched},
        "template": {**template, "metadata": {**metadata, "labels": labels}},
    }
    if deployment["spec"].get("minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    annotations = {
        **copied_annotations(deployment),
        **replica_annotations(deployment),
        REVISION: str(revision),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{deployment['metadata']['name']}-{hash_}",
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": spec,
    }


def new_size(deployment: Object, new: Object | None, replica_sets: list[Object]) -> int:
    """Return the replicas that the new ReplicaSet may have now, among all."""
    wanted = size(deployment)
    if not is_rolling(deployment):
        return wanted
    current = 0 if new is None else size(new)
    room = wanted + limits(deployment)[0] - total(replica_sets)
    return current if room <= 0 else current + min(room, max(0, wanted - current))


def rolling_step(deployment: Object, new: Object, old: list[Object]) -> list[Scaling]:
    """Return what a rolling update scales next: the new one up, or old ones down."""
    wanted, everything = size(deployment), [*old, new]
    if size(new) > wanted:
        return [(new, wanted)]
    grown = new_size(deployment, new, everything)
    if grown != size(new):
        return [(new, grown)]
    minimum = wanted - limits(deployment)[1]
    new_unavailable = size(new) - total([new], "availableReplicas")
    may_go = total(everything) - minimum - new_unavailable
    if not old or may_go <= 0:
        return []
    shrunk = _without_unhealthy(by_age(old), may_go)
    left = {rs["metadata"]["uid"]: replicas for rs, replicas in shrunk}
    may_go = total(everything, "availableReplicas") - minimum
    for rs in by_age(old):
        current = left.get(rs["metadata"]["uid"], size(rs))
        less = min(current, max(0, may_go))
        may_go -= less
        left[rs["metadata"]["uid"]] = current - less
    return [
        (rs, left[rs["metadata"]["uid"]]) for rs in old if left[rs["metadata"]["uid"]] != size(rs)
    ]


def _without_unhealthy(old: list[Object], at_most: int) -> list[Scaling]:
    result, gone = [], 0
    for rs in old:
        broken = size(rs) - total([rs], "availableReplicas")
        less = min(at_most - gone, max(0, broken))
        if less > 0:
            result.append((rs, size(rs) - less))
            gone += less
    return result


def paused_step(deployment: Object, new: Object | None, old: list[Object]) -> list[Scaling]:
    """Return what a new size changes while a rollout is paused: the newest that has pods."""
    last = sorted(old, key=revision_of, reverse=True)
    active = [rs for rs in [*([new] if new else []), *last] if size(rs) > 0]
    only = active[0] if active else new
    if only is None:
        return []
    wanted = max(0, size(deployment) - total(active[1:]))
    return [(only, wanted)] if size(only) != wanted else []


def status_of(
    deployment: Object, new: Object | None, replica_sets: list[Object], now_s: float
) -> dict[str, Any]:
    """Return the counts and the condition Available."""
    old = deployment.get("status") or {}
    available = total(replica_sets, "availableReplicas")
    counts = {
        "replicas": total(replica_sets, "replicas"),
        "updatedReplicas": total([new] if new else [], "replicas"),
        "readyReplicas": total(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total(replica_sets) - available),
        "collisionCount": old.get("collisionCount", 0),
    }
    status: dict[str, Any] = {field: number for field, number in counts.items() if number}
    status["terminatingReplicas"] = total(replica_sets, "terminatingReplicas")
    status["observedGeneration"] = deployment["metadata"].get("generation", 0)
    enough = available >= size(deployment) - limits(deployment)[1]
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    now = condition("Available", "True" if enough else "False", reason, message, now_s)
    status["conditions"] = with_condition(old.get("conditions"), now)
    return status


def with_failures(
    conditions: list[dict[str, Any]], new: Object | None, replica_sets: list[Object]
) -> list[dict[str, Any]]:
    """Return the conditions with what keeps a ReplicaSet from making pods, the newest one first.

    Source: getReplicaFailures in ``pkg/controller/deployment/progress.go``.
    """
    for one in [new, *replica_sets] if new else replica_sets:
        found = condition_of((one.get("status") or {}).get("conditions"), "ReplicaFailure")
        if found is not None:
            failure = {**found, "lastUpdateTime": found["lastTransitionTime"]}
            return with_condition(conditions, failure)
    return [one for one in conditions if one["type"] != "ReplicaFailure"]


def condition(type_: str, status: str, reason: str, message: str, now_s: float) -> dict[str, Any]:
    """Return a condition of a Deployment."""
    return {
        "type": type_,
        "status": status,
        "lastUpdateTime": rfc3339(now_s),
        "lastTransitionTime": rfc3339(now_s),
        "reason": reason,
        "message": message,
    }


def progress(
    deployment: Object, new: Object | None, status: dict[str, Any], now_s: float
) -> list[dict[str, Any]]:
    """Return the conditions with Progressing as the counts of ``status`` have it."""
    conditions: list[dict[str, Any]] = status["conditions"]
    if not has_deadline(deployment):
        return [c for c in conditions if c["type"] != "Progressing"]
    current = condition_of(conditions, "Progressing")
    done = current is not None and current["reason"] == "NewReplicaSetAvailable"
    if done and status.get("replicas", 0) == status.get("updatedReplicas", 0):
        return conditions
    name = new["metadata"]["name"] if new else deployment["metadata"]["name"]
    what = f'ReplicaSet "{name}"' if new else f'Deployment "{name}"'
    if _is_complete(deployment, status):
        message = f"{what} has successfully progressed."
        return with_condition(
            conditions, condition("Progressing", "True", "NewReplicaSetAvailable", message, now_s)
        )
    if _has_progressed(deployment.get("status") or {}, status):
        message = f"{what} is progressing."
        fresh = condition("Progressing", "True", "ReplicaSetUpdated", message, now_s)
        if current is not None and current["status"] == "True":
            fresh["lastTransitionTime"] = current["lastTransitionTime"]
        return [*(c for c in conditions if c["type"] != "Progressing"), fresh]
    if current is not None and not done and seconds_to_deadline(deployment, current, now_s) <= 0:
        message = f"{what} has timed out progressing."
        late = condition("Progressing", "False", "ProgressDeadlineExceeded", message, now_s)
        return with_condition(conditions, late)
    return conditions


def has_deadline(deployment: Object) -> bool:
    """Tell whether progress is watched: the largest number means that it is not."""
    deadline_s = deployment["spec"].get("progressDeadlineSeconds")
    return deadline_s is not None and deadline_s < 2**31 - 1


def seconds_to_deadline(deployment: Object, progressing: dict[str, Any], now_s: float) -> float:
    """Return how long a rollout may go on without progress."""
    since_s = parsed_time_s(progressing["lastUpdateTime"])
    return float(since_s + deployment["spec"]["progressDeadlineSeconds"] - now_s)


def _is_complete(deployment: Object, status: dict[str, Any]) -> bool:
    wanted = size(deployment)
    fields = ("updatedReplicas", "replicas", "availableReplicas")
    return all(status.get(field, 0) == wanted for field in fields)


def _has_progressed(old: dict[str, Any], new: dict[str, Any]) -> bool:
    def number(status: dict[str, Any], field: str) -> int:
        return int(status.get(field, 0))

    def outdated(status: dict[str, Any]) -> int:
        return number(status, "replicas") - number(status, "updatedReplicas")

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(number(new, f) > number(old, f) for f in grown) or outdated(new) < outdated(old)
