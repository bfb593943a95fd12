"""The pools of each node, and which kind of node they make. Brought up to date by ``refresh``.

In: ``Devices`` and the nodes' rows. Out: for each row its pools, with named devices, and the code
of its ``DeviceKind``, the same without names: claims are judged once for all nodes of one kind.
Owned by ``cluster.cluster``; read by ``room.devices``. Source: GatherPools of kube-scheduler 1.36's
structured allocator, for pools whose devices one node alone reaches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import IntEnum
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from quorate.core.cluster.arrays import Codes, grown
from quorate.core.cluster.devices.devices import Devices, PoolKey
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.model import DeviceId, ResourceSlice, policy
from quorate.core.model.devices import DeviceTraits


class PoolState(IntEnum):
    """Whether devices of a pool may be allocated."""

    GOOD = 0
    INCOMPLETE = 1
    """Some slices of its newest generation are not known yet."""
    INVALID = 2
    """The names of its devices are not unique."""


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


class Pool(NamedTuple):
    """A pool of one node; ``names`` of its devices in the order in which they are tried.

    ``closed`` says which of them are given to nobody.
    """

    key: PoolKey
    state: PoolState = PoolState.GOOD
    names: tuple[str, ...] = ()
    traits: tuple[SharedTraits, ...] = ()
    closed: tuple[bool, ...] = ()

    def device(self, at: int) -> DeviceId:
        """Return the device at this place."""
        return DeviceId(*self.key, self.names[at])

    def kind(self, used: Collection[str]) -> PoolKind:
        """Return the pool without names, given the names of devices that are in use."""
        label = "" if self.state is PoolState.GOOD else "/".join(self.key)
        taken = self.closed
        if used:
            pairs = zip(self.names, self.closed, strict=True)
            taken = tuple(is_closed or name in used for name, is_closed in pairs)
        return PoolKind(self.state, label, self.traits, taken)


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

    def __init__(self) -> None:
        self._devices: Devices | None = None
        self._nodes: NodeTable | None = None
        self._nodes_version = -1
        self._names: list[str] = []
        """By row, the node that was there."""
        self._traits: WeakValueDictionary[DeviceTraits, SharedTraits] = WeakValueDictionary()
        self._shared: dict[
            tuple[DeviceTraits, ...], tuple[tuple[SharedTraits, ...], tuple[bool, ...]]
        ] = {}
        """What pools of one refresh have in common."""
        self._pools: dict[PoolKey, tuple[str, Pool]] = {}
        """Each pool whose devices one node reaches, with that node's name."""
        self._of_node: dict[str, set[PoolKey]] = {}
        self.kinds = DeviceKinds()
        self.pools: list[tuple[Pool, ...]] = []
        self.codes: Codes = np.zeros(0, np.int32)

    def refresh(self, devices: Devices, nodes: NodeTable) -> None:
        """Bring pools and codes up to date with devices and nodes."""
        if devices is not self._devices or nodes is not self._nodes or devices.all_stale:
            self._start_anew(devices, nodes)
        changed: set[str] = set()
        for key, is_gathered in devices.stale_pools.items():
            before = self._pools.get(key)
            if is_gathered:
                self._gather(key, devices.by_pool.get(key, {}).values())
            changed.update(pool[0] for pool in (before, self._pools.get(key)) if pool)
        devices.stale_pools.clear()
        rows = {nodes.rows[name] for name in changed if name in nodes.rows}
        rows |= self._other_nodes(nodes)
        if len(self.kinds) > policy.DEVICE_KINDS_SPARE_MIN + 2 * len(nodes):
            self.kinds, rows = DeviceKinds(), set(range(len(nodes)))
        self._shared = {}
        for row in sorted(rows):
            keys = sorted(self._of_node.get(self._names[row], ()))
            self.pools[row] = tuple(self._pools[key][1] for key in keys)
            self.codes[row] = self.kinds.code(
                tuple(pool.kind(devices.in_use.get(pool.key, ())) for pool in self.pools[row])
            )

    def _start_anew(self, devices: Devices, nodes: NodeTable) -> None:
        self._devices, self._nodes, self._nodes_version = devices, nodes, -1
        self._names, self._pools, self._of_node = [], {}, {}
        self.kinds, self.pools = DeviceKinds(), []
        devices.all_stale = False
        devices.stale_pools = dict.fromkeys(devices.by_pool, True)

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

    def _gather(self, key: PoolKey, slices: Iterable[ResourceSlice]) -> None:
        """Make a pool anew from its slices; one that several nodes reach is left out."""
        before = self._pools.pop(key, None)
        if before is not None:
            self._of_node[before[0]].discard(key)
            if not self._of_node[before[0]]:
                del self._of_node[before[0]]
        known = list(slices)
        nodes = {one.node for one in known if one.devices or one.node}
        if len(nodes) != 1 or "" in nodes:
            return
        newest = known
        if len(known) > 1:
            generation = max(one.generation for one in known)
            newest = [one for one in known if one.generation == generation]
            newest.sort(key=lambda one: one.name)
        devices = [device for one in newest for device in one.devices]
        names = tuple([device.name for device in devices])
        if len(newest) != newest[0].slices:
            pool = Pool(key, PoolState.INCOMPLETE)
        elif len(set(names)) < len(names):
            pool = Pool(key, PoolState.INVALID)
        elif not devices:
            return
        else:
            shared, closed = self._share(tuple([device.traits for device in devices]))
            pool = Pool(key, PoolState.GOOD, names, shared, closed)
        (node,) = nodes
        self._pools[key] = node, pool
        self._of_node.setdefault(node, set()).add(key)

    def _share(
        self, all_traits: tuple[DeviceTraits, ...]
    ) -> tuple[tuple[SharedTraits, ...], tuple[bool, ...]]:
        """Return the one object for the traits of each device, and which devices are closed."""
        found = self._shared.get(all_traits)
        if found is None:
            shared = []
            for traits in all_traits:
                known = self._traits.get(traits)
                if known is None:
                    known = self._traits[traits] = SharedTraits(traits)
                shared.append(known)
            found = tuple(shared), tuple([bool(traits.closed) for traits in all_traits])
            self._shared[all_traits] = found
        return found
