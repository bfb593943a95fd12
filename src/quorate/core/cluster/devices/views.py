"""Which pools each node sees, and which kind of node it is for claims. Updated by ``refresh``.

In: ``Devices`` and the nodes' rows. Out: for each row a view (the pools that the node sees), for
each view the code of its ``DeviceKind``. Nodes without devices of their own share a view if they
see the same pools. Owned by ``cluster.cluster``; read by ``room.devices``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from quorate.core.cluster.arrays import Codes, grown
from quorate.core.cluster.devices.devices import Devices
from quorate.core.cluster.devices.pools import (
    DeviceKind,
    Pool,
    PoolKey,
    Shares,
    TraitsTable,
    gather,
)
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.model import DeviceId, Node, ResourceSlice, policy

_Reach = tuple[tuple[str, tuple[bool, ...]], ...]


class KnownNodeKind:
    """A kind of node, with the answers that planning has cached for it, by question number."""

    __slots__ = ("kind", "remembered")

    def __init__(self, kind: DeviceKind) -> None:
        self.kind = kind
        self.remembered: dict[int, object] = {}


class DeviceKinds:
    """Kinds of node and their codes. The code of a forgotten kind is reused."""

    def __init__(self) -> None:
        self._values: dict[int, KnownNodeKind] = {}
        """By code, in the order in which the codes were last requested."""
        self._codes: dict[DeviceKind, int] = {}
        self._free: list[int] = []
        self._numbers = 0
        self.remembered = 0
        """The number of cached answers of all kinds together."""

    def __len__(self) -> int:
        """Return the number of known kinds."""
        return len(self._values)

    def __getitem__(self, code: int) -> KnownNodeKind:
        """Return the kind with a code; KeyError if it was forgotten."""
        return self._values[code]

    def code(self, kind: DeviceKind) -> int:
        """Return the code of a kind; a new kind gets a code."""
        found = self._codes.get(kind)
        if found is not None:
            self._values[found] = self._values.pop(found)
            return found
        found = self._codes[kind] = self._free.pop() if self._free else len(self._values)
        self._values[found] = KnownNodeKind(kind)
        return found

    def evict(self, used: set[int], spare: int) -> None:
        """Forget unused kinds, the least recently requested first, until ``spare`` are left.

        ``used`` are the codes that have to stay.
        """
        unused = [code for code in self._values if code not in used]
        for code in unused[: max(len(unused) - spare, 0)]:
            gone = self._values.pop(code)
            del self._codes[gone.kind]
            self.remembered -= len(gone.remembered)
            self._free.append(code)

    def new_number(self) -> int:
        """Return a new question number, under which each kind may cache an answer."""
        self._numbers += 1
        return self._numbers

    def remember(self, code: int, number: int, found: object) -> None:
        """Cache an answer for a kind; it is forgotten with the kind."""
        self._values[code].remembered[number] = found
        self.remembered += 1

    def forget(self, number: int) -> None:
        """Forget the answers that all kinds have cached under a number."""
        for one in self._values.values():
            if one.remembered.pop(number, None) is not None:
                self.remembered -= 1


class DeviceViews:
    """``of_row`` is int32[>= rows], the view of each row; ``codes`` int32[>= views], kinds' codes.

    All of this is derived from devices and nodes, so a checkpoint does not contain it.
    """

    def __init__(self) -> None:
        self._devices = Devices()
        self._nodes: NodeTable | None = None
        self._nodes_version = -1
        self.traits = TraitsTable()
        self.kinds = DeviceKinds()
        self.views: list[tuple[Pool, ...]] = []
        self.views_of: dict[PoolKey, set[int]] = {}
        """The views that contain a pool."""
        self.of_row: Codes = np.zeros(0, np.int32)
        self.codes: Codes = np.zeros(0, np.int32)
        self._seen: list[Node | None] = []
        self._own: dict[str, int] = {}
        self._common: dict[_Reach, int] = {}
        self._found_by: list[tuple[dict[Any, int], object]] = []
        """By view, the mapping that has its number (``_own`` or ``_common``), and its key there."""
        self._rows: list[int] = []
        """By view, the number of rows with it."""
        self._free: list[int] = []
        """Views without rows: their numbers are reused."""
        self._reach_of: dict[tuple[str | None, ...], _Reach] = {}
        """A cache, in the order of last use."""
        self._told_apart_by: tuple[bool, tuple[str, ...]] = (False, ())
        self._lent: WeakValueDictionary[int, Codes] = WeakValueDictionary()
        """Copies of ``codes`` that a reader still holds: their kinds must not be forgotten."""
        self._lent_count = 0
        self._evict_at = 0

    def refresh(self, devices: Devices, nodes: NodeTable) -> None:
        """Bring views and codes up to date with devices and nodes."""
        if devices is not self._devices or nodes is not self._nodes:
            self._devices, self._nodes = devices, nodes
            self.kinds, devices.all_stale = DeviceKinds(), True
        if devices.all_stale:
            self._start_anew(len(nodes))
        stale_views = {self._see(row, nodes.nodes[row]) for row in self._stale_rows(nodes)}
        devices.stale_nodes.clear()
        for pool in devices.stale_pools:
            stale_views |= self.views_of.get(pool, set())
        devices.stale_pools.clear()
        for view in stale_views:
            self.codes[view] = self.kinds.code(self.kind(view, devices.is_used, devices.consumed))
        if len(self.kinds) > self._evict_at:
            self._evict(len(nodes))

    def lend(self, codes: Codes) -> Codes:
        """Return a copy of ``codes``; its kinds stay known as long as the copy is referenced."""
        copy: Codes = codes.copy()
        self._lent[self._lent_count] = copy
        self._lent_count += 1
        return copy

    def _evict(self, rows: int) -> None:
        used = set(self.codes[self.of_row[:rows]].tolist())
        spare = max(policy.DEVICE_KINDS_SPARE_MIN, len(used))
        for codes in self._lent.values():
            used.update(codes.tolist())
        self.kinds.evict(used, spare)
        self._evict_at = len(self.kinds) + spare

    def kind(
        self,
        view: int,
        is_used: Callable[[DeviceId], bool],
        consumed: Callable[[DeviceId], Shares | None],
    ) -> DeviceKind:
        """Return the kind of a view, given which devices are used and which shares are consumed."""
        return tuple(pool.kind(is_used, consumed) for pool in self.views[view])

    def _start_anew(self, rows: int) -> None:
        self.views, self._seen, self._found_by, self._rows = [], [], [], []
        self.views_of, self._own, self._common, self._reach_of = {}, {}, {}, {}
        self._free = []
        self.of_row = np.full(max(rows, len(self.of_row)), -1, np.int32)
        self._nodes_version = -1
        self._devices.all_stale = False
        self._told_apart_by = _told_apart_by(self._devices.of_several)

    def _stale_rows(self, table: NodeTable) -> list[int]:
        """Return, in order, the rows whose node or slices changed since their view was assigned."""
        names = self._devices.stale_nodes
        stale = {table.rows[name] for name in names if name in table.rows}
        if self._nodes_version == table.attributes_version:
            return sorted(stale)
        self._nodes_version = table.attributes_version
        if len(self.of_row) < len(table):
            self.of_row = grown(self.of_row, table.capacity, fill=-1)
        stale.update(range(len(self._seen), len(table)))
        self._seen += [None] * (len(table) - len(self._seen))
        for row, (node, seen) in enumerate(zip(table.nodes, self._seen, strict=True)):
            if node is not seen and not _looks_alike(node, seen):
                stale.add(row)
            self._seen[row] = node
        return sorted(stale)

    def _see(self, row: int, node: Node | None) -> int:
        """Determine which pools the node at a row sees; assign and return its view."""
        devices = self._devices
        name, labels = (node.name, dict(node.labels)) if node is not None else ("", {})
        own = devices.of_node.get(name, {})
        reach = self._reach(name, labels) if node is not None else ()
        known = self._own.get(name) if own else self._common.get(reach)
        if known is not None and not own:
            self._assign(row, known)
            return known
        if known is not None:
            view = known
        else:
            view = self._new_view(self._own, name) if own else self._new_view(self._common, reach)
        slices = (*own.values(), *(devices.of_several[slice_name] for slice_name, _ in reach))
        self._show(view, gather(name, labels, slices, devices.by_pool, self.traits))
        self._assign(row, view)
        return view

    def _show(self, view: int, pools: tuple[Pool, ...]) -> None:
        """Replace the pools of a view."""
        for pool in self.views[view]:
            views = self.views_of[pool.key]
            views.discard(view)
            if not views:
                del self.views_of[pool.key]
        self.views[view] = pools
        for pool in pools:
            self.views_of.setdefault(pool.key, set()).add(view)

    def _assign(self, row: int, view: int) -> None:
        """Assign a view to a row; the old view is freed if that was its last row."""
        before = int(self.of_row[row])
        if before == view:
            return
        self.of_row[row] = view
        self._rows[view] += 1
        if before < 0:
            return
        self._rows[before] -= 1
        if not self._rows[before]:
            views, key = self._found_by[before]
            del views[key]
            self._show(before, ())
            self._free.append(before)

    def _new_view(self, views: dict[Any, int], key: object) -> int:
        if self._free:
            view = self._free.pop()
            self._found_by[view] = views, key
        else:
            view = len(self.views)
            self.views.append(())
            self._rows.append(0)
            self._found_by.append((views, key))
        views[key] = view
        if view >= len(self.codes):
            self.codes = grown(self.codes, max(64, 2 * view))
        return view

    def _reach(self, name: str, labels: dict[str, str]) -> _Reach:
        """Return the slices for several nodes that reach a node, each with flags of its devices.

        Empty flags mean all devices. The answer is cached by the labels that node selectors read,
        and by the node's name only if a selector reads names.
        """
        by_name, keys = self._told_apart_by
        traits = (name if by_name else None, *(labels.get(key) for key in keys))
        reach = self._reach_of.pop(traits, None)
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
            reach = tuple(found)
            if len(self._reach_of) > 2 * len(self.of_row):
                del self._reach_of[next(iter(self._reach_of))]
        self._reach_of[traits] = reach
        return reach


def _told_apart_by(slices: dict[str, ResourceSlice]) -> tuple[bool, tuple[str, ...]]:
    """Return whether any slice's selector reads nodes' names, and which label keys they read."""
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
