"""The nodes as arrays: one row for each node, one column for each resource. Updated by change.

In: nodes, and pods counted on them. Out: arrays of free resources, masks, label codes, ports, news.
Owned by ``cluster.cluster``; read through ``cluster.snapshot``. Rows of deleted nodes are reused,
and so are columns of resources that no node lists. A label is encoded when it is first read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask, grown
from quorate.core.cluster.change_log import Log
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.cluster.nodes.codes import CodeColumn
from quorate.core.cluster.nodes.encoding import PodClass, Resources
from quorate.core.model import HostPort, Node, is_address_taken, policy

_Amounts = tuple[tuple[str, int], ...]
_ROWS_FIRST = 64
_WIDTH_FIRST = 8


class NodesVersion(NamedTuple):
    """Numbers that grow whenever nodes change.

    ``attributes``: nodes came or went, or have other labels, taints, cordons or features; ``all``:
    also when pods on them came or went, or their sizes changed.
    """

    attributes: int
    all: int


class ResourceNews(NamedTuple):
    """Resources that nodes newly list, and those that no node lists any longer."""

    added: frozenset[str]
    removed: frozenset[str]
    renumbered: bool
    """Whether the columns of other resources have changed."""


@dataclass(slots=True)
class NodeNews:
    """Changes of nodes, apart from their size."""

    names: set[str] = field(default_factory=set)
    """Nodes that came or went, or whose attributes changed."""
    labels: set[str] = field(default_factory=set)
    """Keys of the labels that came or went, or whose values changed."""
    taints: bool = False
    """Whether taints or cordons changed, or a node came or went."""


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
        self.labels: LruCache[str, CodeColumn] = LruCache()
        """A cache of label columns, by key."""
        self.ports: dict[tuple[str, int], dict[int, Counter[str]]] = {}
        """Addresses on which pods hold a port, by protocol and number, then by row."""
        self.attributes_version = 0
        self.attributes_log = Log()
        """Rows whose labels, taints, cordon or features changed, or whose node came or went."""
        self.log = Log()
        """Rows whose free room, size or attributes changed."""
        self._news = NodeNews()
        self._rows_free: list[int] = []
        self._labels_at: list[dict[str, str]] = []
        """Labels by row."""
        self._label_keys: Counter[str] = Counter()
        """The number of nodes with a label, by its key."""
        self._no_label = CodeColumn(_ROWS_FIRST)
        self._columns_made = 0
        self._relisted: ResourceNews | None = None

    def __len__(self) -> int:
        """Return the number of rows in use, those of deleted nodes included."""
        return len(self.nodes)

    @property
    def capacity(self) -> int:
        """The number of rows in the arrays, unused ones included."""
        return len(self.alive)

    @property
    def version(self) -> NodesVersion:
        """The version of the nodes."""
        return NodesVersion(self.attributes_version, self.log.position)

    def put(self, node: Node) -> tuple[int, bool]:
        """Add or replace ``node``; return its row and whether anything changed for planning."""
        row = self.rows.get(node.name)
        before = self.nodes[row] if row is not None else None
        if row is None:
            row = self._new_row(node.name)
        elif before == node:
            return row, False
        self.nodes[row] = node
        if before is None or before.allocatable != node.allocatable:
            self._resize(row, () if before is None else before.allocatable, node.allocatable)
        if before is None or _attributes(before) != _attributes(node):
            self._encode_attributes(row, node)
            self._note_news(before, node)
        self.log.note(row)
        return row, True

    def _resize(self, row: int, before: _Amounts, now: _Amounts) -> None:
        self.free[row] -= self.allocatable[row]
        self.allocatable[row] = 0
        listed, lists = dict(before), dict(now)
        added = [name for name in lists if name not in listed]
        removed = [name for name in listed if name not in lists]
        if added or removed:
            self._relist(added, removed)
        columns = self.resources.columns
        self.allocatable[row, [columns[name] for name in lists]] = list(lists.values())
        self.free[row] += self.allocatable[row]

    def _relist(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """Count the resources that a node lists; a column lasts from the first node to the last."""
        gone = self.resources.drop(removed)
        for _, column in gone:
            self.free[:, column] = self.allocatable[:, column] = 0
        new = self.resources.add(added)
        kept = self.resources.renumber()
        if not (new or gone):
            return
        self._widen(kept)
        before = self._relisted or ResourceNews(frozenset(), frozenset(), False)
        self._relisted = ResourceNews(
            before.added.union(new),
            before.removed.union(name for name, _ in gone),
            before.renumbered or kept is not None,
        )

    def _widen(self, kept: list[int] | None) -> None:
        """Fit the arrays' width to the resources; ``kept``: old columns in their new order."""
        width, wanted = self.free.shape[1], len(self.resources.names)
        if kept is None and wanted <= width <= max(4 * wanted, _WIDTH_FIRST):
            return
        kept = list(range(min(wanted, width))) if kept is None else kept
        for name in ("allocatable", "free"):
            other = np.zeros((len(self.alive), max(2 * wanted, _WIDTH_FIRST)), np.int64, order="F")
            other[:, : len(kept)] = getattr(self, name)[:, kept]
            setattr(self, name, other)

    def take_relisted(self) -> ResourceNews | None:
        """Return which resources have come and gone since the last call; None: none have."""
        taken, self._relisted = self._relisted, None
        return taken

    def add_used(self, row: int, amounts: Iterable[tuple[str, int]]) -> None:
        """Count a pod's use, by name, of resources that have just got a column."""
        for name, amount in amounts:
            self.free[row, self.resources.columns[name]] -= amount

    def _encode_attributes(self, row: int, node: Node | None) -> None:
        """Encode the attributes of a row's node; None: the row's node is gone."""
        self.attributes_version += 1
        self.attributes_log.note(row)
        self.alive[row] = node is not None
        self.unschedulable[row] = node is not None and node.unschedulable
        self.taints.set(row, node.taints if node is not None else None)
        self.features.set(row, node.declared_features if node is not None else None)
        if self.taints.is_mostly_unused:
            self.taints = self.taints.renewed(self._serial())
        if self.features.is_mostly_unused:
            self.features = self.features.renewed(self._serial())
        self._relabel(row, dict(node.labels) if node is not None else {})

    def _relabel(self, row: int, now: dict[str, str]) -> None:
        before, self._labels_at[row] = self._labels_at[row], now
        if before.keys() != now.keys():
            self._label_keys.update(now.keys() - before.keys())
            for key in before.keys() - now.keys():
                self._label_keys[key] -= 1
                if not self._label_keys[key]:
                    del self._label_keys[key]
                    self.labels.drop(key)
        for key in list(self.labels):
            value, column = now.get(key), self.labels.peek(key)
            if column is None or before.get(key) == value:
                continue
            column.set(row, value)
            if column.is_mostly_unused:
                self.labels.replace(key, column.renewed(self._serial()))

    def _serial(self) -> int:
        self._columns_made += 1
        return self._columns_made

    def remove(self, name: str) -> int | None:
        """Forget a node; return its old row, or None. Its pods are no longer counted there."""
        row = self.rows.pop(name, None)
        if row is None:
            return None
        gone = self.nodes[row]
        assert gone is not None, "a row with a name holds a node"
        self._note_news(gone, None)
        self.log.note(row)
        self.nodes[row] = None
        self._resize(row, gone.allocatable, ())
        self.free[row] = 0
        self.scored[row] = 0
        for port in [port for port, holders in self.ports.items() if row in holders]:
            self._forget_holder(port, row)
        self._encode_attributes(row, None)
        self._rows_free.append(row)
        return row

    def take_news(self) -> NodeNews:
        """Return the changes of nodes, apart from their size, since the last call."""
        news, self._news = self._news, NodeNews()
        return news

    def _note_news(self, before: Node | None, after: Node | None) -> None:
        news = self._news
        for node in (before, after):
            news.names |= {node.name} if node is not None else set()
        were = set(before.labels) if before is not None else set()
        labels = set(after.labels) if after is not None else set()
        news.labels |= {key for key, _ in were ^ labels}
        news.taints |= _keeps_away(before) != _keeps_away(after)

    def take(self, row: int, pod_class: PodClass) -> None:
        """Count one pod of the class on the row."""
        self.log.note(row)
        for column, amount in pod_class.demands:
            self.free[row, column] -= amount
        cpu, memory = pod_class.spec.scored
        self.scored[row, 0] += cpu
        self.scored[row, 1] += memory
        self._hold_ports(row, pod_class)

    def take_many(self, rows: Sequence[int], pod_class: PodClass) -> None:
        """Count one pod of the class for each of the rows, which may repeat."""
        if len(rows) == 1:
            self.take(rows[0], pod_class)
            return
        self.log.note_all(rows)
        unique, pods = np.unique(np.asarray(rows, np.int64), return_counts=True)
        for column, amount in pod_class.demands:
            self.free[unique, column] -= amount * pods
        self.scored[unique] += np.outer(pods, pod_class.spec.scored)
        if pod_class.spec.host_ports:
            for row in rows:
                self._hold_ports(row, pod_class)

    def _hold_ports(self, row: int, pod_class: PodClass) -> None:
        for port in pod_class.spec.host_ports:
            holders = self.ports.setdefault((port.protocol, port.port), {})
            holders.setdefault(row, Counter())[port.ip] += 1

    def release(self, row: int, pod_class: PodClass) -> None:
        """Stop counting one pod of the class on the row."""
        self.log.note(row)
        for column, amount in pod_class.demands:
            self.free[row, column] += amount
        cpu, memory = pod_class.spec.scored
        self.scored[row, 0] -= cpu
        self.scored[row, 1] -= memory
        for port in pod_class.spec.host_ports:
            there = self.ports[port.protocol, port.port][row]
            there[port.ip] -= 1
            if not there[port.ip]:
                del there[port.ip]
            if not there:
                self._forget_holder((port.protocol, port.port), row)

    def _forget_holder(self, port: tuple[str, int], row: int) -> None:
        holders = self.ports[port]
        del holders[row]
        if not holders:
            del self.ports[port]

    def used(self, row: int) -> Ints:
        """Return int64[resources]: what is in use on the row."""
        in_use: Ints = self.allocatable[row] - self.free[row]
        return in_use

    def label(self, key: str) -> CodeColumn:
        """Return the codes of the label ``key``; if they are not cached, the label is encoded."""
        if key not in self._label_keys:
            return self._no_label
        column = self.labels.get(key)
        if column is None:
            values = [labels.get(key) for labels in self._labels_at]
            column = CodeColumn.of(values, len(self.alive), self._serial())
            self.labels.put(key, column, policy.LABEL_COLUMNS_KEPT_MAX)
        return column

    def labels_at(self, row: int) -> Mapping[str, str]:
        """Return the labels of the node at the row; empty if there is no node."""
        return self._labels_at[row]

    def rows_with_port(self, wanted: HostPort) -> list[int]:
        """Return the rows on which a pod holds a port that conflicts with ``wanted``."""
        there = self.ports.get((wanted.protocol, wanted.port), {})
        return [row for row, ips in there.items() if is_address_taken(wanted.ip, ips)]

    def has_port(self, row: int, wanted: HostPort) -> bool:
        """Whether a pod on the row holds a port that conflicts with ``wanted``."""
        there = self.ports.get((wanted.protocol, wanted.port), {})
        return is_address_taken(wanted.ip, there.get(row, ()))

    def _new_row(self, name: str) -> int:
        if self._rows_free:
            row = self._rows_free.pop()
        else:
            row = len(self.nodes)
            self.nodes.append(None)
            self._labels_at.append({})
            if row == len(self.alive):
                self._grow(2 * row)
        self.rows[name] = row
        return row

    def _grow(self, rows: int) -> None:
        for name in ("allocatable", "free", "scored", "alive", "unschedulable"):
            setattr(self, name, grown(getattr(self, name), rows))
        own = self.taints, self.features, self._no_label
        for column in (*own, *self.labels.values()):
            column.grow(rows)


def _keeps_away(node: Node | None) -> tuple[object, ...] | None:
    return (node.taints, node.unschedulable) if node is not None else None


def _attributes(node: Node) -> tuple[object, ...]:
    return node.labels, node.taints, node.unschedulable, node.declared_features
