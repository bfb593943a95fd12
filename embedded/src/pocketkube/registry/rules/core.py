"""Nodes, namespaces, Services, ConfigMaps, Secrets and quotas.

Source: kubernetes ``pkg/apis/core`` and ``pkg/registry/core`` of 1.36. New nodes get no not-ready
taint: the admission plugin TaintNodesByCondition is off. Nothing acts on Services: they get an
address of 10.96.0.0/16, the lowest that is free, and no node ports.
"""

from __future__ import annotations

import base64
import ipaddress
from typing import Any

from pocketkube.causes import forbidden, immutable
from pocketkube.errors import Cause
from pocketkube.objects import Object
from pocketkube.registry.rules.common import (
    Rules,
    Surroundings,
    set_default,
    spec_of,
    text_of,
    with_status,
)
from pocketkube.schema.quantities import canonical_list

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


# Services

_NETWORK = ipaddress.ip_network("10.96.0.0/16")
_FIRST_DYNAMIC = 257  # the lower part of the range is for addresses that are asked for


def _default_service(obj: Object) -> None:
    spec = spec_of(obj)
    set_default(spec, "type", "ClusterIP")
    set_default(spec, "sessionAffinity", "None")
    if spec["type"] != "ExternalName":
        set_default(spec, "internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or ():
        set_default(port, "protocol", "TCP")
        set_default(port, "targetPort", port.get("port", 0))


def _prepare_service(obj: Object, around: Surroundings) -> None:
    obj["status"] = {"loadBalancer": {}}
    _allocate(obj, around)


def _prepare_service_update(obj: Object, old: Object, around: Surroundings) -> None:
    """Keep the address when it was not sent again."""
    if not obj["spec"].get("clusterIP") and old["spec"].get("clusterIP"):
        obj["spec"]["clusterIP"] = old["spec"]["clusterIP"]
    _allocate(obj, around)


def _allocate(obj: Object, around: Surroundings) -> None:
    spec = obj["spec"]
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _free_address(around)
    set_default(spec, "clusterIPs", [spec["clusterIP"]])
    set_default(spec, "ipFamilies", ["IPv4"])
    set_default(spec, "ipFamilyPolicy", "SingleStack")


def _free_address(around: Surroundings) -> str:
    taken = {(one.get("spec") or {}).get("clusterIP") for one in around.find_all("services")}
    numbers = range(_FIRST_DYNAMIC, _NETWORK.num_addresses - 1)
    return next(text for text in (str(_NETWORK[number]) for number in numbers) if text not in taken)


SERVICES = Rules(
    defaults=_default_service,
    prepare_create=_prepare_service,
    prepare_update=_prepare_service_update,
    name_is="dns-label",
    selectable={
        "spec.clusterIP": text_of("spec", "clusterIP"),
        "spec.type": text_of("spec", "type"),
    },
)


# ConfigMaps, Secrets, quotas

_FROZEN = "field is immutable when `immutable` is set"


def _frozen_causes(obj: Object, old: Object, *fields: str) -> list[Cause]:
    if not old.get("immutable"):
        return []
    causes = [] if obj.get("immutable") else [forbidden("immutable", _FROZEN)]
    return causes + [
        forbidden(field, _FROZEN) for field in fields if obj.get(field) != old.get(field)
    ]


def _map_update_causes(obj: Object, old: Object) -> list[Cause]:
    return _frozen_causes(obj, old, "data", "binaryData")


def _default_secret(obj: Object) -> None:
    """Set the type, and put ``stringData``, which is only ever sent, into ``data``."""
    set_default(obj, "type", "Opaque")
    plain = obj.pop("stringData", None)
    if plain:
        coded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **coded}


def _secret_update_causes(obj: Object, old: Object) -> list[Cause]:
    causes = immutable("type", obj.get("type"), old.get("type"))
    return causes + _frozen_causes(obj, old, "data")


def _default_quota(obj: Object) -> None:
    canonical_list(spec_of(obj).get("hard") or {})


QUOTA_PARTS = ("requests", "limits")
_COUNTED = ("pods", "cpu", "memory", "ephemeral-storage")


def _quota_causes(obj: Object) -> list[Cause]:
    """Refuse what quotas do not count here, so that nobody relies on it."""
    spec = obj["spec"]
    why = "of scopes, this cluster knows a selector of PriorityClass with In only"
    causes = [forbidden("spec.scopes", why)] if spec.get("scopes") else []
    scopes = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if any((s.get("scopeName"), s.get("operator")) != ("PriorityClass", "In") for s in scopes):
        causes.append(forbidden("spec.scopeSelector", why))
    for name in spec.get("hard") or ():
        part = name.partition(".")[0]
        is_storage = name in ("requests.storage", "limits.storage")
        if is_storage or not (name in _COUNTED or name[:6] == "count/" or part in QUOTA_PARTS):
            why = "this cluster counts pods, requests.*, limits.* and count/* only"
            causes.append(forbidden(f"spec.hard[{name}]", why))
    return causes


CONFIG_MAPS = Rules(validate_update=_map_update_causes)
SECRETS = Rules(
    defaults=_default_secret,
    validate_update=_secret_update_causes,
    selectable={"type": text_of("type")},
)
QUOTAS = Rules(defaults=_default_quota, prepare_create=with_status({}), validate=_quota_causes)
