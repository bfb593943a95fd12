"""Defaults of pods, and of the pod templates of workloads.

Source: kubernetes ``pkg/apis/core/v1/defaults.go`` of 1.36. Fields that Go writes even when they
are empty (``resources``, ``securityContext``) are among them; probes, hooks, variables and sources
of volumes, which nothing reads here, stay as they are given.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from pocketkube.objects import Object
from pocketkube.schema.quantities import canonical_list

DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_GRACE_S = 30
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
    for port in container.get("ports") or ():
        _set(port, "protocol", "TCP")


def _canonical_resources(resources: dict[str, Any]) -> None:
    for field in ("limits", "requests"):
        if resources.get(field):
            canonical_list(resources[field])


def _set(target: dict[str, Any], field: str, value: object) -> None:
    if not target.get(field):
        target[field] = value


def _default_volume(volume: dict[str, Any]) -> None:
    if not any(value is not None for field, value in volume.items() if field != "name"):
        volume["emptyDir"] = {}


def _requests_from_limits(container: dict[str, Any]) -> None:
    resources = container["resources"]
    if resources and resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def _default_host_ports(spec: dict[str, Any]) -> None:
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
