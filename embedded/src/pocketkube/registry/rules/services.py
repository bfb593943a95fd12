"""Services, Endpoints and EndpointSlices.

Source: kubernetes ``pkg/apis/core`` and ``pkg/registry/core/service`` of 1.36. Cluster IPs are the
lowest that are free in 10.96.0.0/16; node ports the lowest from 30000.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from pocketkube.objects import Object
from pocketkube.registry.rules.base import Rules, Surroundings
from pocketkube.registry.rules.common import set_default, spec_of, text_of

_NETWORK = ipaddress.ip_network("10.96.0.0/16")
_FIRST_DYNAMIC = 257  # the lower part of the range is for addresses that are asked for
_NODE_PORTS = range(30000, 32768)
_STICKY_S = 10800
_REACHABLE = ("NodePort", "LoadBalancer")


def _default_service(obj: Object) -> None:
    spec = spec_of(obj)
    _default_affinity(spec)
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if spec["type"] in _REACHABLE and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec["type"] in (*_REACHABLE, "ClusterIP"):
        set_default(spec, "internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        set_default(spec, "allocateLoadBalancerNodePorts", True)


def _default_affinity(spec: dict[str, Any]) -> None:
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _STICKY_S}}
    else:
        spec.pop("sessionAffinityConfig", None)


def _prepare_create(obj: Object, around: Surroundings) -> None:
    obj["status"] = {"loadBalancer": {}}
    _allocate(obj["spec"], around)


def _prepare_update(obj: Object, old: Object, around: Surroundings) -> None:
    """Keep the addresses, and the node ports of the same ports, when they were not sent again."""
    spec, before = obj["spec"], old["spec"]
    if spec["type"] != "ExternalName" and before["type"] != "ExternalName":
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(field) and field in before:
                spec[field] = before[field]
    known = {
        (p.get("protocol"), p.get("port")): p.get("nodePort") for p in before.get("ports") or ()
    }
    if spec["type"] in _REACHABLE:
        for port in spec.get("ports") or ():
            node_port = known.get((port["protocol"], port.get("port")))
            if not port.get("nodePort") and node_port:
                port["nodePort"] = node_port
    _allocate(spec, around)


def _allocate(spec: dict[str, Any], around: Surroundings) -> None:
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _free_address(around)
    set_default(spec, "clusterIPs", [spec["clusterIP"]])
    set_default(spec, "ipFamilies", ["IPv4"])
    set_default(spec, "ipFamilyPolicy", "SingleStack")
    wanting = [port for port in spec.get("ports") or () if not port.get("nodePort")]
    if spec["type"] in _REACHABLE and wanting:
        free = _free_node_ports(around)
        for port in wanting:
            port["nodePort"] = next(free)


def _free_address(around: Surroundings) -> str:
    taken = {(one.get("spec") or {}).get("clusterIP") for one in around.find_all("services")}
    numbers = range(_FIRST_DYNAMIC, _NETWORK.num_addresses - 1)
    return next(text for text in (str(_NETWORK[number]) for number in numbers) if text not in taken)


def _free_node_ports(around: Surroundings) -> Iterator[int]:
    taken = {
        port.get("nodePort")
        for service in around.find_all("services")
        for port in (service.get("spec") or {}).get("ports") or ()
    }
    return (number for number in _NODE_PORTS if number not in taken)


def _default_endpoints(obj: Object) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            set_default(port, "protocol", "TCP")


def _default_slice(obj: Object) -> None:
    for port in obj.get("ports") or ():
        set_default(port, "name", "")
        set_default(port, "protocol", "TCP")
    for endpoint in obj.get("endpoints") or ():
        set_default(endpoint, "conditions", {})


SERVICES = Rules(
    defaults=_default_service,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    name_is="dns-label",
    selectable={
        "spec.clusterIP": text_of("spec", "clusterIP"),
        "spec.type": text_of("spec", "type"),
    },
)
ENDPOINTS = Rules(defaults=_default_endpoints)
ENDPOINT_SLICES = Rules(
    defaults=_default_slice,
    has_generation=True,
)
