"""Pods: their hooks, put together, and which of their fields may change.

Source: kubernetes ``pkg/registry/core/pod/strategy.go`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.causes import forbidden
from pocketkube.errors import Cause
from pocketkube.objects import Object, rfc3339, take
from pocketkube.registry.rules.common import Rules, Surroundings, text_of
from pocketkube.registry.rules.pods.pod_admission import add_default_tolerations, admit_pod
from pocketkube.registry.rules.pods.pod_defaults import default_pod
from pocketkube.registry.rules.pods.pod_resources import qos_class
from pocketkube.registry.rules.pods.pod_spec import pod_spec_causes

_MAY_CHANGE = (
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_update_causes(pod: Object, old: Object) -> list[Cause]:
    """Refuse changes of a pod's spec but those that a real API server lets pass."""
    new, before = pod["spec"], old["spec"]
    if new == before:
        return []
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(before.get(field) or ()):
            return [forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
    causes = _toleration_causes(new, before) + _gate_causes(new, before)
    expected = _with_old_fields(new, before)
    if before.get("schedulingGates"):
        for field in ("nodeSelector", "affinity"):
            take(expected, before, field)
    if expected != before:
        causes.append(forbidden("spec", _MAY_CHANGE))
    return causes


def _with_old_fields(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new spec with the old values of all that may change."""
    result = dict(new)
    for field in ("containers", "initContainers"):
        if new.get(field):
            pairs = zip(new[field], old[field], strict=True)
            result[field] = [{**one, "image": other.get("image")} for one, other in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        take(result, old, field)
    was, now = old.get("terminationGracePeriodSeconds"), new.get("terminationGracePeriodSeconds")
    if was is not None and was < 0 and now == 1:
        result["terminationGracePeriodSeconds"] = was
    return result


def _toleration_causes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    given = [_without_seconds(one) for one in new.get("tolerations") or ()]
    if all(_without_seconds(one) in given for one in old.get("tolerations") or ()):
        return []
    why = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden("spec.tolerations", why)]


def _without_seconds(toleration: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gate_causes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    known = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    why = "only deletion is allowed, but found new scheduling gate"
    return [
        forbidden(f"spec.schedulingGates[{index}].name", f"{why} '{gate.get('name', '')}'")
        for index, gate in enumerate(new.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]


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
    return pod_spec_causes(pod["spec"], "spec")


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
        "spec.nodeName": text_of("spec", "nodeName"),
        "spec.restartPolicy": text_of("spec", "restartPolicy"),
        "spec.schedulerName": text_of("spec", "schedulerName"),
        "spec.serviceAccountName": text_of("spec", "serviceAccountName"),
        "spec.hostNetwork": _host_network,
        "status.phase": text_of("status", "phase"),
        "status.podIP": text_of("status", "podIP"),
        "status.nominatedNodeName": text_of("status", "nominatedNodeName"),
    },
)
