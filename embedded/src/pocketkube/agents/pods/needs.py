"""What a kubelet asks of its node for one pod: amounts, labels, taints that it bears, host ports.

In: the parts of a pod's spec as JSON. Out: ``PodNeeds``. Called by ``facts``, once for each new
combination of parts, so clarity comes before speed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from pocketkube.registry.rules.pods.pod_resources import nano_amounts
from pocketkube.schema.quantities import NANO, nano_units

EVERY_ADDRESS = "0.0.0.0"
_MILLI = NANO // 1000
_EMPTY = Raw()


class Container(Struct, gc=False, rename="camel"):
    """``spec.containers[]`` and ``spec.initContainers[]``: what a node has to give them."""

    resources: Raw = _EMPTY
    ports: Raw = _EMPTY
    restart_policy: str | None = None


class Spec(Struct, gc=False, rename="camel"):
    """The parts of ``spec`` that are alike in all pods of a job; their bytes are the key."""

    containers: list[Container]
    init_containers: list[Container] | None = None
    node_name: str | None = None
    affinity: Raw = _EMPTY
    tolerations: Raw = _EMPTY
    node_selector: Raw = _EMPTY
    overhead: Raw = _EMPTY
    resources: Raw = _EMPTY


class HostPort(NamedTuple):
    """A port of the node that a pod takes."""

    protocol: str
    ip: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Tell whether both cannot be on one node (kube-scheduler's NodePorts rule)."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.ip == other.ip or EVERY_ADDRESS in (self.ip, other.ip)


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """What one pod needs.

    ``requests`` are in base units, millicores for cpu, else whole units, and sorted by name;
    ``placement`` is what ``matching.selectors.fits`` reads of a pod spec.
    """

    requests: tuple[tuple[str, int], ...] = ()
    placement: Mapping[str, Any] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    host_ports: tuple[HostPort, ...] = ()


def pod_needs(spec: Spec) -> PodNeeds:
    """Return what a pod with this spec needs. Raises a msgspec error: not the JSON of a pod."""
    containers = [_part(one) for one in spec.containers]
    first = [_part(one) for one in spec.init_containers or ()]
    placement = {"nodeSelector": _json(spec.node_selector), "affinity": _json(spec.affinity)}
    sidecars = [one for one in first if one["restartPolicy"] == "Always"]
    return PodNeeds(
        requests=_requests(
            {
                "containers": containers,
                "initContainers": first,
                "resources": _json(spec.resources),
                "overhead": _json(spec.overhead),
            }
        ),
        placement=placement,
        tolerations=tuple(_json(spec.tolerations) or ()),
        host_ports=_host_ports([*containers, *sidecars]),
    )


def amount_of(resource: str, text: str) -> int:
    """Return a quantity in base units, fractions rounded up. Raises ValueError: no quantity."""
    return -(-nano_units(text) // (_MILLI if resource == "cpu" else NANO))


def _part(container: Container) -> dict[str, Any]:
    return {
        "resources": _json(container.resources),
        "ports": _json(container.ports),
        "restartPolicy": container.restart_policy,
    }


def _json(raw: Raw) -> Any:
    return msgspec.json.decode(raw) if bytes(raw) else None


def _requests(spec: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Add up requests as kube-scheduler's NodeResourcesFit does."""
    amounts = {
        name: -(-nano // (_MILLI if name == "cpu" else NANO))
        for name, nano in nano_amounts(spec).items()
    }
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0))


def _host_ports(containers: list[dict[str, Any]]) -> tuple[HostPort, ...]:
    taken = {
        HostPort(
            port.get("protocol") or "TCP", port.get("hostIP") or EVERY_ADDRESS, port["hostPort"]
        )
        for container in containers
        for port in container["ports"] or ()
        if port.get("hostPort")
    }
    return tuple(sorted(taken))
