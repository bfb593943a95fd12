"""Checks of a pod's spec, which a template has too.

Source: kubernetes ``pkg/apis/core/validation`` of 1.36. Every pod comes through here, thousands a
second: a check costs something only when its field is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import (
    INT32_MAX,
    between,
    invalid,
    one_of,
    unsupported,
)
from pocketkube.errors import Cause
from pocketkube.names import (
    dns_label,
    dns_subdomain,
    invalid_text,
    label_causes,
)
from pocketkube.registry.metadata import annotation_causes
from pocketkube.registry.rules.pods.containers import ContainerChecks, volume_causes
from pocketkube.registry.rules.pods.pod_placement import (
    affinity_causes,
    gate_causes,
    group_causes,
    spread_causes,
    toleration_causes,
)
from pocketkube.registry.rules.pods.pod_resources import resource_causes

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NO_NAMES: frozenset[str] = frozenset()
_NAMES = (
    ("serviceAccountName", dns_subdomain),
    ("nodeName", dns_subdomain),
    ("hostname", dns_label),
    ("subdomain", dns_label),
    ("priorityClassName", dns_subdomain),
    ("runtimeClassName", dns_subdomain),
)


def pod_spec_causes(spec: Mapping[str, Any], field: str, *, is_pod: bool) -> list[Cause]:
    """Check the spec of a pod (``is_pod``) or of a template, after its defaults were set."""
    causes: list[Cause] = []
    volumes: set[str] = set()
    if spec.get("volumes"):
        volumes, causes = volume_causes(spec["volumes"], f"{field}.volumes")
    claims = _NO_NAMES
    if spec.get("resourceClaims"):
        claims = frozenset(claim.get("name", "") for claim in spec["resourceClaims"])
    checks = ContainerChecks(volumes, claims, is_pod=is_pod)
    causes += checks.containers(spec.get("containers"), f"{field}.containers")
    if spec.get("initContainers"):
        at = f"{field}.initContainers"
        causes += checks.init_containers(spec["initContainers"], spec.get("containers"), at)
    if spec.get("resources"):
        causes += resource_causes(spec["resources"], f"{field}.resources")
    if spec["restartPolicy"] not in RESTART_POLICIES:
        at = f"{field}.restartPolicy"
        causes.append(unsupported(at, spec["restartPolicy"], RESTART_POLICIES))
    if spec["dnsPolicy"] not in _DNS_POLICIES:
        causes.append(unsupported(f"{field}.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES))
    causes += _placement_causes(spec, field)
    for name, check in _NAMES:
        text = spec.get(name)
        if text and check(text):
            causes += invalid_text(f"{field}.{name}", text, check)
    return causes + _rare_causes(spec, field)


def _placement_causes(spec: Mapping[str, Any], field: str) -> list[Cause]:
    causes: list[Cause] = []
    if spec.get("nodeSelector"):
        causes += label_causes(spec["nodeSelector"], f"{field}.nodeSelector")
    if spec.get("affinity"):
        causes += affinity_causes(spec["affinity"], f"{field}.affinity")
    if spec.get("schedulingGates"):
        causes += gate_causes(spec["schedulingGates"], f"{field}.schedulingGates")
    if spec.get("topologySpreadConstraints"):
        at = f"{field}.topologySpreadConstraints"
        causes += spread_causes(spec["topologySpreadConstraints"], at)
    if spec.get("tolerations"):
        causes += toleration_causes(spec["tolerations"], f"{field}.tolerations")
    if spec.get("schedulingGroup") is not None:
        causes += group_causes(spec["schedulingGroup"], f"{field}.schedulingGroup")
    return causes


def _rare_causes(spec: Mapping[str, Any], field: str) -> list[Cause]:
    causes: list[Cause] = []
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= INT32_MAX:
        at = f"{field}.activeDeadlineSeconds"
        causes.append(invalid(at, deadline, between(1, INT32_MAX)))
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        causes += one_of(f"{field}.preemptionPolicy", policy, PREEMPTION_POLICIES)
    if spec.get("overhead"):
        causes += resource_causes({"limits": spec["overhead"]}, f"{field}.overhead")
    if spec.get("os") is not None:
        name = spec["os"].get("name", "")
        if name not in ("linux", "windows"):
            causes.append(unsupported(f"{field}.os", name, ("linux", "windows")))
    return causes


def template_causes(template: Mapping[str, Any], field: str) -> list[Cause]:
    """Check a pod template: labels, annotations and spec."""
    metadata = template.get("metadata") or {}
    causes: list[Cause] = []
    if metadata.get("labels"):
        causes += label_causes(metadata["labels"], f"{field}.labels")
    if metadata.get("annotations"):
        causes += annotation_causes(metadata["annotations"], f"{field}.annotations")
    return causes + pod_spec_causes(template["spec"], f"{field}.spec", is_pod=False)
