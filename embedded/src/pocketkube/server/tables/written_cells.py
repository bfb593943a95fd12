"""The cells that no path gives: states, ports, roles. ``cells.yaml`` names them by ``@word``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pocketkube.objects import Object, annotations_of, labels_of, meta, name_of, parsed_time_s
from pocketkube.server.tables.words import NONE, UNKNOWN, UNSET, condition, duration

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"
_CLASS = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Conditions and what is shown for the first that is true; "" is that of being deleted."""


def _spec(obj: Object) -> Mapping[str, Any]:
    return obj.get("spec") or {}


def _status(obj: Object) -> Mapping[str, Any]:
    return obj.get("status") or {}


# Nodes


def _node_state(obj: Object, _: float) -> str:
    ready = condition(_status(obj).get("conditions"), "Ready")
    state = ("Ready" if ready.get("status") == "True" else "NotReady") if ready else "Unknown"
    return state + (",SchedulingDisabled" if _spec(obj).get("unschedulable") else "")


def _node_roles(obj: Object, _: float) -> str:
    roles = {
        key.removeprefix(_ROLE_PREFIX) if key.startswith(_ROLE_PREFIX) else value
        for key, value in labels_of(obj).items()
        if key.startswith(_ROLE_PREFIX) or key == _ROLE
    }
    return ",".join(sorted(roles - {""})) or NONE


def _address(kind: str) -> Callable[[Object, float], str]:
    def cell(obj: Object, _: float) -> str:
        given = _status(obj).get("addresses") or []
        return next((one["address"] for one in given if one.get("type") == kind), NONE)

    return cell


def _kernel(obj: Object, _: float) -> str:
    info = _status(obj).get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel


# Jobs, CronJobs and gangs


def _job_state(obj: Object, _: float) -> str:
    given = _status(obj).get("conditions")
    for kind, shown in _JOB_STATES:
        if not kind and "deletionTimestamp" in meta(obj):
            return shown
        if kind and condition(given, kind).get("status") == "True":
            return shown
    return "Running"


def _completions(obj: Object, _: float) -> str:
    spec, succeeded = _spec(obj), _status(obj).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Object, now_s: float) -> str:
    status = _status(obj)
    if not status.get("startTime"):
        return ""
    end = status.get("completionTime")
    end_s = parsed_time_s(end) if end else now_s
    return duration(end_s - parsed_time_s(status["startTime"]))


def _suspend(obj: Object, _: float) -> str:
    suspend = _spec(obj).get("suspend")
    return UNSET if suspend is None else str(bool(suspend))


def _gang_policy(obj: Object, _: float) -> str:
    return "Gang" if (_spec(obj).get("schedulingPolicy") or {}).get("gang") is not None else "Basic"


def _gang_workload(obj: Object, _: float) -> str:
    template = _spec(obj).get("podGroupTemplateRef") or {}
    named = (template.get("workload") or {}).get("workloadName") if template else NONE
    return named or ""


def _gang_state(obj: Object, _: float) -> str:
    conditions = _status(obj).get("conditions")
    disrupted = condition(conditions, "DisruptionTarget")
    if disrupted:
        return str(disrupted.get("reason", ""))
    scheduled = condition(conditions, "PodGroupScheduled").get("status")
    return {None: "Pending", "True": "Scheduled"}.get(scheduled, "Unschedulable")


# Services


def _cluster_ip(obj: Object, _: float) -> str:
    addresses = _spec(obj).get("clusterIPs") or []
    return addresses[0] if addresses else NONE


def _external(obj: Object, now_s: float) -> str:
    spec = _spec(obj)
    own = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case "LoadBalancer":
            return ",".join(one for one in (_balanced(obj, now_s), *own) if one) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return UNKNOWN


def _balanced(obj: Object, _: float) -> str:
    """Write the addresses that a load balancer has given."""
    points = (_status(obj).get("loadBalancer") or {}).get("ingress") or []
    found = {point.get("ip") or point.get("hostname") for point in points}
    return ",".join(sorted(one for one in found if one))


def _service_ports(obj: Object, _: float) -> str:
    def written(port: Mapping[str, Any]) -> str:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port', 0)}{node}/{port.get('protocol', '')}"

    return ",".join(written(port) for port in _spec(obj).get("ports") or []) or NONE


# Volumes and devices


def _modes(given: Sequence[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (given or ()))


def _phase(obj: Object, _: float) -> str:
    return "Terminating" if "deletionTimestamp" in meta(obj) else _status(obj).get("phase", "")


def _storage_class(obj: Object, _: float) -> str:
    return annotations_of(obj).get(_CLASS) or _spec(obj).get("storageClassName") or ""


def _class_name(obj: Object, _: float) -> str:
    is_default = any(annotations_of(obj).get(key) == "true" for key in _IS_DEFAULT)
    return name_of(obj) + (" (default)" if is_default else "")


def _claim(obj: Object, _: float) -> str:
    claim = _spec(obj).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _claim_capacity(obj: Object, _: float) -> str:
    has_volume = _spec(obj).get("volumeName")
    return (_status(obj).get("capacity") or {}).get("storage", "0") if has_volume else ""


def _claim_modes(obj: Object, _: float) -> str:
    return _modes(_status(obj).get("accessModes")) if _spec(obj).get("volumeName") else ""


def _claim_state(obj: Object, _: float) -> str:
    status, is_deleted = _status(obj), "deletionTimestamp" in meta(obj)
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated"] + (["reserved"] if status.get("reservedFor") else [])
    elif not is_deleted:
        states.append("pending")
    return ",".join(states)


# Quotas and roles


def _quota(of_limits: bool) -> Callable[[Object, float], str]:
    def cell(obj: Object, _: float) -> str:
        used, hard = _status(obj).get("used") or {}, _status(obj).get("hard") or {}
        names = [one for one in sorted(hard) if one.startswith("limits.") is of_limits]
        return ", ".join(f"{one}: {used.get(one, '0')}/{hard[one]}" for one in names)

    return cell


def _role(obj: Object, _: float) -> str:
    role = obj.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _subjects(kind: str) -> Callable[[Object, float], str]:
    def cell(obj: Object, _: float) -> str:
        found = [one for one in obj.get("subjects") or [] if one.get("kind") == kind]
        in_namespace = kind == "ServiceAccount"
        return ", ".join(
            f"{one.get('namespace', '')}/{one.get('name', '')}" if in_namespace else one["name"]
            for one in found
        )

    return cell


WRITTEN: Mapping[str, Callable[[Object, float], Any]] = {
    "accounts": _subjects("ServiceAccount"),
    "claim": _claim,
    "claim_capacity": _claim_capacity,
    "claim_modes": _claim_modes,
    "claim_state": _claim_state,
    "class_name": _class_name,
    "cluster_ip": _cluster_ip,
    "completions": _completions,
    "external": _external,
    "external_ip": _address("ExternalIP"),
    "gang_policy": _gang_policy,
    "gang_state": _gang_state,
    "gang_workload": _gang_workload,
    "groups": _subjects("Group"),
    "internal_ip": _address("InternalIP"),
    "job_duration": _job_duration,
    "job_state": _job_state,
    "kernel": _kernel,
    "node_roles": _node_roles,
    "node_state": _node_state,
    "phase": _phase,
    "quota_limits": _quota(of_limits=True),
    "quota_requests": _quota(of_limits=False),
    "role": _role,
    "service_ports": _service_ports,
    "storage_class": _storage_class,
    "suspend": _suspend,
    "users": _subjects("User"),
    "volume_modes": lambda obj, _: _modes(_spec(obj).get("accessModes")),
}
