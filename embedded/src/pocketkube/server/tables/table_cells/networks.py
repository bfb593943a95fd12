"""Services and what is behind them, ingresses, network policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.objects import Object, annotations_of, name_of
from pocketkube.server.tables.table_cells.words import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    age,
    first,
    labels,
    selector,
)

_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _service(obj: Object, now_s: float) -> list[Any]:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or []
    ports = ",".join(_port(port) for port in spec.get("ports") or [])
    return [
        name_of(obj),
        spec.get("type", ""),
        addresses[0] if addresses else NONE,
        _external(obj, spec),
        ports or NONE,
        age(obj, now_s),
        labels(spec.get("selector")),
    ]


def _port(port: Mapping[str, Any]) -> str:
    number = str(port.get("port", 0))
    if port.get("nodePort"):
        number += f":{port['nodePort']}"
    return f"{number}/{port.get('protocol', '')}"


def _external(obj: Object, spec: Mapping[str, Any]) -> str:
    own = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case "LoadBalancer":
            balanced = _balanced(obj)
            return ",".join([*([balanced] if balanced else []), *own]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return UNKNOWN


def _balanced(obj: Object) -> str:
    """Return the addresses that a load balancer has given."""
    status = (obj.get("status") or {}).get("loadBalancer") or {}
    points = status.get("ingress") or []
    found = {point.get("ip") or point.get("hostname") for point in points}
    return ",".join(sorted(one for one in found if one))


def _endpoints(obj: Object, now_s: float) -> list[Any]:
    subsets = obj.get("subsets") or []
    found: list[str] = []
    for subset in subsets:
        addresses = [one.get("ip", "") for one in subset.get("addresses") or []]
        ports = subset.get("ports") or []
        if not ports:
            found += addresses  # a headless Service need not have any
        found += [f"{_bracketed(ip)}:{port.get('port')}" for port in ports for ip in addresses]
    shown = first(found, len(found)) if subsets else NONE
    return [name_of(obj), shown, age(obj, now_s)]


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def _endpoint_slice(obj: Object, now_s: float) -> list[Any]:
    ports = [
        str(port["port"]) if port.get("port") is not None else port.get("name") or "*"
        for port in obj.get("ports") or []
    ]
    addresses = [
        address
        for endpoint in obj.get("endpoints") or []
        for address in endpoint.get("addresses") or []
    ]
    return [
        name_of(obj),
        obj.get("addressType", ""),
        first(ports, len(ports)) or UNSET,
        first(addresses, len(addresses)) or UNSET,
        age(obj, now_s),
    ]


def _ingress(obj: Object, now_s: float) -> list[Any]:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    hosts = [rule["host"] for rule in spec.get("rules") or [] if rule.get("host")]
    return [
        name_of(obj),
        spec.get("ingressClassName") or NONE,
        first(hosts, len(hosts)) or "*",
        _balanced(obj),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now_s),
    ]


def _ingress_class(obj: Object, now_s: float) -> list[Any]:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    name = name_of(obj)
    if annotations_of(obj).get(_DEFAULT_CLASS) == "true":
        name += " (default)"
    parameters, shown = spec.get("parameters"), NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [name, spec.get("controller", ""), shown, age(obj, now_s)]


def _network_policy(obj: Object, now_s: float) -> list[Any]:
    chosen = (obj.get("spec") or {}).get("podSelector")
    return [name_of(obj), selector(chosen), age(obj, now_s)]


def _service_cidr(obj: Object, now_s: float) -> list[Any]:
    ranges = (obj.get("spec") or {}).get("cidrs") or []
    return [name_of(obj), ",".join(ranges), age(obj, now_s)]


def _ip_address(obj: Object, now_s: float) -> list[Any]:
    parent = (obj.get("spec") or {}).get("parentRef")
    shown = NONE
    if parent:
        group = f".{parent['group']}" if parent.get("group") else ""
        what = f"{parent.get('resource', '')}{group}".lower()
        parts = [what, parent.get("namespace", ""), parent.get("name", "")]
        shown = "/".join(part for part in parts if part)
    # One cell more than there are columns, as upstream.
    return [name_of(obj), shown, age(obj, now_s)]


CELLS: Mapping[str, Cells] = {
    "endpoints": _endpoints,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "ingressclasses.networking.k8s.io": _ingress_class,
    "ingresses.networking.k8s.io": _ingress,
    "ipaddresses.networking.k8s.io": _ip_address,
    "networkpolicies.networking.k8s.io": _network_policy,
    "servicecidrs.networking.k8s.io": _service_cidr,
    "services": _service,
}
