"""Checks of a pod's spec, which a template has too: what its parts call one another, and amounts.

Source: kubernetes ``pkg/apis/core/validation`` of 1.36, of which this is what keeps a cluster from
pods that nothing could make sense of. Every pod comes through here, thousands a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import duplicate, required, unsupported
from pocketkube.errors import Cause
from pocketkube.names import dns_label, dns_subdomain, invalid_text, label_causes, label_key
from pocketkube.registry.metadata import annotation_causes
from pocketkube.registry.rules.pods.pod_resources import resource_causes

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_NAMES = (
    ("serviceAccountName", dns_subdomain),
    ("nodeName", dns_subdomain),
    ("hostname", dns_label),
    ("subdomain", dns_label),
    ("priorityClassName", dns_subdomain),
)


def pod_spec_causes(spec: Mapping[str, Any], field: str) -> list[Cause]:
    """Check the spec of a pod or of a template, after its defaults were set."""
    causes: list[Cause] = []
    known: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        causes += _name_causes(volume, known, f"{field}.volumes[{index}]")
    if not spec.get("containers"):
        causes.append(required(f"{field}.containers"))
    names: set[str] = set()
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            at = f"{field}.{part}[{index}]"
            causes += _name_causes(container, names, at)
            if not container.get("image"):
                causes.append(required(f"{at}.image"))
            if container["resources"]:
                causes += resource_causes(container["resources"], f"{at}.resources")
    if spec.get("resources"):
        causes += resource_causes(spec["resources"], f"{field}.resources")
    if spec.get("overhead"):
        causes += resource_causes({"limits": spec["overhead"]}, f"{field}.overhead")
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        at = f"{field}.restartPolicy"
        causes.append(unsupported(at, spec["restartPolicy"], _RESTART_POLICIES))
    if spec.get("nodeSelector"):
        causes += label_causes(spec["nodeSelector"], f"{field}.nodeSelector")
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        causes += invalid_text(f"{field}.schedulingGates[{index}]", gate.get("name", ""), label_key)
    for name, check in _NAMES:
        text = spec.get(name)
        if text and check(text):
            causes += invalid_text(f"{field}.{name}", text, check)
    return causes


def _name_causes(part: Mapping[str, Any], known: set[str], field: str) -> list[Cause]:
    """Check the name of a container or volume, and remember it in ``known``."""
    name = part.get("name", "")
    if not name:
        return [required(f"{field}.name")]
    causes = invalid_text(f"{field}.name", name, dns_label) if dns_label(name) else []
    if name in known:
        causes.append(duplicate(f"{field}.name", name))
    known.add(name)
    return causes


def template_causes(template: Mapping[str, Any], field: str) -> list[Cause]:
    """Check a pod template: labels, annotations and spec."""
    metadata = template.get("metadata") or {}
    causes: list[Cause] = []
    if metadata.get("labels"):
        causes += label_causes(metadata["labels"], f"{field}.labels")
    if metadata.get("annotations"):
        causes += annotation_causes(metadata["annotations"], f"{field}.annotations")
    return causes + pod_spec_causes(template["spec"], f"{field}.spec")
