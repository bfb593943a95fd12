"""Controllers of pods, their budgets and their gangs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.objects import Object, controller_of, meta, name_of, parsed_time_s
from pocketkube.server.tables.table_cells.words import (
    NONE,
    UNSET,
    Cells,
    age,
    condition,
    containers,
    duration,
    labels,
    selector,
    since,
)


def _spec(obj: Object) -> Mapping[str, Any]:
    return obj.get("spec") or {}


def _status(obj: Object) -> Mapping[str, Any]:
    return obj.get("status") or {}


def _pod_spec(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return (spec.get("template") or {}).get("spec") or {}


def _deployment(obj: Object, now_s: float) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now_s),
        *containers(_pod_spec(spec)),
        selector(spec.get("selector"), none=""),
    ]


def _replica_set(obj: Object, now_s: float) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    chosen = spec.get("selector")
    is_map = obj.get("kind") == "ReplicationController"
    return [
        name_of(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now_s),
        *containers(_pod_spec(spec)),
        labels(chosen) if is_map else selector(chosen),
    ]


def _stateful_set(obj: Object, now_s: float) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name_of(obj), ready, age(obj, now_s), *containers(_pod_spec(spec))]


def _daemon_set(obj: Object, now_s: float) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    numbers = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name_of(obj),
        *(status.get(number, 0) for number in numbers),
        labels(_pod_spec(spec).get("nodeSelector")),
        age(obj, now_s),
        *containers(_pod_spec(spec)),
        selector(spec.get("selector")),
    ]


_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Conditions and what is shown for the first that is true; "" is that of being deleted."""


def _job(obj: Object, now_s: float) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    return [
        name_of(obj),
        _job_state(obj),
        _completions(spec, status),
        _job_duration(status, now_s),
        age(obj, now_s),
        *containers(_pod_spec(spec)),
        selector(spec.get("selector")),
    ]


def _job_state(obj: Object) -> str:
    given = _status(obj).get("conditions")
    for kind, shown in _JOB_STATES:
        if not kind and "deletionTimestamp" in meta(obj):
            return shown
        if kind and condition(given, kind).get("status") == "True":
            return shown
    return "Running"


def _completions(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    succeeded = status.get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Mapping[str, Any], now_s: float) -> str:
    if not status.get("startTime"):
        return ""
    end = status.get("completionTime")
    end_s = parsed_time_s(end) if end else now_s
    return duration(end_s - parsed_time_s(status["startTime"]))


def _cron_job(obj: Object, now_s: float) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    last = status.get("lastScheduleTime")
    suspend = spec.get("suspend")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        UNSET if suspend is None else str(bool(suspend)),
        len(status.get("active") or []),
        since(last, now_s) if last else NONE,
        age(obj, now_s),
        *containers(_pod_spec(job)),
        selector(job.get("selector")),
    ]


def _controller_revision(obj: Object, now_s: float) -> list[Any]:
    owner = controller_of(obj)
    name = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = owner.get("kind", "").lower()
        name = f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return [name_of(obj), name, obj.get("revision", 0), age(obj, now_s)]


def _disruption_budget(obj: Object, now_s: float) -> list[Any]:
    spec = _spec(obj)
    bounds = [
        "N/A" if spec.get(key) is None else str(spec[key])
        for key in ("minAvailable", "maxUnavailable")
    ]
    allowed = _status(obj).get("disruptionsAllowed", 0)
    return [name_of(obj), *bounds, allowed, age(obj, now_s)]


def _pod_template(obj: Object, _now_s: float) -> list[Any]:
    template = obj.get("template") or {}
    shown = labels((template.get("metadata") or {}).get("labels"))
    return [name_of(obj), *containers(template.get("spec")), shown]


def _pod_group(obj: Object, now_s: float) -> list[Any]:
    spec, conditions = _spec(obj), _status(obj).get("conditions")
    policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") is not None else "Basic"
    state = "Pending"
    scheduled = condition(conditions, "PodGroupScheduled")
    if scheduled:
        state = "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    disrupted = condition(conditions, "DisruptionTarget")
    if disrupted:
        state = disrupted.get("reason", "")
    template = spec.get("podGroupTemplateRef") or {}
    workload = (template.get("workload") or {}).get("workloadName") if template else NONE
    return [name_of(obj), policy, workload or "", state, age(obj, now_s)]


def _autoscaler(obj: Object, now_s: float) -> list[Any]:
    """TARGETS are those of utilisation alone: nothing here measures others."""
    spec, status = _spec(obj), _status(obj)
    target = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _targets(spec),
        UNSET if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now_s),
    ]


def _targets(spec: Mapping[str, Any]) -> str:
    wanted = spec.get("targetCPUUtilizationPercentage")  # autoscaling/v1
    shown = [] if wanted is None else [f"cpu: <unknown>/{wanted}%"]
    for metric in spec.get("metrics") or []:
        resource = metric.get("resource") or {}
        percent = (resource.get("target") or {}).get("averageUtilization")
        if percent is not None:
            shown.append(f"{resource.get('name')}: <unknown>/{percent}%")
    return ", ".join(shown[:2]) or NONE


CELLS: Mapping[str, Cells] = {
    "controllerrevisions.apps": _controller_revision,
    "cronjobs.batch": _cron_job,
    "daemonsets.apps": _daemon_set,
    "deployments.apps": _deployment,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "jobs.batch": _job,
    "poddisruptionbudgets.policy": _disruption_budget,
    "podgroups.scheduling.k8s.io": _pod_group,
    "podtemplates": _pod_template,
    "replicasets.apps": _replica_set,
    "replicationcontrollers": _replica_set,
    "statefulsets.apps": _stateful_set,
}
