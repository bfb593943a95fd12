"""Defaults of pods, and of the pod templates of workloads.

Source: kubernetes ``pkg/apis/core/v1/defaults.go`` of 1.36. Fields that Go writes even when they
are empty (``resources``, ``securityContext``) are among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pocketkube.objects import Object
from pocketkube.registry.rules.pods.pod_resources import asked_by_containers
from pocketkube.schema.quantities import canonical_list

DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_GRACE_S = 30
_FILE_MODE = 0o644
_HOUR_S = 3600
_REPOSITORY = re.compile(r"[a-z0-9][-a-z0-9._:/@A-Z]*")


def default_pod(pod: Object) -> None:
    """Set the defaults of a pod, in place."""
    spec = pod.get("spec")
    if spec is None:
        spec = pod["spec"] = {}
    default_pod_spec(spec)
    for container in spec.get("containers") or ():
        _requests_from_limits(container)
    if spec.get("initContainers"):
        for container in spec["initContainers"]:
            _requests_from_limits(container)
    if spec.get("resources"):
        _default_pod_resources(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _default_host_ports(spec)


def default_template(template: Object) -> None:
    """Set the defaults of a pod template, in place."""
    if template.get("metadata") is None:
        template["metadata"] = {}
    spec = template.get("spec")
    if spec is None:
        spec = template["spec"] = {}
    default_pod_spec(spec)


def default_pod_spec(spec: dict[str, Any]) -> None:
    """Set what pods and templates have in common, in place."""
    for field, value in _SPEC_TEXTS:
        if not spec.get(field):
            spec[field] = value
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = DEFAULT_GRACE_S
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in spec.get("containers") or ():
        _default_container(container)
    for field in _RARE & spec.keys():
        _default_rare(spec, field)


_SPEC_TEXTS = (
    ("restartPolicy", "Always"),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", DEFAULT_SCHEDULER),
)
_RARE = frozenset({"initContainers", "ephemeralContainers", "volumes", "overhead", "resources"})


def _default_rare(spec: dict[str, Any], field: str) -> None:
    value = spec[field] or ()
    if field == "volumes":
        for volume in value:
            _default_volume(volume)
    elif field in ("initContainers", "ephemeralContainers"):
        for container in value:
            _default_container(container)
    elif value and field == "overhead":
        canonical_list(value)
    elif value:
        _canonical_resources(value)


@lru_cache(maxsize=4096)
def _pull_policy(image: str) -> str:
    """Return Always for the tag ``latest``, which is meant when there is neither tag nor digest."""
    if not _REPOSITORY.fullmatch(image):
        return "IfNotPresent"  # it cannot be read, so it has no tag
    repository, _, digest = image.partition("@")
    tag = repository.rpartition("/")[2].partition(":")[2]
    if digest and not tag:
        return "IfNotPresent"
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_container(container: dict[str, Any]) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    elif resources:
        _canonical_resources(resources)
    for field in _CONTAINER_PARTS & container.keys():
        value = container[field]
        if field in _PROBES:
            if value is not None:
                _default_probe(value)
        elif value:
            _default_part(field, value)


def _default_part(field: str, value: Any) -> None:
    if field == "ports":
        for port in value:
            _set(port, "protocol", "TCP")
    elif field == "env":
        for variable in value:
            if variable.get("valueFrom"):
                _default_source(variable["valueFrom"])
    elif field == "lifecycle":
        for hook in value.values():
            if isinstance(hook, dict):
                _default_http(hook)


_PROBES = frozenset({"livenessProbe", "readinessProbe", "startupProbe"})
_CONTAINER_PARTS = _PROBES | {"ports", "env", "lifecycle"}


def _canonical_resources(resources: dict[str, Any]) -> None:
    for field in ("limits", "requests"):
        if resources.get(field):
            canonical_list(resources[field])


def _default_source(source: dict[str, Any]) -> None:
    if source.get("fieldRef") is not None:
        _set(source["fieldRef"], "apiVersion", "v1")
    if source.get("resourceFieldRef") is not None:
        _set(source["resourceFieldRef"], "divisor", "0")
    if source.get("fileKeyRef") is not None and source["fileKeyRef"].get("optional") is None:
        source["fileKeyRef"]["optional"] = False


def _default_http(handler: dict[str, Any]) -> None:
    get = handler.get("httpGet")
    if get is not None:
        _set(get, "path", "/")
        _set(get, "scheme", "HTTP")


def _default_probe(probe: dict[str, Any]) -> None:
    _set(probe, "timeoutSeconds", 1)
    _set(probe, "periodSeconds", 10)
    _set(probe, "successThreshold", 1)
    _set(probe, "failureThreshold", 3)
    _default_http(probe)
    if probe.get("grpc") is not None and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _set(target: dict[str, Any], field: str, value: object) -> None:
    if not target.get(field):
        target[field] = value


def _default_mode(source: dict[str, Any]) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = _FILE_MODE


def _default_downward(source: dict[str, Any]) -> None:
    for item in source.get("items") or ():
        _default_source(item)


def _downward_volume(source: dict[str, Any]) -> None:
    _default_mode(source)
    _default_downward(source)


def _projected_volume(source: dict[str, Any]) -> None:
    _default_mode(source)
    for one in source.get("sources") or ():
        token = one.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = _HOUR_S
        _default_downward(one.get("downwardAPI") or {})


def _host_path(source: dict[str, Any]) -> None:
    if source.get("type") is None:
        source["type"] = ""


def _empty_dir(source: dict[str, Any]) -> None:
    if source.get("sizeLimit") is not None:
        canonical_list(size := {"sizeLimit": source["sizeLimit"]})
        source |= size


_VOLUMES: dict[str, Callable[[dict[str, Any]], None]] = {
    "secret": _default_mode,
    "configMap": _default_mode,
    "downwardAPI": _downward_volume,
    "projected": _projected_volume,
    "hostPath": _host_path,
    "emptyDir": _empty_dir,
}


def _default_volume(volume: dict[str, Any]) -> None:
    if not any(value is not None for field, value in volume.items() if field != "name"):
        volume["emptyDir"] = {}
    for field, default in _VOLUMES.items():
        if volume.get(field) is not None:
            default(volume[field])


def _requests_from_limits(container: dict[str, Any]) -> None:
    resources = container["resources"]
    if resources and resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def _default_pod_resources(spec: dict[str, Any]) -> None:
    """Let the pod's own requests be what its containers ask, or else its limits.

    Only cpu and memory of plain containers are added up; init containers count by their largest.
    """
    resources = spec["resources"]
    limits = resources.get("limits")
    if not limits:
        return
    requests = dict(resources.get("requests") or {})
    for name, amount in asked_by_containers(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, amount)
    for name, amount in limits.items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            requests.setdefault(name, amount)
    resources["requests"] = requests


def _default_host_ports(spec: dict[str, Any]) -> None:
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
