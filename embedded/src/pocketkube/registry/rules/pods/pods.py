"""Pods: their hooks, put together.

Source: kubernetes ``pkg/registry/core/pod/strategy.go`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pocketkube.causes import forbidden
from pocketkube.errors import Cause
from pocketkube.objects import Object, rfc3339
from pocketkube.registry.rules.base import Rules, Surroundings
from pocketkube.registry.rules.pods.pod_admission import add_default_tolerations, admit_pod
from pocketkube.registry.rules.pods.pod_defaults import default_pod
from pocketkube.registry.rules.pods.pod_resources import qos_class
from pocketkube.registry.rules.pods.pod_spec import pod_spec_causes
from pocketkube.registry.rules.pods.pod_updates import pod_update_causes

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _prepare_create(pod: Object, around: Surroundings) -> None:
    admit_pod(pod, around)
    spec = pod["spec"]
    status = pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [_gated(around.now_s())]
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        _apply_label_keys(spec, pod["metadata"].get("labels") or {})


def _gated(now_s: float) -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(now_s),
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def _apply_label_keys(spec: dict[str, Any], labels: dict[str, str]) -> None:
    """Write matchLabelKeys and mismatchLabelKeys into the selectors they belong to."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for weighted in terms.get(_PREFERRED) or ():
            _extend_selector(weighted.get("podAffinityTerm") or {}, labels)
        for term in terms.get(_REQUIRED) or ():
            _extend_selector(term, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _extend_selector(constraint, labels)


def _extend_selector(term: dict[str, Any], labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or ()
        if key in labels
    ]
    if added:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def _prepare_update(pod: Object, old: Object, _around: Surroundings) -> None:
    """Keep what admission set, when it was not sent again."""
    spec = pod["spec"]
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and field in old["spec"]:
            spec[field] = old["spec"][field]
    add_default_tolerations(spec)


def _causes(pod: Object) -> list[Cause]:
    return pod_spec_causes(pod["spec"], "spec", is_pod=True)


def _create_causes(pod: Object) -> list[Cause]:
    spec = pod["spec"]
    causes: list[Cause] = []
    if spec.get("ephemeralContainers"):
        causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        why = "cannot be set until all schedulingGates have been cleared"
        causes.append(forbidden("spec.nodeName", why))
    return causes


def _prepare_status(pod: Object, old: Object) -> None:
    """Keep the class of service, which kubelets once forgot; write the times Go always writes."""
    status, before = pod.setdefault("status", {}), old.get("status") or {}
    if not status.get("qosClass") and "qosClass" in before:
        status["qosClass"] = before["qosClass"]
    for condition in status.get("conditions") or ():
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)


def _of(part: str, field: str) -> Callable[[Object], str]:
    return lambda pod: str((pod.get(part) or {}).get(field) or "")


def _host_network(pod: Object) -> str:
    return "true" if pod["spec"].get("hostNetwork") else "false"


PODS = Rules(
    defaults=default_pod,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    validate=_causes,
    validate_create=_create_causes,
    validate_update=pod_update_causes,
    has_generation=True,
    selectable={
        "spec.nodeName": _of("spec", "nodeName"),
        "spec.restartPolicy": _of("spec", "restartPolicy"),
        "spec.schedulerName": _of("spec", "schedulerName"),
        "spec.serviceAccountName": _of("spec", "serviceAccountName"),
        "spec.hostNetwork": _host_network,
        "status.phase": _of("status", "phase"),
        "status.podIP": _of("status", "podIP"),
        "status.nominatedNodeName": _of("status", "nominatedNodeName"),
    },
)
