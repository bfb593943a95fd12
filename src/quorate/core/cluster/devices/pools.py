"""Pools of devices as one node sees them, and the kind of node that they make.

In: slices. Out: ``Pool``, with named devices, and ``DeviceKind``, the same without names. Nodes
with the same devices in the same use are of one kind, and claims are judged once for all of them.
Called by ``views``. Source: GatherPools of kube-scheduler 1.36's structured allocator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import NamedTuple
from weakref import WeakValueDictionary

from quorate.core.model.devices import Device, DeviceId, DeviceTraits, Nodes, ResourceSlice
from quorate.core.model.quantity import exact

PoolKey = tuple[str, str]
Shares = tuple[tuple[str, Fraction], ...]


class PoolState(IntEnum):
    """Whether devices of a pool may be allocated."""

    GOOD = 0
    INCOMPLETE = 1
    """Some slices of its newest generation are not known yet."""
    INVALID = 2
    """Names are not unique, or a device consumes counters that do not exist."""


class SharedTraits:
    """The traits of equal devices: one object for equal traits, as long as it is referenced.

    They are compared by identity, so comparing kinds is fast. ``answers`` is a cache of planning.
    """

    __slots__ = ("__weakref__", "answers", "value")

    def __init__(self, value: DeviceTraits) -> None:
        self.value = value
        self.answers: dict[object, object] = {}


class TraitsTable:
    """The shared traits that pools or kinds of node reference."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[DeviceTraits, SharedTraits] = WeakValueDictionary()

    def __len__(self) -> int:
        """Return the number of different traits."""
        return len(self._known)

    def of(self, traits: DeviceTraits) -> SharedTraits:
        """Return the shared object for these traits."""
        found = self._known.get(traits)
        if found is None:
            found = self._known[traits] = SharedTraits(traits)
        return found


class UnnamedDevice(NamedTuple):
    """A device without its name: its traits, and whether it is in use.

    ``shares`` is the capacity that its shares consume (None: it has no shares); ``here`` says
    whether the node can reach it.
    """

    traits: SharedTraits
    used: bool
    shares: Shares | None
    here: bool


class UnnamedPool(NamedTuple):
    """A pool without its name; only a pool that is not good has its name, as ``label``.

    ``counters`` are the amounts left of each counter, by counter set and name.
    """

    state: PoolState
    label: str
    devices: tuple[UnnamedDevice, ...]
    counters: tuple[tuple[tuple[str, str], Fraction], ...]


DeviceKind = tuple[UnnamedPool, ...]


class PlacedDevice(NamedTuple):
    """A device as a node sees it; ``here``: that node can reach it; ``nodes``: all that can."""

    id: DeviceId
    traits: SharedTraits
    here: bool
    nodes: Nodes


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool as a node sees it; ``consumers`` are all its devices that consume counters."""

    key: PoolKey
    state: PoolState
    devices: tuple[PlacedDevice, ...] = ()
    counters: tuple[tuple[tuple[str, str], Fraction], ...] = ()
    consumers: tuple[tuple[DeviceId, DeviceTraits], ...] = ()

    def kind(
        self,
        is_used: Callable[[DeviceId], bool],
        shares: Callable[[DeviceId], Shares | None],
    ) -> UnnamedPool:
        """Return the pool without names, given which devices are used and what shares consume."""
        label = "" if self.state is PoolState.GOOD else "/".join(self.key)
        devices = tuple(
            UnnamedDevice(one.traits, is_used(one.id), shares(one.id), one.here)
            for one in self.devices
        )
        left = dict(self.counters)
        for device, traits in self.consumers:
            if not is_used(device) and shares(device) is None:
                continue
            for use in traits.counters:
                for name, amount in use.counters:
                    if (use.counter_set, name) in left:
                        left[use.counter_set, name] -= exact(amount)
        return UnnamedPool(self.state, label, devices, tuple(left.items()))


def gather(
    node: str,
    labels: dict[str, str],
    slices: Iterable[ResourceSlice],
    by_pool: dict[PoolKey, dict[str, ResourceSlice]],
    table: TraitsTable,
) -> tuple[Pool, ...]:
    """Return the pools that a node sees, in the order in which devices are tried.

    ``slices`` are the node's own and those for several nodes; ``by_pool`` has all slices; ``table``
    returns the shared traits. A pool's counters count whichever nodes their slice names.
    """
    newest: dict[PoolKey, list[ResourceSlice]] = {}
    for one in slices:
        if not one.counters and is_relevant(one, node, labels):
            newest.setdefault((one.driver, one.pool), []).append(one)
    for key, seen in newest.items():
        seen += [one for one in by_pool[key].values() if one.counters]
        generation = max(one.generation for one in seen)
        newest[key] = [one for one in seen if one.generation == generation]
    first: list[Pool] = []
    last: list[Pool] = []  # devices with binding conditions delay a bind, so they come last
    for key in sorted(newest):
        pool = _pool(key, newest[key], list(by_pool[key].values()), node, labels, table)
        if pool is None:
            continue
        waits = any(
            device.traits.binding_conditions is not None
            for one in newest[key]
            for device in one.devices
        )
        (last if waits and pool.state is PoolState.GOOD else first).append(pool)
    return (*first, *last)


def is_relevant(one: ResourceSlice, node: str, labels: dict[str, str]) -> bool:
    """Whether a node can reach devices of a slice."""
    if one.nodes is not None:
        return one.nodes.include(node, labels)
    return any(d.nodes is not None and d.nodes.include(node, labels) for d in one.devices)


def _pool(
    key: PoolKey,
    seen: list[ResourceSlice],
    known: list[ResourceSlice],
    node: str,
    labels: dict[str, str],
    table: TraitsTable,
) -> Pool | None:
    """Return the pool of the slices that a node sees; None if it is obsolete or has no devices."""
    generation, count = seen[0].generation, seen[0].slices
    whole = seen
    if len(seen) != count:
        if any(one.generation > generation for one in known):
            return None
        whole = [one for one in known if one.generation == generation]
        if len(whole) != count:
            return Pool(key, PoolState.INCOMPLETE)
    seen = sorted(seen, key=lambda one: one.name)
    if _is_invalid(seen, whole):
        return Pool(key, PoolState.INVALID)
    devices = tuple(
        _placed(key, device, one, node, labels, table)
        for one in seen
        if not one.counters
        for device in one.devices
    )
    if not devices:
        return None
    return Pool(
        key=key,
        state=PoolState.GOOD,
        devices=devices,
        counters=tuple(
            sorted(
                ((counter_set.counter_set, name), exact(amount))
                for one in seen
                for counter_set in one.counters
                for name, amount in counter_set.counters
            )
        ),
        consumers=tuple(
            (DeviceId(*key, device.name), device.traits)
            for one in whole
            for device in one.devices
            if device.traits.counters
        ),
    )


def _placed(
    key: PoolKey,
    device: Device,
    one: ResourceSlice,
    node: str,
    labels: dict[str, str],
    table: TraitsTable,
) -> PlacedDevice:
    nodes = device.nodes if device.nodes is not None else one.nodes
    return PlacedDevice(
        id=DeviceId(*key, device.name),
        traits=table.of(device.traits),
        here=device.nodes is None or device.nodes.include(node, labels),
        nodes=nodes or Nodes(),
    )


def _is_invalid(seen: list[ResourceSlice], whole: list[ResourceSlice]) -> bool:
    """Whether device names or counter sets repeat, or a device consumes a missing counter."""
    names = [device.name for one in seen if not one.counters for device in one.devices]
    sets = [found.counter_set for one in seen for found in one.counters]
    if len(set(names)) < len(names) or len(set(sets)) < len(sets):
        return True
    counters = {
        (found.counter_set, name) for one in seen for found in one.counters for name, _ in found[1]
    }
    return any(
        use.counter_set not in sets
        or any((use.counter_set, name) not in counters for name, _ in use[1])
        for one in whole
        for device in one.devices
        for use in device.traits.counters
    )
