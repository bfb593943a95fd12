"""The pools of each node, and which kind of node they make. Brought up to date by ``refresh``.

In: ``Devices`` and the nodes' rows. Out: for each row its pools, with named devices, and the code
of its ``DeviceKind``, the same without names: claims are judged once for all nodes of one kind.
Owned by ``cluster.cluster``; read by ``room.devices``. Source: GatherPools of kube-scheduler 1.36's
structured allocator, for pools whose devices one node alone reaches.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from quorate.core.cluster.arrays import Codes, grown
from quorate.core.cluster.devices.devices import Devices, PoolKey
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.model import DeviceId, ResourceSlice, policy
from quorate.core.model.devices import Device, DeviceTraits


class PoolState(IntEnum):
    """Whether devices of a pool may be allocated."""

    GOOD = 0
    INCOMPLETE = 1
    """Some slices of its newest generation are not known yet."""
    INVALID = 2
    """The names of its devices are not unique."""

    __hash__ = int.__hash__  # Enum's hash is slow


class SharedTraits:
    """The traits of equal devices: one object for equal traits, as long as it is referenced.

    They are compared by identity, so comparing kinds is fast.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: DeviceTraits) -> None:
        self.value = value


class PoolKind(NamedTuple):
    """A pool without its name; only a pool that is not good has its name, as ``label``.

    ``used`` says of each device whether it is given, or closed.
    """

    state: PoolState
    label: str
    traits: tuple[SharedTraits, ...]
    used: tuple[bool, ...]


DeviceKind = tuple[PoolKind, ...]


class PoolParts(NamedTuple):
    """What pools of equal devices have in common; ``names`` in the order in which they are tried.

    ``free`` is their kind where none is in use.
    """

    names: tuple[str, ...]
    free: PoolKind


class Pool(NamedTuple):
    """A pool of one node."""

    key: PoolKey
    parts: PoolParts

    def device(self, at: int) -> DeviceId:
        """Return the device at this place."""
        return DeviceId(*self.key, self.parts.names[at])

    def kind(self, used: Collection[str]) -> PoolKind:
        """Return the pool without names, given the names of devices that are in use."""
        names, free = self.parts
        if free.state is not PoolState.GOOD:
            return free._replace(label="/".join(self.key))
        if not used:
            return free
        pairs = zip(names, free.used, strict=True)
        return free._replace(used=tuple([is_closed or name in used for name, is_closed in pairs]))


_EMPTY = PoolParts((), PoolKind(PoolState.GOOD, "", (), ()))
_INCOMPLETE = PoolParts((), PoolKind(PoolState.INCOMPLETE, "", (), ()))
_INVALID = PoolParts((), PoolKind(PoolState.INVALID, "", (), ()))


class DeviceKinds:
    """The codes of kinds of node. A code is never used again for another kind."""

    def __init__(self) -> None:
        self._kinds: list[DeviceKind] = []
        self._codes: dict[DeviceKind, int] = {}

    def __len__(self) -> int:
        """Return the number of known kinds."""
        return len(self._kinds)

    def __getitem__(self, code: int) -> DeviceKind:
        """Return the kind with a code."""
        return self._kinds[code]

    def code(self, kind: DeviceKind) -> int:
        """Return the code of a kind; a new kind gets a code."""
        code = self._codes.get(kind)
        if code is None:
            code = self._codes[kind] = len(self._kinds)
            self._kinds.append(kind)
        return code


class DeviceViews:
    """``pools`` are those of each row, in order; ``codes`` is int32[>= rows], the rows' kinds.

    All of this is derived from devices and nodes, so a checkpoint does not contain it.
    """

    def __init__(self, devices: Devices, nodes: NodeTable) -> None:
        self._devices = devices
        self._nodes = nodes
        self._nodes_version = -1
        self._names: list[str] = []
        """By row, the node that was there."""
        self._changed: set[str] = set()
        """Nodes whose pools, or what is in use of them, changed since the last refresh."""
        self._traits: WeakValueDictionary[DeviceTraits, SharedTraits] = WeakValueDictionary()
        self._parts: LruCache[tuple[Device, ...], PoolParts] = LruCache()
        self._last: tuple[tuple[Device, ...], PoolParts] = (), _EMPTY
        """Of these devices most pools consist: it is asked for them first."""
        self._pools: dict[PoolKey, tuple[str, Pool]] = {}
        """Each pool whose devices one node reaches, with that node's name."""
        self._of_node: dict[str, set[PoolKey]] = {}
        self.kinds = DeviceKinds()
        self.pools: list[tuple[Pool, ...]] = []
        self.codes: Codes = np.zeros(0, np.int32)

    def slice_changed(self, one: ResourceSlice) -> None:
        """Gather the pool of a slice at once if it has no other: a decision has less to do."""
        key = one.driver, one.pool
        if len(self._devices.by_pool[key]) == 1 and self._devices.stale_pools.get(key):
            self._gather(key)
            self._devices.stale_pools[key] = False

    def refresh(self) -> None:
        """Bring pools and codes up to date with devices and nodes."""
        devices, nodes = self._devices, self._nodes
        if devices.all_stale:
            self._start_anew()
        for key, is_gathered in devices.stale_pools.items():
            if is_gathered:
                self._gather(key)
            elif key in self._pools:
                self._changed.add(self._pools[key][0])
        devices.stale_pools.clear()
        rows = {nodes.rows[name] for name in self._changed if name in nodes.rows}
        rows |= self._other_nodes(nodes)
        self._changed = set()
        if len(self.kinds) > policy.DEVICE_KINDS_SPARE_MIN + 2 * len(nodes):
            self.kinds, rows = DeviceKinds(), set(range(len(nodes)))
        for row in sorted(rows):
            keys = sorted(self._of_node.get(self._names[row], ()))
            pools = self.pools[row] = tuple([self._pools[key][1] for key in keys])
            kind = tuple([pool.kind(devices.in_use.get(pool.key, ())) for pool in pools])
            self.codes[row] = self.kinds.code(kind)

    def _start_anew(self) -> None:
        self._nodes_version = -1
        self._names, self._pools, self._of_node = [], {}, {}
        self.kinds, self.pools = DeviceKinds(), []
        self._devices.all_stale = False
        self._devices.stale_pools = dict.fromkeys(self._devices.by_pool, True)

    def _other_nodes(self, table: NodeTable) -> set[int]:
        """Return the rows that hold another node than before."""
        if self._nodes_version == table.attributes_version:
            return set()
        self._nodes_version = table.attributes_version
        names = [node.name if node is not None else "" for node in table.nodes]
        first_new = len(self._names)
        rows = {row for row, name in enumerate(self._names) if name != names[row]}
        rows.update(range(first_new, len(names)))
        self._names = names
        self.pools += [()] * (len(names) - len(self.pools))
        if len(self.codes) < len(names):
            self.codes = grown(self.codes, table.capacity)
        return rows

    def _gather(self, key: PoolKey) -> None:
        """Make a pool anew from its slices; one that several nodes reach is left out."""
        before = self._pools.pop(key, None)
        if before is not None:
            self._changed.add(before[0])
            self._of_node[before[0]].discard(key)
            if not self._of_node[before[0]]:
                del self._of_node[before[0]]
        known = list(self._devices.by_pool.get(key, {}).values())
        nodes = {one.node for one in known if one.devices or one.node}
        if len(nodes) != 1 or "" in nodes:
            return
        if len(known) > 1:
            generation = max(one.generation for one in known)
            known = [one for one in known if one.generation == generation]
            known.sort(key=lambda one: one.name)
        parts = _INCOMPLETE
        if len(known) == known[0].slices:
            parts = self._parts_of(tuple([device for one in known for device in one.devices]))
            if parts is _EMPTY:
                return
        (node,) = nodes
        self._pools[key] = node, Pool(key, parts)
        self._of_node.setdefault(node, set()).add(key)
        self._changed.add(node)

    def _parts_of(self, devices: tuple[Device, ...]) -> PoolParts:
        """Return what pools of these devices have in common."""
        if devices == self._last[0]:
            return self._last[1]
        found = self._parts.get(devices)
        if found is None:
            found = self._made_of(devices)
            self._parts.put(devices, found, policy.DEVICE_KINDS_SPARE_MIN)
        self._last = devices, found
        return found

    def _made_of(self, devices: tuple[Device, ...]) -> PoolParts:
        names = tuple([device.name for device in devices])
        if len(set(names)) < len(names):
            return _INVALID
        shared = []
        for device in devices:
            known = self._traits.get(device.traits)
            if known is None:
                known = self._traits[device.traits] = SharedTraits(device.traits)
            shared.append(known)
        closed = tuple([bool(device.traits.closed) for device in devices])
        return PoolParts(names, PoolKind(PoolState.GOOD, "", tuple(shared), closed))
