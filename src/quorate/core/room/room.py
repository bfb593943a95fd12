"""The room that is left while one decision places gangs: a working copy of the free resources.

In: a snapshot, and pods that are placed. Out: free resources, ports, volumes, devices, pod counts.
A gang is tried on a ``copy``; the copy replaces the room or is dropped, so nothing is undone by
hand. Called by the planner and by the rules in ``core.rules``; the room itself calls no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.labels.neighbours import Column, Key, uses_selectors
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import HostPort, policy
from quorate.core.model.steps import Steps
from quorate.core.room.amounts import Amounts
from quorate.core.room.devices.device_room import DeviceRoom
from quorate.core.room.port_room import PortRoom
from quorate.core.room.rule_cache import RuleCache, Version
from quorate.core.room.volume_room import VolumeRoom

Sums = npt.NDArray[np.float64]
_Value = TypeVar("_Value")


class Room:
    """Free resources (int64[n, r], base units) and all that was taken since the snapshot.

    The room starts with the cluster's own arrays and copies them before the first write. So until
    the plan is applied, what a cycle has placed is recorded here and nowhere else.
    """

    def __init__(
        self, snapshot: Snapshot, rule_cache: RuleCache, steps: Steps | None = None
    ) -> None:
        """Start with everything that is free in the snapshot.

        ``rule_cache`` outlives the decision. ``steps`` bound the work for claims and for pods that
        constrain one another; None sets no bound.
        """
        self.snapshot = snapshot
        self.steps = steps
        self.rule_cache = rule_cache
        self._is_shared = True
        """Whether another room shares ``free`` and ``scored``: they are copied before a write."""
        self.free: Ints = snapshot.free
        self.volumes = VolumeRoom(snapshot)
        self.volumes.steps = steps
        self.scored: Ints = snapshot.scored
        self.ports = PortRoom(steps)
        self.rows_taken: list[int] = []
        """Rows on which this room placed pods or withheld resources, in order."""
        self.changed_selectors: list[Key] = []
        """Columns of ``Neighbours`` whose counts this room changed, in order."""
        self._counts: dict[Key, Ints] = {}
        """Columns that were read so far; pods placed since the snapshot are counted in."""
        self._sums: dict[Key, Ints] = {}
        """The same columns, summed over domains; see ``sums``."""
        self._placed: dict[Key, tuple[tuple[Ints, Ints], ...]] = {}
        """By column: the rows where this room placed pods, and what each row adds to the count."""
        self._device_room: DeviceRoom | None = None
        self._in_sum: dict[object, Sums] = {}

    def copy(self) -> Room:
        """Return an independent copy for a trial. Arrays are copied on their first write."""
        other = self.what_if()
        other.rows_taken, other.changed_selectors = (
            list(self.rows_taken),
            list(self.changed_selectors),
        )
        self._is_shared = True
        return other

    def what_if(self) -> Room:
        """Return a copy in which only pod counts (``shift_counts``) and volumes may change."""
        other = Room.__new__(Room)
        other.snapshot, other.rule_cache, other.steps = self.snapshot, self.rule_cache, self.steps
        other.free, other.scored = self.free, self.scored
        other._is_shared = True
        other.rows_taken, other.changed_selectors = [], []
        other.volumes = self.volumes.copy()
        other.ports = self.ports.copy()
        other._counts, other._placed = dict(self._counts), dict(self._placed)
        other._sums = dict(self._sums)
        other._in_sum = dict(self._in_sum)
        other._device_room = self._device_room.copy() if self._device_room is not None else None
        return other

    def take_steps(self, count: int) -> None:
        """Count work against the budget of the turn, if there is one."""
        if self.steps is not None:
            self.steps.take(count)

    def cached(self, key: object, make: Callable[[], _Value]) -> _Value:
        """Return what ``make`` derives from node attributes, cached; see ``RuleCache.fact``."""
        return self.rule_cache.fact(self.snapshot, key, make)

    @property
    def version(self) -> Version:
        """A value that changes whenever labels, taints or the set of nodes change."""
        return self.rule_cache.version_of(self.snapshot)

    @property
    def device_room(self) -> DeviceRoom:
        """The devices that are left for claims."""
        if self._device_room is None:
            of = self.snapshot
            outcomes, steps = self.rule_cache.outcomes, self.steps
            self._device_room = DeviceRoom(of.devices, of.device_views, outcomes, steps=steps)
        return self._device_room

    def adopt_choices(self, other: Room) -> None:
        """Adopt the volumes and devices that were chosen in ``other``, a copy of this room."""
        self.volumes, self._device_room = other.volumes, other._device_room

    def amounts(self, rows: Ints | None = None) -> Amounts:
        """Return the amounts that allocation scores read, for these rows (None: all rows)."""
        size = self.snapshot.allocatable
        if rows is None:
            return Amounts(self.free, size, self.scored)
        return Amounts(self.free[rows], size[rows], self.scored[rows])

    def in_sum(self, which: object, nodes: Callable[[], Mask]) -> Sums:
        """Return float64[r]: the sum of free resources over some nodes (bool[n]).

        ``which`` names them: they are asked for once while nothing is placed.
        """
        found = self._in_sum.get(which)
        if found is None:
            found = np.maximum(self.free[nodes()], 0).sum(axis=0, dtype=np.float64)
            self._in_sum[which] = found
        return found

    def take(self, pod_class: PodClass, pods: Ints) -> None:
        """Place ``pods`` (int64[n], per node) more pods of the class."""
        rows = np.flatnonzero(pods)
        self.take_at(pod_class, rows, pods[rows])

    def take_at(self, pod_class: PodClass, rows: Ints, pods: Ints) -> None:
        """Place ``pods`` (int64[len(rows)]) more pods of the class; each row occurs once."""
        self._take_amounts(pod_class, rows, pods)
        if pod_class.device_needs is not None:
            on = np.repeat(rows, pods).tolist()
            names = [self.snapshot.node(row).name for row in on]
            self.device_room.take(pod_class.id, pod_class.device_needs, on, names)
        if pod_class.volume_needs is not None:
            self.volumes.take(pod_class, rows, pods)
        self.shift_counts(pod_class, rows, pods)

    def shift_counts(self, pod_class: PodClass, rows: Ints, pods: Ints) -> None:
        """Add ``pods`` (int64[len(rows)], may be negative) to the counts of label rules only.

        A terminating pod counts like any other pod here. So it does in kube-scheduler's what-if,
        although PodTopologySpread otherwise ignores terminating pods.
        """
        if pod_class.matched or uses_selectors(pod_class.spec):
            effects = self.snapshot.neighbours.effects(pod_class.spec, pod_class.matched)
            self._shift(effects, rows, pods)

    def suppose(self, selectors: Iterable[int], rows: Ints, pods: Ints) -> None:
        """Add ``pods`` as ``shift_counts`` does to what ``supposed`` says of these selectors."""
        self._shift({Key(Column.SUPPOSED, number): 1 for number in selectors}, rows, pods)

    def supposed(self, selector: int) -> Ints | None:
        """Return int64[n]: pods of the selector that a trial alone added; None: it added none."""
        key = Key(Column.SUPPOSED, selector)
        return self.counts(key) if key in self._placed else None

    def _shift(self, effects: dict[Key, int], rows: Ints, pods: Ints) -> None:
        self.changed_selectors += effects
        for key, amount in effects.items():
            self._placed[key] = (*self._placed.get(key, ()), (rows, amount * pods))
        for key in effects.keys() & self._counts.keys():
            counts = self._counts[key] = self._counts[key].copy()
            counts[rows] += effects[key] * pods
        if self._sums:
            self._shift_sums(effects, rows, pods)

    def _shift_sums(self, effects: dict[Key, int], rows: Ints, pods: Ints) -> None:
        """Update the cached sums, or drop them where a new sum costs no more than an update."""
        for key, before in list(self._sums.items()):
            amount = effects.get(_column_of(key), 0)
            if not amount:
                continue
            if len(rows) > policy.ROOM_ROWS_FEW:
                del self._sums[key]
                continue
            sums = self._sums[key] = before.copy()
            for row, more in zip(rows.tolist(), pods.tolist(), strict=True):
                sums[self._rows_beside(row, key.topology)] += amount * more

    def _rows_beside(self, row: int, topology: str) -> Ints:
        """Return the rows in the same domain as ``row``; none if it lacks the label."""
        column = self.snapshot.label(topology)
        codes = column.codes[: len(self.free)]

        def make() -> tuple[Ints, Ints]:
            order = np.argsort(codes, kind="stable")
            return order, np.searchsorted(codes[order], np.arange(len(column.values) + 1))

        order, starts = self.cached(("beside", topology, column.serial), make)
        code = int(codes[row])
        return order[starts[code] : starts[code + 1]] if code >= 0 else order[:0]

    def close(self, rows: list[int]) -> None:
        """Leave no slot on these rows for any pod: every pod takes at least one of ``pods``."""
        self._own_arrays()
        self.free[rows] = -1

    def withhold(self, pod_class: PodClass, pods: Ints) -> None:
        """Subtract the resources of ``pods`` (int64[n]) that do not exist; no rule counts them."""
        rows = np.flatnonzero(pods)
        self.withhold_at(pod_class, rows, pods[rows])

    def withhold_at(self, pod_class: PodClass, rows: Ints, pods: Ints) -> None:
        """As ``withhold``, with ``pods`` int64[len(rows)]; each row occurs once."""
        self._take_amounts(pod_class, rows, pods)

    def _take_amounts(self, pod_class: PodClass, rows: Ints, pods: Ints) -> None:
        self._in_sum = {}
        self.rows_taken += rows.tolist()
        self._own_arrays()
        cpu, memory = pod_class.spec.scored
        if len(rows) == 1:
            row, count = int(rows[0]), int(pods[0])
            for column, amount in pod_class.demands:
                self.free[row, column] -= amount * count
            self.scored[row, 0] += cpu * count
            self.scored[row, 1] += memory * count
        else:
            for column, amount in pod_class.demands:
                self.free[rows, column] -= amount * pods
            self.scored[rows, 0] += cpu * pods
            self.scored[rows, 1] += memory * pods
        if pod_class.spec.host_ports:
            self.ports.take(pod_class.spec.host_ports, rows)

    def _own_arrays(self) -> None:
        if self._is_shared:
            self.free, self.scored = self.free.copy(order="F"), self.scored.copy()
            self._is_shared = False

    def counts(self, key: Key) -> Ints:
        """Return int64[n]: a column of ``Neighbours``, with pods placed in this room counted in."""
        found = self._counts.get(key)
        if found is None:
            found = self.snapshot.neighbours.column(key)[: len(self.free)].copy()
            for rows, amounts in self._placed.get(key, ()):
                found[rows] += amounts
            self._counts[key] = found
        return found

    def domain_sums(self, topology: str, counts: Ints) -> Ints:
        """Return int64[n]: the sum of ``counts`` over each node's domain; 0 without the label."""
        codes = self.snapshot.label(topology).codes[: len(counts)]
        sums = np.bincount(codes + 1, weights=counts, minlength=1).astype(np.int64)
        sums[0] = 0
        return sums[codes + 1]

    def sums(self, key: Key) -> Ints:
        """Return int64[n], read-only: a column summed over each node's domain of ``key.topology``.

        Columns of pods have no topology of their own; here their key names one as well.
        """
        found = self._sums.get(key)
        if found is None:
            found = self.domain_sums(key.topology, self.counts(_column_of(key)))
            self._sums[key] = found
        return found

    def domains(self, topology: str, nodes: Mask) -> int:
        """Return the number of domains of the nodes; nodes without the label form one more."""
        column = self.snapshot.label(topology)
        is_there = np.zeros(len(column.values) + 1, np.bool_)
        is_there[column.codes[: len(nodes)][nodes]] = True
        return int(np.count_nonzero(is_there))

    def has_label(self, key: str) -> Mask:
        """Return bool[n]: the nodes that have the label."""

        def make() -> Mask:
            present: Mask = self.snapshot.label(key).codes[: len(self.free)] >= 0
            return present

        return self.cached(("label", key), make)

    def terms(self, pod_class: PodClass, column: Column) -> list[Key]:
        """Return the columns of terms of placed pods that match a pod of this class."""
        found = set(self.snapshot.neighbours.terms(pod_class.matched, column))
        found.update(
            key
            for key in self._placed
            if key.column is column and key.selector in pod_class.matched
        )
        return sorted(found)

    def has_port(self, row: int, port: HostPort) -> bool:
        """Whether a pod on the row holds a conflicting port; pods placed here count too."""
        return self.snapshot.has_port(row, port) or self.ports.has(row, port)


def _column_of(key: Key) -> Key:
    """Return the column to sum; one column of pods serves all topologies."""
    return key if key.column not in (Column.PODS, Column.STAYING) else key._replace(topology="")
