"""How much of a node a pod takes: kube-scheduler's NodeResourcesFit of Kubernetes 1.36.

In: the containers of a pod. Out: amounts in base units, sorted by name. Called by ``spec``.
Fractions are rounded up for each container, while kube-scheduler rounds the sum. Both are equal for
all amounts that the API server stores (it rounds cpu to milli), and ours is never lower.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from quorate.core.model.quantity import (
    QUANTITY_MAX,
    QuantityError,
    is_node_resource,
    parse_amount,
)
from quorate.shell.watch.pod.wire import (
    Condition,
    Container,
    ContainerStatus,
    Requests,
    Spec,
    SpecError,
    Status,
    decode_part,
    is_set,
)

Amounts = dict[str, int]

_LEAST = {"cpu": 100, "memory": 200 << 20}
_REQUESTS = msgspec.json.Decoder(Requests | None)
_AMOUNTS = msgspec.json.Decoder(dict[str, str | int | float] | None)
_CONDITIONS = msgspec.json.Decoder(list[Condition] | None)


def pod_requests(spec: Spec, status: Status | None) -> tuple[tuple[str, int], ...]:
    """Return what a pod takes of a node; ``status`` is for placed pods, which may be resizing.

    Raises ``SpecError``.
    """
    return _checked(_requests(spec, status, {}, pod_level=True))


def scored_requests(spec: Spec, status: Status | None, *, pod_level: bool) -> tuple[int, int]:
    """Return cpu and memory as kube-scheduler's scores of allocation count them.

    A container without a request of cpu or memory counts as 100m or 200 MiB. Source:
    NonZeroRequested of the scheduler's framework. Its scorer ignores pod-level requests of the
    incoming pod: ``pod_level`` False does the same.
    """
    total = _requests(spec, status, _LEAST, pod_level=pod_level)
    return total.get("cpu", 0), total.get("memory", 0)


def _requests(spec: Spec, status: Status | None, least: Amounts, *, pod_level: bool) -> Amounts:
    """Sum the requests; ``least`` has the amounts for containers without a request."""
    resize = _Resize(status)
    total: Amounts = {}
    for index, container in enumerate(spec.containers):
        own = _of_container(container, f"spec.containers[{index}]")
        _add(total, least | resize.adjusted(own, container.name))

    sidecars: Amounts = {}
    peak: Amounts = {}
    for index, container in enumerate(spec.init_containers or ()):
        own = _of_container(container, f"spec.initContainers[{index}]")
        if container.restart_policy == "Always":  # a sidecar: it keeps running with the containers
            own = least | resize.adjusted(own, container.name)
            _add(total, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            own = least | own
            _add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(total, peak)

    if pod_level and is_set(spec.resources):
        own = _of_requirements(spec.resources, "spec.resources")
        effective = resize.adjusted_pod(dict(own))
        for name in own:
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                total[name] = effective.get(name, 0)
    _add(total, _amounts(spec.overhead, "spec.overhead"))
    return total


class _Resize:
    """The amounts that the kubelet allocated to a pod, where they differ from its spec."""

    def __init__(self, status: Status | None) -> None:
        self._infeasible = False
        self._given: dict[str, Amounts | None] = {}
        self._given_pod: Amounts | None = None
        if status is None:
            return
        self._infeasible = _is_infeasible(status)
        for kind, statuses in (
            ("containerStatuses", status.container_statuses),
            ("initContainerStatuses", status.init_container_statuses),
        ):
            for index, one in enumerate(statuses or ()):
                self._given[one.name] = _given(one, f"status.{kind}[{index}]")
        self._given_pod = _given(status, "status")

    def adjusted(self, own: Amounts, name: str) -> Amounts:
        return self._larger(own, self._given.get(name))

    def adjusted_pod(self, own: Amounts) -> Amounts:
        return self._larger(own, self._given_pod)

    def _larger(self, own: Amounts, given: Amounts | None) -> Amounts:
        if given is None:
            return own
        if self._infeasible:  # the kubelet will never grant what the spec asks for
            return dict(given)
        _raise_to(own, given)
        return own


def _given(status: ContainerStatus | Status, path: str) -> Amounts | None:
    """Return the larger of allocated and actual amounts; None if the kubelet reports none."""
    if bytes(status.resources) in (b"", b"null"):
        return None
    given = _amounts(status.allocated_resources, f"{path}.allocatedResources")
    _raise_to(given, _of_requirements(status.resources, f"{path}.resources"))
    return given


def _is_infeasible(status: Status) -> bool:
    if b'"PodResizePending"' not in bytes(status.conditions):
        return False
    found = decode_part(_CONDITIONS, status.conditions, "status.conditions") or []
    return any(one.type == "PodResizePending" and one.reason == "Infeasible" for one in found)


def _of_container(container: Container, path: str) -> Amounts:
    return _of_requirements(container.resources, f"{path}.resources")


def _of_requirements(raw: Raw, path: str) -> Amounts:
    if not is_set(raw):
        return {}
    requirements = decode_part(_REQUESTS, raw, path)
    return _parsed((requirements and requirements.requests) or {}, f"{path}.requests")


def _amounts(raw: Raw, path: str) -> Amounts:
    return _parsed(decode_part(_AMOUNTS, raw, path) or {}, path) if is_set(raw) else {}


def _parsed(written: dict[str, str | int | float], path: str) -> Amounts:
    amounts: Amounts = {}
    for name, quantity in written.items():
        try:
            amount = parse_amount(name, str(quantity))
        except QuantityError as error:
            raise SpecError(f"{path}.{name[:100]}: {error}") from None
        if is_node_resource(name):
            amounts[name] = amount
    return amounts


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0):
            total[name] = amount


def _checked(total: Amounts) -> tuple[tuple[str, int], ...]:
    for name, amount in total.items():
        if amount > QUANTITY_MAX:
            raise SpecError(f"spec: its requests of {name} add up to more than any machine has")
    return tuple(sorted((name, amount) for name, amount in total.items() if amount))
