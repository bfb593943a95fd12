"""Nodes, namespaces, events, configuration, and who may do what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.objects import Object, labels_of, name_of
from pocketkube.server.tables.table_cells.words import NONE, UNKNOWN, Cells, age, condition, since

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


def _node(obj: Object, now_s: float) -> list[Any]:
    status: Mapping[str, Any] = obj.get("status") or {}
    info: Mapping[str, Any] = status.get("nodeInfo") or {}
    ready = condition(status.get("conditions"), "Ready")
    state = ("Ready" if ready.get("status") == "True" else "NotReady") if ready else "Unknown"
    if (obj.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    roles = {
        key.removeprefix(_ROLE_PREFIX) if key.startswith(_ROLE_PREFIX) else value
        for key, value in labels_of(obj).items()
        if key.startswith(_ROLE_PREFIX) or key == _ROLE
    }
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name_of(obj),
        state,
        ",".join(sorted(roles - {""})) or NONE,
        age(obj, now_s),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _address(status: Mapping[str, Any], kind: str) -> str:
    found = (one["address"] for one in status.get("addresses") or [] if one.get("type") == kind)
    return next(found, NONE)


def _namespace(obj: Object, now_s: float) -> list[Any]:
    return [name_of(obj), (obj.get("status") or {}).get("phase", ""), age(obj, now_s)]


def _event(obj: Object, now_s: float) -> list[Any]:
    if "regarding" in obj:
        obj = _as_core(obj)
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


def _as_core(obj: Object) -> Object:
    """Return an event of events.k8s.io with the names of fields that v1 has."""
    return {
        **obj,
        "involvedObject": obj.get("regarding"),
        "message": obj.get("note", ""),
        "source": obj.get("deprecatedSource"),
        "firstTimestamp": obj.get("deprecatedFirstTimestamp"),
        "lastTimestamp": obj.get("deprecatedLastTimestamp"),
        "count": obj.get("deprecatedCount"),
        "reportingComponent": obj.get("reportingController"),
    }


def _config_map(obj: Object, now_s: float) -> list[Any]:
    count = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    return [name_of(obj), count, age(obj, now_s)]


def _secret(obj: Object, now_s: float) -> list[Any]:
    return [name_of(obj), obj.get("type", ""), len(obj.get("data") or {}), age(obj, now_s)]


def _resource_quota(obj: Object, now_s: float) -> list[Any]:
    status = obj.get("status") or {}
    used, hard = status.get("used") or {}, status.get("hard") or {}
    texts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in texts.items() if name.startswith("limits.")]
    requests = [text for name, text in texts.items() if not name.startswith("limits.")]
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj, now_s)]


def _lease(obj: Object, now_s: float) -> list[Any]:
    holder = (obj.get("spec") or {}).get("holderIdentity") or ""
    return [name_of(obj), holder, age(obj, now_s)]


def _priority_class(obj: Object, now_s: float) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        age(obj, now_s),
        obj.get("preemptionPolicy", ""),
    ]


def _runtime_class(obj: Object, now_s: float) -> list[Any]:
    return [name_of(obj), obj.get("handler", ""), age(obj, now_s)]


def _binding(obj: Object, now_s: float) -> list[Any]:
    role = obj.get("roleRef") or {}
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or []:
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        by_kind.setdefault(subject.get("kind", ""), []).append(name)
    subjects = [", ".join(by_kind[kind]) for kind in ("User", "Group", "ServiceAccount")]
    reference = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [name_of(obj), reference, age(obj, now_s), *subjects]


def _flow_schema(obj: Object, now_s: float) -> list[Any]:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    dangling = condition((obj.get("status") or {}).get("conditions"), "Dangling")
    return [
        name_of(obj),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", NONE),
        age(obj, now_s),
        dangling.get("status", "?"),
    ]


def _priority_level(obj: Object, now_s: float) -> list[Any]:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    limited: Mapping[str, Any] = spec.get("limited") or {}
    queuing: Mapping[str, Any] = (limited.get("limitResponse") or {}).get("queuing") or {}
    return [
        name_of(obj),
        spec.get("type", ""),
        limited.get("nominalConcurrencyShares", 0) if limited else NONE,
        *(queuing.get(key, NONE) for key in ("queues", "handSize", "queueLengthLimit")),
        age(obj, now_s),
    ]


def _api_service(obj: Object, now_s: float) -> list[Any]:
    service = (obj.get("spec") or {}).get("service")
    name = f"{service.get('namespace')}/{service.get('name')}" if service else "Local"
    available = condition((obj.get("status") or {}).get("conditions"), "Available")
    state = available.get("status", "Unknown")
    if available and state != "True":
        state = f"{state} ({available.get('reason', '')})"
    return [name_of(obj), name, state, age(obj, now_s)]


def _resource_claim(obj: Object, now_s: float) -> list[Any]:
    status = obj.get("status") or {}
    is_deleted = "deletionTimestamp" in obj["metadata"]
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated"] + (["reserved"] if status.get("reservedFor") else [])
    elif not is_deleted:
        states.append("pending")
    return [name_of(obj), ",".join(states), age(obj, now_s)]


def _resource_slice(obj: Object, now_s: float) -> list[Any]:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    node, driver = spec.get("nodeName", ""), spec.get("driver", "")
    return [name_of(obj), node, driver, pool, age(obj, now_s)]


CELLS: Mapping[str, Cells] = {
    "apiservices.apiregistration.k8s.io": _api_service,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "configmaps": _config_map,
    "events": _event,
    "flowschemas.flowcontrol.apiserver.k8s.io": _flow_schema,
    "leases.coordination.k8s.io": _lease,
    "namespaces": _namespace,
    "nodes": _node,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _priority_level,
    "resourceclaims.resource.k8s.io": _resource_claim,
    "resourcequotas": _resource_quota,
    "resourceslices.resource.k8s.io": _resource_slice,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "runtimeclasses.node.k8s.io": _runtime_class,
    "secrets": _secret,
}
