"""Checks of probes, lifecycle hooks and the environment of containers.

Source: kubernetes ``pkg/apis/core/validation`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import (
    NEGATIVE,
    between,
    forbidden,
    invalid,
    required,
    unsupported,
)
from pocketkube.errors import Cause
from pocketkube.names import (
    config_key,
    dns_subdomain,
    invalid_text,
    label_key,
    port_name,
)

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELD_PATHS = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
_ENV_NAME_TEXT = (
    "a valid environment variable name must consist only of printable ASCII characters "
    "other than '='"
)


def port_causes(port: object, field: str) -> list[Cause]:
    """Check a port that may be a number or a name."""
    if isinstance(port, str):
        return invalid_text(field, port, port_name)
    good = isinstance(port, int) and 1 <= port <= 65535
    return [] if good else [invalid(field, port, between(1, 65535))]


def probe_causes(probe: Mapping[str, Any], kind: str, field: str) -> list[Cause]:
    """Check a probe; ``kind`` is livenessProbe, readinessProbe or startupProbe."""
    causes = handler_causes(probe, field)
    for name in _COUNTS:
        count = probe.get(name, 0)
        if count < 0:
            causes.append(invalid(f"{field}.{name}", count, NEGATIVE))
    grace = probe.get("terminationGracePeriodSeconds")
    at = f"{field}.terminationGracePeriodSeconds"
    if grace is not None and grace <= 0:
        causes.append(invalid(at, grace, "must be greater than 0"))
    if kind == "readinessProbe":
        if grace is not None:
            causes.append(invalid(at, grace, "must not be set for readinessProbes"))
    elif probe.get("successThreshold") != 1:
        threshold = probe.get("successThreshold")
        causes.append(invalid(f"{field}.successThreshold", threshold, "must be 1"))
    return causes


def lifecycle_causes(lifecycle: Mapping[str, Any], field: str) -> list[Cause]:
    """Check postStart and preStop."""
    causes: list[Cause] = []
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            causes += handler_causes(lifecycle[hook], f"{field}.{hook}")
    return causes


def handler_causes(holder: Mapping[str, Any], field: str) -> list[Cause]:
    """Check that there is one handler, and that one."""
    found = [name for name in _HANDLERS if holder.get(name) is not None]
    why = "may not specify more than 1 handler type"
    causes = [forbidden(f"{field}.{name}", why) for name in found[1:]]
    if not found:
        return [required(field, "must specify a handler type")]
    handler, at = holder[found[0]], f"{field}.{found[0]}"
    checked = _HANDLER_CAUSES.get(found[0])
    return (checked(handler, at) if checked else []) + causes


def _exec(handler: Mapping[str, Any], field: str) -> list[Cause]:
    return [] if handler.get("command") else [required(f"{field}.command")]


def _http(handler: Mapping[str, Any], field: str) -> list[Cause]:
    causes = port_causes(handler.get("port", 0), f"{field}.port")
    scheme = handler.get("scheme", "")
    if scheme not in ("HTTP", "HTTPS"):
        causes.append(unsupported(f"{field}.scheme", scheme, ("HTTP", "HTTPS")))
    return causes


def _port_only(handler: Mapping[str, Any], field: str) -> list[Cause]:
    return port_causes(handler.get("port", 0), f"{field}.port")


_HANDLER_CAUSES = {"exec": _exec, "httpGet": _http, "tcpSocket": _port_only, "grpc": _port_only}


def environment_causes(variables: list[dict[str, Any]], field: str) -> list[Cause]:
    """Check ``env``."""
    causes: list[Cause] = []
    for index, variable in enumerate(variables):
        name, at = variable.get("name", ""), f"{field}[{index}]"
        if not name:
            causes.append(required(f"{at}.name"))
        elif not (name.isascii() and name.isprintable()) or "=" in name:
            causes.append(invalid(f"{at}.name", name, _ENV_NAME_TEXT))
        if variable.get("valueFrom") is not None:
            causes += _source_causes(variable, f"{at}.valueFrom")
    return causes


def _source_causes(variable: Mapping[str, Any], field: str) -> list[Cause]:
    source = variable["valueFrom"]
    found = [name for name in _SOURCES if source.get(name) is not None]
    causes: list[Cause] = []
    if "fieldRef" in found:
        causes += _field_path_causes(source["fieldRef"], f"{field}.fieldRef")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in found:
            causes += _key_causes(source[name], f"{field}.{name}")
    if not found:
        listed = "`, `".join(_SOURCES[:-1])
        why = f"must specify one of: `{listed}` or `{_SOURCES[-1]}`"
        causes.append(invalid(field, "", why))
    elif variable.get("value"):
        causes.append(invalid(field, "", "may not be specified when `value` is not empty"))
    elif len(found) > 1:
        causes.append(invalid(field, "", "may not have more than one field specified at a time"))
    return causes


def _key_causes(selector: Mapping[str, Any], field: str) -> list[Cause]:
    causes = invalid_text(f"{field}.name", selector.get("name", ""), dns_subdomain)
    key = selector.get("key", "")
    if not key:
        return [*causes, required(f"{field}.key")]
    return causes + invalid_text(f"{field}.key", key, config_key)


def _field_path_causes(selector: Mapping[str, Any], field: str) -> list[Cause]:
    path = selector.get("fieldPath", "")
    if not path:
        return [required(f"{field}.fieldPath")]
    if path in _FIELD_PATHS:
        return []
    base, bracket, rest = path.partition("['")
    if bracket and rest.endswith("']") and base in ("metadata.labels", "metadata.annotations"):
        key = rest[:-2]
        return invalid_text(field, key.lower() if "annotations" in base else key, label_key)
    if path in ("metadata.labels", "metadata.annotations"):
        return [unsupported(f"{field}.fieldPath", path, sorted(_FIELD_PATHS))]
    why = f"error converting fieldPath: field label not supported: {path}"
    return [invalid(f"{field}.fieldPath", path, why)]
