"""Turn chosen devices into allocations: names, configuration, and a node selector.

Source: the end of Allocate in kube-scheduler 1.36's structured allocator. In: picks and the pools
of the node. Out: ``Allocation``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from fractions import Fraction

from quorate.core.cluster.devices.pools import PlacedDevice, Pool
from quorate.core.cluster.devices.requests import Choice, UnallocatedClaim
from quorate.core.model import Allocation, Requirement, SelectorTerm
from quorate.core.model.devices import DeviceId, GivenConfig, GivenDevice
from quorate.core.room.devices.picked import Pick


def allocation(
    claim: UnallocatedClaim,
    picks: tuple[Pick, ...],
    pools: tuple[Pool, ...],
    node: str,
    new_share_id: Callable[[DeviceId], str],
) -> Allocation:
    """Return the allocation of one claim on the node.

    ``new_share_id`` returns an id that no other share of the device has.
    """
    devices, placed = [], []
    for pick in picks:
        request = claim.requests[pick.request]
        choice = request.choices[pick.choice]
        one = pools[pick.pool].devices[pick.device]
        placed.append(one)
        of_device = one.traits.value
        devices.append(
            GivenDevice(
                request=choice.label(request),
                device=one.id,
                admin=True if choice.wanted.admin else None,
                share_id=new_share_id(one.id) if of_device.shareable else "",
                consumed=tuple((name, as_text(amount)) for name, amount in pick.consumed),
                binding_conditions=of_device.binding_conditions or (),
                binding_failures=of_device.binding_failures,
                tolerations_text=choice.wanted.tolerations_text,
            )
        )
    return Allocation(tuple(devices), _nodes(placed, node), _config(claim, picks))


def share_id(device: DeviceId, number: int) -> str:
    """Return an id in the form of a UUID: the same device and number give the same one."""
    digest = hashlib.sha256(f"{device}/{number}".encode()).hexdigest()
    version = f"8{digest[13:16]}"
    return f"{digest[:8]}-{digest[8:12]}-{version}-a{digest[17:20]}-{digest[20:32]}"


def as_text(amount: Fraction) -> str:
    """Return an amount as a quantity; fractions of a billionth (unit n) are rounded up."""
    if amount.denominator == 1:
        return str(amount.numerator)
    return f"{-(-amount.numerator * 10**9 // amount.denominator)}n"


def _nodes(placed: Sequence[PlacedDevice], node: str) -> tuple[SelectorTerm, ...] | None:
    """Return the selector of nodes that reach all the devices; None if all nodes do."""
    expressions: list[Requirement] = []
    fields: list[Requirement] = []
    for one in placed:
        if one.nodes.name or one.traits.value.binds_to_node:
            return (SelectorTerm(fields=(Requirement("metadata.name", "In", (node,)),)),)
        for term in (one.nodes.terms or ())[:1]:
            _add_new(term.expressions, expressions)
            _add_new(term.fields, fields)
    if expressions or fields:
        return (SelectorTerm(tuple(expressions), tuple(fields)),)
    return None


def _add_new(found: tuple[Requirement, ...], known: list[Requirement]) -> None:
    for one in found:
        if not any(
            one.key == other.key
            and one.operator == other.operator
            and set(one.values) == set(other.values)
            for other in known
        ):
            known.append(one)


def _config(claim: UnallocatedClaim, picks: tuple[Pick, ...]) -> tuple[GivenConfig, ...]:
    """Return the configuration of each class once, then the claim's entries that apply."""
    chosen = {pick.request: pick.choice for pick in picks}
    labels: dict[str, tuple[Choice, list[str]]] = {}
    for index, request in enumerate(claim.requests):
        choice = request.choices[chosen.get(index, 0)]
        _, requests = labels.setdefault(choice.device_class.name, (choice, []))
        requests.append(choice.label(request))
    found = [
        GivenConfig("FromClass", tuple(requests), one.text)
        for choice, requests in labels.values()
        for one in choice.device_class.config
    ]
    for config in claim.config:
        if not config.requests:
            found.append(GivenConfig("FromClaim", (), config.text))
            continue
        named = frozenset(config.requests)
        for index, request in enumerate(claim.requests):
            choice = request.choices[chosen.get(index, 0)]
            if request.name in named or choice.label(request) in named:
                found.append(GivenConfig("FromClaim", config.requests, config.text))
    return tuple(found)
