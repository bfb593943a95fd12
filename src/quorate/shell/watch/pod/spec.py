"""What filters and scores read of a pod, as a ``PodSpec``.

In: the parts of a pod that ``wire`` left raw. Out: values of the core. Called by ``decoding`` once
for each new combination of bytes, so clarity comes before speed here.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from quorate.core.model import (
    HostPort,
    PodSpec,
    PreferredTerm,
    SelectorTerm,
    Toleration,
)
from quorate.shell.watch.pod.neighbours import (
    preferred_terms,
    required_terms,
    requirements,
    spread_constraints,
)
from quorate.shell.watch.pod.requests import pod_requests, scored_requests
from quorate.shell.watch.pod.wire import (
    Affinity,
    Container,
    NodeTerm,
    Port,
    Spec,
    Status,
    WireToleration,
    decode_part,
    is_set,
)

_AFFINITY = msgspec.json.Decoder(Affinity | None)
_SELECTOR = msgspec.json.Decoder(dict[str, str] | None)
_TOLERATIONS = msgspec.json.Decoder(list[WireToleration] | None)
_PORTS = msgspec.json.Decoder(list[Port] | None)


def pod_spec(
    spec: Spec,
    status: Status | None,
    namespace: str,
    labels: Mapping[str, str],
) -> PodSpec:
    """Return the spec. Raises ``SpecError``.

    ``namespace`` and ``labels`` are the pod's own: terms default to its namespace, and
    matchLabelKeys use its values.
    """
    affinity = _affinity(spec.affinity)
    scored = scored_requests(spec, status, pod_level=True)
    pending = scored_requests(spec, status, pod_level=False)
    node = affinity.node_affinity
    required = preferred = None
    if node:
        preferred = node.preferred
        if node.required:
            required = tuple(_term(term) for term in node.required.node_selector_terms or ())
    selector = (
        decode_part(_SELECTOR, spec.node_selector, "spec.nodeSelector")
        if is_set(spec.node_selector)
        else None
    )
    return PodSpec(
        requests=pod_requests(spec, status),
        node_selector=tuple(sorted((selector or {}).items())),
        required_terms=required,
        preferred_terms=tuple(
            PreferredTerm(one.weight, _term(one.preference)) for one in preferred or ()
        ),
        tolerations=tolerations(spec.tolerations),
        host_ports=_host_ports(spec),
        affinity=required_terms(affinity.pod_affinity, "podAffinity", namespace),
        anti_affinity=required_terms(affinity.pod_anti_affinity, "podAntiAffinity", namespace),
        preferred_affinity=preferred_terms(affinity, namespace),
        spread=spread_constraints(spec.topology_spread_constraints, namespace, labels),
        node_features=_node_features(spec),
        scored=scored,
        scored_pending=pending if pending != scored else None,
        containers=len(spec.containers) + len(spec.init_containers or ()),
    )


def taken(spec: Spec, status: Status | None, namespace: str) -> PodSpec:
    """Return the spec of a placed pod: what it takes, and which pods its anti-affinity refuses.

    Raises ``SpecError``.
    """
    affinity = _affinity(spec.affinity)
    return PodSpec(
        requests=pod_requests(spec, status),
        host_ports=_host_ports(spec),
        affinity=required_terms(affinity.pod_affinity, "podAffinity", namespace),
        anti_affinity=required_terms(affinity.pod_anti_affinity, "podAntiAffinity", namespace),
        preferred_affinity=preferred_terms(affinity, namespace),
        scored=scored_requests(spec, status, pod_level=True),
    )


def restarts_all_containers(container: Container) -> bool:
    """Whether a rule of the container restarts the whole pod, which needs a node feature."""
    return b'"RestartAllContainers"' in bytes(container.restart_policy_rules)


def tolerations(raw: Raw) -> tuple[Toleration, ...]:
    """Return tolerations of a pod, or of a request for devices. Raises ``SpecError``."""
    if not is_set(raw):
        return ()
    written = decode_part(_TOLERATIONS, raw, "spec.tolerations") or ()
    return tuple(
        Toleration(one.key or "", one.operator or "Equal", one.value or "", one.effect or "")
        for one in written
    )


def _affinity(raw: Raw) -> Affinity:
    found = decode_part(_AFFINITY, raw, "spec.affinity") if is_set(raw) else None
    return found or Affinity()


def _term(term: NodeTerm) -> SelectorTerm:
    return SelectorTerm(
        expressions=requirements(term.match_expressions), fields=requirements(term.match_fields)
    )


def _host_ports(spec: Spec) -> tuple[HostPort, ...]:
    taken: set[HostPort] = set()
    sidecars = [one for one in spec.init_containers or () if one.restart_policy == "Always"]
    for container in (*spec.containers, *sidecars):
        if b'"hostPort"' not in bytes(container.ports):
            continue
        for port in decode_part(_PORTS, container.ports, "spec.containers.ports") or ():
            if port.host_port:
                ip, protocol = port.host_ip or "0.0.0.0", port.protocol or "TCP"
                taken.add(HostPort(protocol, ip, port.host_port))
    return tuple(sorted(taken))


def _node_features(spec: Spec) -> tuple[str, ...]:
    """Return which features the node must declare, by kube-scheduler 1.36's inference."""
    restarts = any(
        restarts_all_containers(one) for one in (*spec.containers, *(spec.init_containers or ()))
    )
    needs = {
        "RestartAllContainersOnContainerExits": restarts,
        "UserNamespacesHostNetworkSupport": bool(spec.host_network and spec.host_users is False),
    }
    return tuple(rule for rule, needed in needs.items() if needed)
