"""The nodes as arrays: one row for each node, one column for each resource. Updated by change.

Owned by ``state.cluster``; read through ``state.snapshot``. Rows of deleted nodes are used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import structs

from quorate.core.model import HostPort, Node
from quorate.core.state.arrays import Ints, Mask, grown
from quorate.core.state.encoding import CodeColumn, PodClass, Resources
from quorate.core.state.log import Log

_ROWS_FIRST = 64
_WIDTH_FIRST = 8


class NodeTable:
    """All nodes. ``allocatable`` and ``free`` are int64[rows, resources], column-major."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.rows: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.allocatable: Ints = np.zeros((_ROWS_FIRST, _WIDTH_FIRST), np.int64, order="F")
        self.free: Ints = np.zeros_like(self.allocatable)
        self.scored: Ints = np.zeros((_ROWS_FIRST, 2), np.int64)
        """Cpu and memory in use as scores count them: pods without requests take some."""
        self.alive: Mask = np.zeros(_ROWS_FIRST, np.bool_)
        self.unschedulable: Mask = np.zeros(_ROWS_FIRST, np.bool_)
        self.taints = CodeColumn(_ROWS_FIRST)
        self.features = CodeColumn(_ROWS_FIRST)
        self.labels: dict[str, CodeColumn] = {}
        self.images: dict[str, dict[int, int]] = {}
        """Bytes of each image, by name and row."""
        self.ports: dict[tuple[str, int], dict[int, Counter[str]]] = {}
        """Addresses on which pods hold a port, by protocol and number, then by row."""
        self.attributes_version = 0
        self.images_version = 0
        self.log = Log()
        """Rows of which room was taken or left, or whose size is another one."""
        self._rows_free: list[int] = []

    def __len__(self) -> int:
        """Return the number of rows in use, those of deleted nodes included."""
        return len(self.nodes)

    @property
    def capacity(self) -> int:
        """How many rows the arrays have."""
        return len(self.alive)

    def put(self, node: Node) -> tuple[int, bool]:
        """Add or replace ``node``; return its row and whether anything changed for planning."""
        row = self.rows.get(node.name)
        before = self.nodes[row] if row is not None else None
        if row is None:
            row = self._new_row(node.name)
        elif before == node:
            return row, False
        self.nodes[row] = node
        images_before = before.images if before is not None else ()
        if images_before != node.images:
            self.images_version += 1
            self._forget_images(row, images_before)
            for names, size in node.images:
                for name in names:
                    self.images.setdefault(name, {})[row] = size
            if before is not None and structs.replace(before, images=node.images) == node:
                return row, False  # which images a node has decides no plan's success
        if before is None or before.allocatable != node.allocatable:
            columns = [self.resources.column(name) for name, _ in node.allocatable]
            self.widen()
            self.free[row] -= self.allocatable[row]
            self.allocatable[row] = 0
            self.allocatable[row, columns] = [amount for _, amount in node.allocatable]
            self.free[row] += self.allocatable[row]
        if before is None or _attributes(before) != _attributes(node):
            self._encode_attributes(row, node)
        self.log.note(row)
        return row, True

    def _encode_attributes(self, row: int, node: Node) -> None:
        self.attributes_version += 1
        self.alive[row] = True
        self.unschedulable[row] = node.unschedulable
        self.taints.set(row, node.taints)
        self.features.set(row, node.declared_features)
        if self.labels:
            labels = dict(node.labels)
            for key, column in self.labels.items():
                column.set(row, labels.get(key))

    def remove(self, name: str) -> int | None:
        """Forget the node; return the row that it had. What ran there is no longer counted."""
        row = self.rows.pop(name, None)
        if row is None:
            return None
        gone = self.nodes[row]
        self._forget_images(row, gone.images if gone is not None else ())
        self.nodes[row] = None
        self.alive[row] = False
        self.allocatable[row] = 0
        self.free[row] = 0
        self.scored[row] = 0
        for taken in self.ports.values():
            taken.pop(row, None)
        self.attributes_version += 1
        self.images_version += 1
        self._rows_free.append(row)
        return row

    def _forget_images(self, row: int, images: tuple[tuple[tuple[str, ...], int], ...]) -> None:
        for names, _ in images:
            for name in names:
                rows = self.images.get(name, {})
                rows.pop(row, None)
                if not rows:
                    self.images.pop(name, None)

    def take(self, row: int, pod_class: PodClass) -> None:
        """Count one pod of the class on the row."""
        self.widen()
        self.log.note(row)
        for column, amount in pod_class.demands:
            self.free[row, column] -= amount
        cpu, memory = pod_class.shape.scored
        self.scored[row, 0] += cpu
        self.scored[row, 1] += memory
        self._hold_ports(row, pod_class)

    def take_many(self, rows: Sequence[int], pod_class: PodClass) -> None:
        """Count one pod of the class for each of the rows, which may repeat."""
        if len(rows) == 1:
            self.take(rows[0], pod_class)
            return
        self.widen()
        self.log.note_all(rows)
        unique, pods = np.unique(np.asarray(rows, np.int64), return_counts=True)
        for column, amount in pod_class.demands:
            self.free[unique, column] -= amount * pods
        self.scored[unique] += np.outer(pods, pod_class.shape.scored)
        if pod_class.shape.host_ports:
            for row in rows:
                self._hold_ports(row, pod_class)

    def _hold_ports(self, row: int, pod_class: PodClass) -> None:
        for port in pod_class.shape.host_ports:
            holders = self.ports.setdefault((port.protocol, port.port), {})
            holders.setdefault(row, Counter())[port.ip] += 1

    def release(self, row: int, pod_class: PodClass) -> None:
        """Stop counting one pod of the class on the row."""
        self.log.note(row)
        for column, amount in pod_class.demands:
            self.free[row, column] += amount
        cpu, memory = pod_class.shape.scored
        self.scored[row, 0] -= cpu
        self.scored[row, 1] -= memory
        for port in pod_class.shape.host_ports:
            holders = self.ports[port.protocol, port.port]
            there = holders.get(row, Counter())
            there[port.ip] -= 1
            if there[port.ip] <= 0:
                del there[port.ip]
            if not there:
                holders.pop(row, None)

    def used(self, row: int) -> Ints:
        """Return int64[resources]: what is in use on the row."""
        in_use: Ints = self.allocatable[row] - self.free[row]
        return in_use

    def label(self, key: str) -> CodeColumn:
        """Return the codes of the label ``key``; a key that is asked for first is encoded now."""
        column = self.labels.get(key)
        if column is None:
            column = self.labels[key] = CodeColumn(len(self.alive))
            for row, node in enumerate(self.nodes):
                if node is not None:
                    column.set(row, dict(node.labels).get(key))
        return column

    def rows_with_port(self, wanted: HostPort) -> list[int]:
        """Return the rows on which a pod holds a port that conflicts with ``wanted``."""
        return [
            row
            for row in self.ports.get((wanted.protocol, wanted.port), ())
            if self.has_port(row, wanted)
        ]

    def has_port(self, row: int, wanted: HostPort) -> bool:
        """Whether a pod on the row holds a port that conflicts with ``wanted``."""
        there = self.ports.get((wanted.protocol, wanted.port), {}).get(row, ())
        return any(wanted.conflicts(HostPort(wanted.protocol, ip, wanted.port)) for ip in there)

    def widen(self) -> None:
        """Give every known resource a column in the arrays."""
        width, wanted = self.free.shape[1], len(self.resources.names)
        if wanted > width:
            for name in ("allocatable", "free"):
                wider = np.zeros((len(self.alive), 2 * wanted), np.int64, order="F")
                wider[:, :width] = getattr(self, name)
                setattr(self, name, wider)

    def _new_row(self, name: str) -> int:
        if self._rows_free:
            row = self._rows_free.pop()
        else:
            row = len(self.nodes)
            self.nodes.append(None)
            if row == len(self.alive):
                self._grow(2 * row)
        self.rows[name] = row
        return row

    def _grow(self, rows: int) -> None:
        for name in ("allocatable", "free", "scored", "alive", "unschedulable"):
            setattr(self, name, grown(getattr(self, name), rows))
        for column in (self.taints, self.features, *self.labels.values()):
            column.grow(rows)


def _attributes(node: Node) -> tuple[object, ...]:
    return node.labels, node.taints, node.unschedulable, node.declared_features
