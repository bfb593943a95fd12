"""Place pods one at a time, as kube-scheduler does: each on a node with the highest total score.

In: a pod class and the room. Out: a row. Called by ``turn.cycle`` for pods of no gang under a
profile of kube-scheduler's. Totals are cached across pods and cycles, and updated on demand by what
has changed: rows (``NodeTable.log``), or pods that the class's rules match (``Neighbours.log``). If
node attributes have changed, totals are computed from scratch. Volumes and devices have no log:
their rules are asked each time. Only the cycle's own room knows what the cycle has placed, so each
cycle has its own totals, which start as copies of the cached ones.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy
from quorate.core.place.one_pod.nominated import judge_nodes
from quorate.core.room.amounts import NodeAmounts
from quorate.core.room.promises import Promises
from quorate.core.room.room import Room
from quorate.core.rules.filtering import fits_alone, fits_on, open_to
from quorate.core.rules.scoring import allocation_score, allocation_score_on, standing_score

_NOWHERE = -1


@dataclass(slots=True)
class _NodeScores:
    """Verdicts and scores of one class: arrays of length n, valid as of ``*_seen``."""

    version: tuple[int, int]
    """The version of the nodes' attributes."""
    rows_seen: int
    selectors_seen: int
    fits: Mask
    """Nodes that pass the rules about single nodes."""
    allocation: Ints
    open: Mask
    """Nodes that pass the other rules."""
    feasible: Mask
    standing: Ints
    total: Ints
    """-1 where the pod does not fit."""

    def copy(self) -> _NodeScores:
        """Return a copy with its own arrays, for a room in which nothing is placed yet."""
        fits, feasible = self.fits.copy(), self.feasible.copy()
        allocation, total = self.allocation.copy(), self.total.copy()
        return replace(
            self,
            rows_seen=0,
            selectors_seen=0,
            fits=fits,
            feasible=feasible,
            allocation=allocation,
            total=total,
        )


class Singles:
    """Cached totals by class: those of the cluster, and those of the newest cycle."""

    def __init__(self) -> None:
        self._totals: dict[PodClass, _NodeScores] = {}
        self._of_cycle: dict[PodClass, _NodeScores] = {}
        self._empty: Room | None = None
        """The room of the newest cycle with nothing placed in it."""

    def best(
        self, entry: PodEntry, pod_class: PodClass, room: Room, promises: Promises
    ) -> int | None:
        """Return the row where the pod goes: its nominated node's, or the first of highest total.

        None when no node takes the pod beside the nominated pods.
        """
        total = self._total(pod_class, room)
        promised = promises.to_others(entry.pod.priority, entry)
        if promised:
            feasible = judge_nodes(pod_class, room, promises.cluster, promised).feasible
            if ((total != _NOWHERE) & ~feasible).any():
                standing = standing_score(pod_class, room, feasible)
                scored = standing + allocation_score(pod_class, room.amounts())
                total = np.where(feasible, scored, _NOWHERE)
        own = room.snapshot.table.rows.get(promises.nominated.node_of(entry.pod.uid), -1)
        if own >= 0 and total[own] != _NOWHERE:
            return own
        row = int(total.argmax()) if len(total) else 0
        return row if len(total) and total[row] != _NOWHERE else None

    def _total(self, pod_class: PodClass, room: Room) -> Ints:
        """Return int64[n]: the total of each node now, -1 where the pod does not fit."""
        if self._empty is None or self._empty.snapshot is not room.snapshot:
            self._empty = Room(room.snapshot, room.rule_cache)
            self._of_cycle.clear()
        if not room.rows_taken and not room.changed_selectors:
            return self._kept(pod_class, self._empty).total
        mine = self._of_cycle.get(pod_class)
        if mine is None:
            mine = self._of_cycle[pod_class] = self._kept(pod_class, self._empty).copy()
        rows, changed_selectors = (
            room.rows_taken[mine.rows_seen :],
            room.changed_selectors[mine.selectors_seen :],
        )
        mine.rows_seen, mine.selectors_seen = len(room.rows_taken), len(room.changed_selectors)
        _update(mine, rows, {key.selector for key in changed_selectors}, pod_class, room)
        return mine.total

    def _kept(self, pod_class: PodClass, room: Room) -> _NodeScores:
        """Return the class's cached totals, up to date with the cluster; ``room`` must be empty."""
        kept = self._totals.get(pod_class)
        table, neighbours = room.snapshot.table, room.snapshot.neighbours
        rows = table.log.since(kept.rows_seen) if kept is not None else None
        if kept is None or rows is None or kept.version != room.version:
            self._totals.pop(pod_class, None)
            kept = _from_scratch(pod_class, room)
            self._remember(pod_class, kept)
            return kept
        changed_selectors = neighbours.log.since(kept.selectors_seen)
        kept.rows_seen, kept.selectors_seen = table.log.position, neighbours.log.position
        is_stale = changed_selectors is None
        _update(kept, rows, set(changed_selectors or ()), pod_class, room, is_stale=is_stale)
        return kept

    def _remember(self, pod_class: PodClass, kept: _NodeScores) -> None:
        self._totals[pod_class], most = kept, policy.TOTALS_CELLS_MAX
        while len(self._totals) > 1 and len(self._totals) * len(kept.total) > most:
            del self._totals[next(iter(self._totals))]


def _update(
    kept: _NodeScores,
    rows: Sequence[int],
    changed_selectors: Set[int],
    pod_class: PodClass,
    room: Room,
    *,
    is_stale: bool = False,
) -> None:
    """Update the totals after changes of room on ``rows`` and of selectors' counts."""
    is_stale = is_stale or bool(pod_class.volume_needs or pod_class.device_needs)
    if changed_selectors and not is_stale:
        is_stale = not room.snapshot.neighbours.deciding_selectors(pod_class).isdisjoint(
            changed_selectors
        )
    if rows:
        _update_rows(kept, np.array(sorted(set(rows)), np.int64), pod_class, room, is_stale)
    if is_stale:
        _update_all(kept, pod_class, room)


def _from_scratch(pod_class: PodClass, room: Room) -> _NodeScores:
    fits = fits_alone(pod_class, room)
    kept = _NodeScores(
        version=room.version,
        rows_seen=room.snapshot.table.log.position,
        selectors_seen=room.snapshot.neighbours.log.position,
        fits=fits,
        allocation=allocation_score(pod_class, room.amounts()),
        open=fits,
        feasible=fits,
        standing=np.zeros(len(fits), np.int64),
        total=np.zeros(len(fits), np.int64),
    )
    _update_all(kept, pod_class, room)
    return kept


def _update_all(kept: _NodeScores, pod_class: PodClass, room: Room) -> None:
    """Recompute the rules and scores about other pods, volumes or devices, for all nodes."""
    kept.open = open_to(pod_class, room)
    _update_standing(kept, pod_class, room)


def _update_standing(kept: _NodeScores, pod_class: PodClass, room: Room) -> None:
    feasible = kept.feasible = kept.fits & kept.open
    kept.standing = standing_score(pod_class, room, feasible)
    kept.total = np.where(feasible, kept.standing + kept.allocation, _NOWHERE)


def _update_rows(
    kept: _NodeScores, rows: Ints, pod_class: PodClass, room: Room, is_stale: bool
) -> None:
    """Recompute rows whose room changed; ``is_stale``: the caller recomputes totals anyway."""
    if len(rows) <= policy.SINGLE_ROWS_FEW:
        _look_again(kept, rows, pod_class, room)
    else:
        kept.fits[rows] = fits_alone(pod_class, room, rows)
        kept.allocation[rows] = allocation_score(pod_class, room.amounts(rows))
    if is_stale:
        return
    feasible, was = kept.fits[rows] & kept.open[rows], kept.feasible[rows]
    lost, won = bool((was & ~feasible).any()), bool((feasible & ~was).any())
    if won or (lost and not _is_flat(kept)):
        _update_standing(kept, pod_class, room)  # scores are relative to the feasible nodes
        return
    kept.feasible[rows] = feasible
    kept.total[rows] = np.where(feasible, kept.standing[rows] + kept.allocation[rows], _NOWHERE)


def _look_again(kept: _NodeScores, rows: Ints, pod_class: PodClass, room: Room) -> None:
    """Recompute rows one by one."""
    for row in rows.tolist():
        free, size = room.free[row].tolist(), room.snapshot.allocatable[row].tolist()
        scored = room.scored[row].tolist()
        kept.allocation[row] = allocation_score_on(pod_class, NodeAmounts(free, size, scored))
        kept.fits[row] = fits_on(pod_class, room, row, free)


def _is_flat(kept: _NodeScores) -> bool:
    """Whether ``standing`` is equal on all feasible nodes, and so also on any subset of them."""
    among = kept.standing[kept.feasible]
    return not len(among) or bool((among == among[0]).all())
