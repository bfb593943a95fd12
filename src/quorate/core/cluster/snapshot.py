"""A read-only view of the nodes for one turn: what rules and planning may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.devices.devices import Devices
from quorate.core.cluster.devices.views import DeviceViews
from quorate.core.cluster.labels.neighbours import Neighbours
from quorate.core.cluster.nodes.codes import CodeColumn
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.cluster.storage.storage import Storage
from quorate.core.model import HostPort, Node


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The nodes during one decision; n rows, r resources. Rows that are not ``alive`` hold no node.

    ``free`` and ``allocatable`` are int64[n, r] in base units. ``free`` may be negative where other
    schedulers overcommitted a node.
    ``scored`` is int64[n, 2]: cpu and memory in use as scores count them. ``unschedulable`` is
    bool[n]. All arrays are read-only views of the cluster's own, which do not change meanwhile.
    """

    table: NodeTable
    neighbours: Neighbours
    storage: Storage
    devices: Devices
    device_views: DeviceViews
    allocatable: Ints
    free: Ints
    scored: Ints
    alive: Mask
    unschedulable: Mask
    attributes_version: int

    @classmethod
    def of(
        cls,
        table: NodeTable,
        neighbours: Neighbours,
        storage: Storage,
        devices: Devices,
        views: DeviceViews,
    ) -> Snapshot:
        """Return a view of the nodes."""
        rows, width = len(table), len(table.resources.names)
        free, scored = table.free[:rows, :width], table.scored[:rows]
        return cls(
            table=table,
            neighbours=neighbours,
            storage=storage,
            devices=devices,
            device_views=views,
            allocatable=_read_only(table.allocatable[:rows, :width]),
            free=_read_only(free),
            scored=_read_only(scored),
            alive=_read_only(table.alive[:rows]),
            unschedulable=_read_only(table.unschedulable[:rows]),
            attributes_version=table.attributes_version,
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.alive)

    @property
    def nodes_alive(self) -> int:
        """Return the number of nodes."""
        return len(self.table.rows)

    def node(self, row: int) -> Node:
        """Return the node at ``row``, which must be alive."""
        node = self.table.nodes[row]
        assert node is not None, f"row {row} holds no node"
        return node

    def taint_sets(self) -> CodeColumn:
        """Return the codes of the nodes' taints; the values are ``tuple[Taint, ...]``."""
        return self.table.taints

    def feature_sets(self) -> CodeColumn:
        """Return the codes of the nodes' declared features; the values are tuples of names."""
        return self.table.features

    def label(self, key: str) -> CodeColumn:
        """Return the codes of the label's value (-1: absent); the values are strings."""
        return self.table.label(key)

    def labels_at(self, row: int) -> Mapping[str, str]:
        """Return the labels of the node at ``row``."""
        return self.table.labels_at(row)

    def sizes(self, resource: str) -> Ints:
        """Return int64[n]: how much of a resource the nodes list."""
        column = self.table.resources.columns.get(resource)
        if column is None:
            return np.zeros(len(self), np.int64)
        found: Ints = self.allocatable[:, column]
        return found

    def rows_named(self, names: tuple[str, ...]) -> list[int]:
        """Return the rows of the nodes with these names, of those that exist."""
        return [self.table.rows[name] for name in names if name in self.table.rows]

    def rows_with_port(self, port: HostPort) -> list[int]:
        """Return the rows on which ``port`` is taken."""
        return self.table.rows_with_port(port)

    def has_port(self, row: int, port: HostPort) -> bool:
        """Whether ``port`` is taken on the row."""
        return self.table.has_port(row, port)


_Array = TypeVar("_Array", Ints, Mask)


def _read_only(array: _Array) -> _Array:
    view = array.view()
    view.setflags(write=False)
    return view
