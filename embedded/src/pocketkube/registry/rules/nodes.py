"""Nodes and namespaces.

Source: kubernetes ``pkg/apis/core`` and ``pkg/registry/core/{node,namespace}`` of 1.36. New nodes
get no not-ready taint: the admission plugin TaintNodesByCondition is off.
"""

from __future__ import annotations

from typing import Any

from pocketkube.causes import NEGATIVE, forbidden, invalid, one_of
from pocketkube.errors import Cause
from pocketkube.names import invalid_text, label_key, label_value
from pocketkube.objects import Object
from pocketkube.registry.rules.base import Rules, Surroundings
from pocketkube.registry.rules.common import set_default, spec_of, text_of
from pocketkube.registry.rules.pods.pod_placement import TAINT_EFFECTS
from pocketkube.schema.quantities import canonical_list, nano_units

NAME_LABEL = "kubernetes.io/metadata.name"
_FINALIZER = "kubernetes"
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def _default_node(node: Object) -> None:
    spec = spec_of(node)
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    status = node.get("status")
    if status is None:
        status = node["status"] = {}
    for field in ("capacity", "allocatable"):
        canonical_list(status.get(field) or {})
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])
    for condition in status.get("conditions") or ():
        for field in ("lastHeartbeatTime", "lastTransitionTime"):
            condition.setdefault(field, None)
    _fill_status(status)


def _fill_status(status: dict[str, Any]) -> None:
    """Add what Go writes even when it is empty."""
    endpoints = status.get("daemonEndpoints") or {}
    kubelet = endpoints.get("kubeletEndpoint") or {"Port": 0}
    status["daemonEndpoints"] = {**endpoints, "kubeletEndpoint": kubelet}
    info = status.get("nodeInfo") or {}
    status["nodeInfo"] = {**dict.fromkeys(_NODE_INFO, ""), **info}


def _node_causes(node: Object) -> list[Cause]:
    causes: list[Cause] = []
    taints = node["spec"].get("taints")
    if taints:
        causes += _taint_causes(taints, "metadata.taints")  # upstream's path, not spec.taints
    for field in ("capacity", "allocatable"):
        for name, text in (node["status"].get(field) or {}).items():
            try:
                wrong = nano_units(str(text)) < 0
            except ValueError:
                wrong = True
            if wrong:
                causes.append(invalid(f"status.{field}.{name}", text, NEGATIVE))
    return causes


def _taint_causes(taints: list[dict[str, Any]], field: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, taint in enumerate(taints):
        at = f"{field}[{index}]"
        causes += invalid_text(f"{at}.key", taint.get("key", ""), label_key)
        wrong = label_value(taint.get("value", ""))
        if wrong:
            causes.append(invalid(f"{at}.value", taint["value"], ";".join(wrong)))
        causes += one_of(f"{at}.effect", taint.get("effect", ""), TAINT_EFFECTS)
    return causes


def _node_update_causes(node: Object, old: Object) -> list[Cause]:
    causes: list[Cause] = []
    was = old["spec"].get("providerID")
    if was and node["spec"].get("providerID") != was:
        why = 'node updates may not change providerID except from "" to valid'
        causes.append(forbidden("spec.providerID", why))
    was = old["spec"].get("podCIDRs")
    if was and node["spec"].get("podCIDRs") != was:
        why = 'node updates may not change podCIDR except from "" to valid'
        causes.append(forbidden("spec.podCIDRs", why))
    return causes


def _prepare_node_status(node: Object, _old: Object) -> None:
    _default_node(node)


def _unschedulable(node: Object) -> str:
    return "true" if (node.get("spec") or {}).get("unschedulable") else "false"


def _default_namespace(namespace: Object) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        set_default(metadata, "labels", {})
        metadata["labels"][NAME_LABEL] = metadata["name"]


def _prepare_namespace(namespace: Object, _around: Surroundings) -> None:
    spec = spec_of(namespace)
    finalizers = spec.get("finalizers") or []
    if _FINALIZER not in finalizers:
        spec["finalizers"] = [*finalizers, _FINALIZER]
    namespace["status"] = {"phase": "Active"}


def _keep_finalizers(namespace: Object, old: Object, _around: Surroundings) -> None:
    """Only the subresource ``finalize`` changes the finalizers of the spec."""
    kept = (old.get("spec") or {}).get("finalizers")
    spec = spec_of(namespace)
    if kept:
        spec["finalizers"] = kept
    else:
        spec.pop("finalizers", None)


NODES = Rules(
    defaults=_default_node,
    prepare_status=_prepare_node_status,
    validate=_node_causes,
    validate_update=_node_update_causes,
    keeps_status=True,
    selectable={"spec.unschedulable": _unschedulable},
)


def _prepare_namespace_status(namespace: Object, _old: Object) -> None:
    """Default what a status update brings, as every decoding does."""
    _default_namespace(namespace)
    status = namespace.setdefault("status", {})
    set_default(status, "phase", "Active")


NAMESPACES = Rules(
    defaults=_default_namespace,
    prepare_create=_prepare_namespace,
    prepare_update=_keep_finalizers,
    prepare_status=_prepare_namespace_status,
    name_is="dns-label",
    selectable={"status.phase": text_of("status", "phase"), "name": text_of("metadata", "name")},
)
