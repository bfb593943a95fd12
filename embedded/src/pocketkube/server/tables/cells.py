"""The cells of built-in kinds, as ``cells.yaml`` lists them.

In: an object of a built-in kind, and the time. Out: its cells. Source: Kubernetes 1.36
``pkg/printers/internalversion``, and Tables of a real API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import yaml

from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object, annotations_of, at, labels_of, meta, name_of, parsed_time_s
from pocketkube.registry.rules.events import to_core

Cells = Callable[[Object, float], list[Any]]
"""From an object and now_s to the cells of its row."""

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 24 * _HOUR_S
_YEAR_S = 365 * _DAY_S

_STEPS = (
    # shorter than, in this unit, and in this smaller one
    (2 * _MINUTE_S, 1, "s", 0, ""),
    (10 * _MINUTE_S, _MINUTE_S, "m", 1, "s"),
    (3 * _HOUR_S, _MINUTE_S, "m", 0, ""),
    (8 * _HOUR_S, _HOUR_S, "h", _MINUTE_S, "m"),
    (2 * _DAY_S, _HOUR_S, "h", 0, ""),
    (8 * _DAY_S, _DAY_S, "d", _HOUR_S, "h"),
    (2 * _YEAR_S, _DAY_S, "d", 0, ""),
    (8 * _YEAR_S, _YEAR_S, "y", _DAY_S, "d"),
    (10**12, _YEAR_S, "y", 0, ""),
)


def duration(elapsed_s: float) -> str:
    """Write a duration in two or three figures, such as 4m5s, 7h59m, 3d2h.

    Source: k8s.io/apimachinery ``pkg/util/duration`` (HumanDuration).
    """
    seconds = int(elapsed_s)
    if seconds < -1:
        return "<invalid>"  # further ahead than clocks differ
    seconds = max(0, seconds)
    _, large_s, large, small_s, small = next(step for step in _STEPS if seconds < step[0])
    head = f"{seconds // large_s}{large}"
    rest = seconds % large_s // small_s if small_s else 0
    return f"{head}{rest}{small}" if rest else head


def since(timestamp: str | None, now_s: float) -> str:
    """Write how long ago a time of an object was; ``<unknown>`` when there is none."""
    if not timestamp:
        return UNKNOWN
    try:
        return duration(now_s - parsed_time_s(timestamp))
    except ValueError:
        return "<invalid>"


def age(obj: Object, now_s: float) -> str:
    """Write how long ago an object was created."""
    return since(meta(obj).get("creationTimestamp"), now_s)


def labels(given: Mapping[str, str] | None) -> str:
    """Write labels as ``a=b,c=d``."""
    return ",".join(f"{key}={value}" for key, value in sorted((given or {}).items())) or NONE


def containers(spec: Mapping[str, Any] | None) -> tuple[str, str]:
    """Write the names and the images of a pod's containers."""
    found: Sequence[Mapping[str, Any]] = (spec or {}).get("containers") or []
    names = ",".join(one.get("name", "") for one in found)
    return names, ",".join(one.get("image", "") for one in found)


def condition(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> Mapping[str, Any]:
    """Return the condition of a type, the last one; an empty mapping when there is none."""
    found: Mapping[str, Any] = {}
    for one in conditions or ():
        if one.get("type") == kind:
            found = one
    return found


Container = Mapping[str, Any]


class _State(NamedTuple):
    """What the containers of one list say."""

    reason: str
    ready: int
    restarts: int
    last_restart: str  # newest finishedAt, as text; "" when none restarted


def pod(obj: Object, now_s: float) -> list[Any]:
    """Return NAME READY STATUS RESTARTS AGE IP NODE, NOMINATED NODE; no readiness gates."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    status: Mapping[str, Any] = obj.get("status") or {}
    conditions = status.get("conditions") or []
    reason = status.get("reason") or status.get("phase") or ""
    if any(
        one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated"
        for one in conditions
    ):
        reason = "SchedulingGated"
    start = spec.get("initContainers") or ()
    sidecars = {c.get("name") for c in start if c.get("restartPolicy") == "Always"}
    total = len(spec.get("containers") or ()) + len(sidecars)
    result = _running(status, reason)
    ready = result.ready + sum(
        bool(container.get("ready")) and container.get("name") in sidecars
        for container in status.get("initContainerStatuses") or ()
    )
    reason = result.reason or reason
    if "deletionTimestamp" in meta(obj):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    addresses = status.get("podIPs") or []
    return [
        name_of(obj),
        f"{ready}/{total}",
        reason,
        _restarts(result, now_s),
        age(obj, now_s),
        (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        NONE,
    ]


def _running(status: Mapping[str, Any], reason: str) -> _State:
    """Return what the main containers say, the first one last: it has the last word."""
    ready = restarts = 0
    newest = error = ""
    for one in reversed(status.get("containerStatuses") or []):
        restarts += one.get("restartCount", 0)
        newest = max(newest, _last_finished(one))
        state = one.get("state") or {}
        ended = state.get("terminated")
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif ended is not None:
            reason = _ending(ended)
            error = reason if ended.get("exitCode") else error
        elif one.get("ready") and state.get("running") is not None:
            ready += 1
    if reason == "Completed":
        if ready and condition(status.get("conditions"), "Ready").get("status") == "True":
            reason = "Running"
        elif error:
            reason = error
        elif ready:
            reason = "NotReady"
    return _State(reason, ready, restarts, newest)


def _ending(ended: Container) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _last_finished(one: Container) -> str:
    return ((one.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""


def _restarts(state: _State, now_s: float) -> str:
    if not state.restarts or not state.last_restart:
        return str(state.restarts)
    return f"{state.restarts} ({duration(now_s - parsed_time_s(state.last_restart))} ago)"


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


def _internal_ip(obj: Object, _: float) -> str:
    given = _status(obj).get("addresses") or []
    return next((one["address"] for one in given if one.get("type") == "InternalIP"), NONE)


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


WRITTEN: Mapping[str, Callable[[Object, float], Any]] = {
    "claim": _claim,
    "claim_capacity": _claim_capacity,
    "claim_modes": _claim_modes,
    "claim_state": _claim_state,
    "class_name": _class_name,
    "completions": _completions,
    "gang_policy": _gang_policy,
    "gang_state": _gang_state,
    "gang_workload": _gang_workload,
    "internal_ip": _internal_ip,
    "job_duration": _job_duration,
    "job_state": _job_state,
    "kernel": _kernel,
    "node_roles": _node_roles,
    "node_state": _node_state,
    "phase": _phase,
    "storage_class": _storage_class,
    "suspend": _suspend,
    "volume_modes": lambda obj, _: _modes(_spec(obj).get("accessModes")),
}


def event(obj: Object, now_s: float) -> list[Any]:
    """Return LAST SEEN, TYPE, REASON, OBJECT and the rest of an Event of either API."""
    obj = to_core(obj)
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now_s)
    last_time = obj.get("lastTimestamp")
    last = since(last_time, now_s) if last_time else first
    count = obj.get("count") or 1
    series = obj.get("series")
    if series is not None:
        last = since(series.get("lastObservedTime"), now_s)
        count = series.get("count", 0)
    about = obj.get("involvedObject") or {}
    target = about.get("kind", "").lower()
    if about.get("name"):
        target += f"/{about['name']}"
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        obj.get("message", "").strip(),
        first,
        count,
        name_of(obj),
    ]


Cell = Callable[[Object, float], list[Any]]


@cache
def cells_of(bucket: str) -> Cells | None:
    """Return what makes the cells of a bucket, such as ``pods`` or ``deployments.apps``."""
    if bucket in _WHOLE:
        return _WHOLE[bucket]
    listed = _listed().get(bucket)
    if listed is None:
        return None
    cells = [_cell(text) for text in listed]
    return lambda obj, now_s: [one for cell in cells for one in cell(obj, now_s)]


_WHOLE: Mapping[str, Cells] = {"events": event, "pods": pod}


@cache
def _listed() -> dict[str, list[str]]:
    text = resources.files(__package__).joinpath("cells.yaml").read_text("utf-8")
    found: dict[str, list[str]] = yaml.safe_load(text)
    return found


def _cell(text: str) -> Cell:
    text, _, otherwise = (part.strip() for part in text.partition("|"))
    word, *paths = text.split()
    if word.startswith("@"):
        write = WRITTEN[word[1:]]
        return lambda obj, now_s: [write(obj, now_s)]
    if word == "name":
        return lambda obj, _: [name_of(obj)]
    if word == "age":
        return lambda obj, now_s: [age(obj, now_s)]
    if not paths:
        return lambda obj, _: [_text(at(obj, word), otherwise)]
    return _VERBS[word](paths, otherwise)


def _text(value: Any, otherwise: str) -> str:
    return otherwise if value in (None, "") else str(value)


def _since(paths: list[str], otherwise: str) -> Cell:
    def cell(obj: Object, now_s: float) -> list[Any]:
        time = at(obj, paths[0])
        return [since(time, now_s) if time else otherwise]

    return cell


def _condition(paths: list[str], otherwise: str) -> Cell:
    path, kind = paths
    return lambda obj, _: [condition(at(obj, path), kind).get("status", otherwise)]


_VERBS: Mapping[str, Callable[[list[str], str], Cell]] = {
    "number": lambda paths, _: lambda obj, __: [at(obj, paths[0]) or 0],
    "flag": lambda paths, _: lambda obj, __: [bool(at(obj, paths[0]))],
    "ratio": lambda paths, _: lambda obj, __: ["/".join(str(at(obj, path) or 0) for path in paths)],
    "count": lambda paths, _: lambda obj, __: [sum(len(at(obj, path) or ()) for path in paths)],
    "labels": lambda paths, _: lambda obj, __: [labels(at(obj, paths[0]))],
    "selector": lambda paths, none: (
        lambda obj, __: [str(selector_of(at(obj, paths[0]) or {})) or none]
    ),
    "containers": lambda paths, _: lambda obj, __: [*containers(at(obj, paths[0]))],
    "since": _since,
    "condition": _condition,
}
