"""Checks of containers and volumes.

Source: kubernetes ``pkg/apis/core/validation`` of 1.36. Of the volumes those that a workload on
local or claimed storage has are checked in full, of the others only that there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import (
    between,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
from pocketkube.errors import Cause
from pocketkube.names import dns_label, invalid_text
from pocketkube.registry.rules.pods.pod_resources import resource_causes

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")

_NEEDED = {
    "secret": "secretName",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
    "nfs": "server",
    "csi": "driver",
    "configMap": "name",
}


def volume_causes(volumes: list[dict[str, Any]], field: str) -> tuple[set[str], list[Cause]]:
    """Check ``spec.volumes``; return the names of those that are right, and the causes."""
    causes: list[Cause] = []
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        name, at = volume.get("name", ""), f"{field}[{index}]"
        found = _volume_source_causes(volume, at)
        found += invalid_text(f"{at}.name", name, dns_label) if name else [required(f"{at}.name")]
        if name in names:
            found.append(duplicate(f"{at}.name", name))
        if found:
            causes += found
        else:
            names.add(name)
    return names, causes


def _volume_source_causes(volume: Mapping[str, Any], field: str) -> list[Cause]:
    kinds = [kind for kind, value in volume.items() if kind != "name" and value is not None]
    if len(kinds) > 1:
        kinds.sort(key=lambda kind: (kind != "emptyDir", kind))
    causes = [
        forbidden(f"{field}.{kind}", "may not specify more than 1 volume type")
        for kind in kinds[1:]
    ]
    for kind in kinds[:1]:
        needed = _NEEDED.get(kind)
        if needed and not volume[kind].get(needed):
            causes.append(required(f"{field}.{kind}.{needed}"))
    return causes


class ContainerChecks:
    """Checks the containers of one pod spec: what they may mount and claim is known here."""

    def __init__(self, volumes: set[str], claims: frozenset[str], *, is_pod: bool) -> None:
        self._volumes = volumes
        self._claims = claims
        self._is_pod = is_pod

    def containers(self, containers: list[dict[str, Any]] | None, field: str) -> list[Cause]:
        """Check ``spec.containers``: at least one."""
        if not containers:
            return [required(field)]
        causes: list[Cause] = []
        names: set[str] = set()
        for index, container in enumerate(containers):
            at = f"{field}[{index}]"
            causes += self._common(container, at)
            name = container.get("name", "")
            if name in names:
                causes.append(duplicate(f"{at}.name", name))
            names.add(name)
        return causes

    def init_containers(
        self, containers: list[dict[str, Any]], others: list[dict[str, Any]] | None, field: str
    ) -> list[Cause]:
        """Check ``spec.initContainers``; ``others`` are the plain ones, whose names are taken."""
        causes: list[Cause] = []
        names = {other.get("name", "") for other in others or ()}
        for index, container in enumerate(containers):
            at = f"{field}[{index}]"
            causes += self._common(container, at)
            name = container.get("name", "")
            if name in names:
                causes.append(duplicate(f"{at}.name", name))
            if name:
                names.add(name)
        return causes

    def _common(self, container: Mapping[str, Any], field: str) -> list[Cause]:
        causes = self._identity(container, field)
        if "ports" in container:
            causes += container_port_causes(container["ports"] or [], f"{field}.ports")
        if "volumeMounts" in container:
            causes += self._mounts(container["volumeMounts"] or [], f"{field}.volumeMounts")
        if container["resources"]:
            at = f"{field}.resources"
            causes += resource_causes(container["resources"], at, self._claims)
        return causes

    def _identity(self, container: Mapping[str, Any], field: str) -> list[Cause]:
        causes: list[Cause] = []
        name, image = container.get("name", ""), container.get("image", "")
        if not name:
            causes.append(required(f"{field}.name"))
        elif dns_label(name):
            causes += invalid_text(f"{field}.name", name, dns_label)
        if not image:
            causes.append(required(f"{field}.image"))
        elif self._is_pod and image != image.strip():
            why = "must not have leading or trailing whitespace"
            causes.append(invalid(f"{field}.image", image, why))
        policy = container["terminationMessagePolicy"]
        if policy not in _MESSAGE_POLICIES:
            at = f"{field}.terminationMessagePolicy"
            causes.append(unsupported(at, policy, _MESSAGE_POLICIES))
        if container["imagePullPolicy"] not in _PULL_POLICIES:
            at = f"{field}.imagePullPolicy"
            causes.append(unsupported(at, container["imagePullPolicy"], _PULL_POLICIES))
        return causes

    def _mounts(self, mounts: list[dict[str, Any]], field: str) -> list[Cause]:
        causes: list[Cause] = []
        for index, mount in enumerate(mounts):
            name, at = mount.get("name", ""), f"{field}[{index}]"
            if not name:
                causes.append(required(f"{at}.name"))
            if name not in self._volumes:
                causes.append(not_found(f"{at}.name", name))
            if not mount.get("mountPath"):
                causes.append(required(f"{at}.mountPath"))
        return causes


def container_port_causes(ports: list[dict[str, Any]], field: str) -> list[Cause]:
    """Check the ports of one container."""
    causes: list[Cause] = []
    for index, port in enumerate(ports):
        at, number = f"{field}[{index}]", port.get("containerPort", 0)
        if not number:
            causes.append(required(f"{at}.containerPort"))
        elif not 1 <= number <= 65535:
            causes.append(invalid(f"{at}.containerPort", number, between(1, 65535)))
    return causes
