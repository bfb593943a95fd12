"""Which pools each node sees, and which nodes are alike to claims. Brought up to date when asked.

In: ``Devices`` and the nodes' rows. Out: for each row a view (the pools that it sees), for each
view the code of its ``Kind``. Nodes without devices of their own that see the same pools have one
view. Called by ``plan.devices``; owned by ``state.cluster``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quorate.core.model import DeviceId, Node, ResourceSlice
from quorate.core.state.arrays import Codes, grown
from quorate.core.state.devices import Consumed, Devices, in_sum
from quorate.core.state.nodes import NodeTable
from quorate.core.state.pools import Kind, Pool, PoolKey, Shares, gather

KINDS_MAX = 500_000
_Reach = tuple[tuple[str, tuple[bool, ...]], ...]


class Kinds:
    """Kinds of nodes and their codes. Codes are never given twice."""

    def __init__(self) -> None:
        self.values: list[Kind] = []
        self._codes: dict[Kind, int] = {}

    def code(self, kind: Kind) -> int:
        """Return the code of a kind."""
        found = self._codes.get(kind)
        if found is None:
            found = self._codes[kind] = len(self.values)
            self.values.append(kind)
        return found


class DeviceViews:
    """``of_row`` is int32[>= rows], the row's view; ``codes`` int32[>= views], its kind's code.

    All of it follows from devices and nodes, so that no checkpoint has to hold it.
    """

    def __init__(self) -> None:
        self._devices = Devices()
        self._nodes: NodeTable | None = None
        self._nodes_version = -1
        self.kinds = Kinds()
        self.views: list[tuple[Pool, ...]] = []
        self.views_of: dict[PoolKey, set[int]] = {}
        """Which views contain a pool."""
        self.of_row: Codes = np.zeros(0, np.int32)
        self.codes: Codes = np.zeros(0, np.int32)
        self._seen: list[Node | None] = []
        self._own: dict[str, int] = {}
        self._common: dict[_Reach, int] = {}
        self._reach_of: dict[tuple[str | None, ...], _Reach] = {}
        self._told_apart_by: tuple[bool, tuple[str, ...]] = (False, ())

    def refresh(self, devices: Devices, nodes: NodeTable) -> None:
        """Bring views and codes up to date with devices and nodes."""
        is_other = devices is not self._devices or nodes is not self._nodes
        if is_other or len(self.kinds.values) > KINDS_MAX:
            self._devices, self._nodes = devices, nodes
            self.kinds, devices.all_stale = Kinds(), True
        if devices.all_stale:
            self._start_anew()
        stale_views = {self._see(row, nodes.nodes[row]) for row in self._stale_rows(nodes)}
        devices.stale_nodes.clear()
        for pool in devices.stale_pools:
            stale_views |= self.views_of.get(pool, set())
        devices.stale_pools.clear()
        for view in stale_views:
            self.codes[view] = self.kinds.code(self.kind(view, devices.is_used, devices.shares))

    def kind(
        self,
        view: int,
        is_used: Callable[[DeviceId], bool],
        shares: Callable[[DeviceId], dict[str, Consumed]],
    ) -> Kind:
        """Return the kind of a view when these devices are in use."""

        def summed(device: DeviceId) -> Shares | None:
            found = shares(device)
            return in_sum(found) if found else None

        return tuple(pool.kind(is_used, summed) for pool in self.views[view])

    def is_for_several(self, pool: PoolKey) -> bool:
        """Whether what one node takes of the pool is taken from others too."""
        slices = self._devices.by_pool.get(pool, {}).values()
        names = {one.nodes.name if one.nodes else "" for one in slices}
        return len(names) > 1 or "" in names

    def _start_anew(self) -> None:
        self.views, self._seen = [], []
        self.views_of, self._own, self._common, self._reach_of = {}, {}, {}, {}
        self._nodes_version = -1
        self._devices.all_stale = False
        self._told_apart_by = _told_apart_by(self._devices.of_several)

    def _stale_rows(self, table: NodeTable) -> list[int]:
        """Return the rows whose node, or whose node's slices, are not those that were seen."""
        names = self._devices.stale_nodes
        stale = {table.rows[name] for name in names if name in table.rows}
        if self._nodes_version == table.attributes_version:
            return sorted(stale)
        self._nodes_version = table.attributes_version
        if len(self.of_row) < len(table):
            self.of_row = grown(self.of_row, table.capacity)
        self._seen += [None] * (len(table) - len(self._seen))
        is_first = not self.views
        for row, (node, seen) in enumerate(zip(table.nodes, self._seen, strict=True)):
            if is_first or (node is not seen and not _looks_alike(node, seen)):
                stale.add(row)
            self._seen[row] = node
        return sorted(stale)

    def _see(self, row: int, node: Node | None) -> int:
        """Find out which pools the node at a row sees; return its view."""
        devices = self._devices
        name, labels = (node.name, dict(node.labels)) if node is not None else ("", {})
        own = devices.of_node.get(name, {})
        reach = self._reach(name, labels) if node is not None else ()
        if own:
            view = self._own.get(name)
            if view is None:
                view = self._own[name] = self._new_view()
        else:
            view = self._common.get(reach)
            if view is not None:
                self.of_row[row] = view
                return view
            view = self._common[reach] = self._new_view()
        slices = (*own.values(), *(devices.of_several[slice_name] for slice_name, _ in reach))
        for pool in self.views[view]:
            self.views_of[pool.key].discard(view)
        self.views[view] = gather(name, labels, slices, devices.by_pool, devices.number)
        for pool in self.views[view]:
            self.views_of.setdefault(pool.key, set()).add(view)
        self.of_row[row] = view
        return view

    def _new_view(self) -> int:
        view = len(self.views)
        self.views.append(())
        if view >= len(self.codes):
            self.codes = grown(self.codes, max(64, 2 * view))
        return view

    def _reach(self, name: str, labels: dict[str, str]) -> _Reach:
        """Return which slices for several nodes reach a node, with which of their devices.

        Nodes are told apart by the labels that selectors name, and by name only if one names it.
        """
        by_name, keys = self._told_apart_by
        told = (name if by_name else None, *(labels.get(key) for key in keys))
        reach = self._reach_of.get(told)
        if reach is None:
            found: list[tuple[str, tuple[bool, ...]]] = []
            for one in self._devices.of_several.values():
                flags = tuple(
                    d.nodes is not None and d.nodes.include(name, labels) for d in one.devices
                )
                if one.nodes is not None and one.nodes.include(name, labels):
                    found.append((one.name, ()))
                elif one.nodes is None and any(flags):
                    found.append((one.name, flags))
            reach = self._reach_of[told] = tuple(found)
        return reach


def _told_apart_by(slices: dict[str, ResourceSlice]) -> tuple[bool, tuple[str, ...]]:
    """Return whether any of the slices looks at nodes' names, and at which labels."""
    by_name = False
    keys: set[str] = set()
    for one in slices.values():
        for nodes in (one.nodes, *(device.nodes for device in one.devices)):
            if nodes is None:
                continue
            by_name |= bool(nodes.name)
            for term in nodes.terms or ():
                by_name |= bool(term.fields)
                keys.update(requirement.key for requirement in term.expressions)
    return by_name, tuple(sorted(keys))


def _looks_alike(one: Node | None, other: Node | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.name == other.name and one.labels == other.labels
