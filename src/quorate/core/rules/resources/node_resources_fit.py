"""NodeResourcesFit: requests must fit into allocatable minus what is used, in every resource.

Score: how much of a node is allocated, least, most, or by a curve. All divisions are of integers.
Source: kube-scheduler 1.36, noderesources/fit.go, {least,most}_allocated.go,
requested_to_capacity_ratio.go and resource_allocation.go.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.nodes.encoding import CPU, MEMORY, PODS, PodClass
from quorate.core.cluster.nodes.slots import slots_of
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Refused, Verdict

REFUSALS = (
    Refusal("the node has too little left", resolvable=True),
    Refusal("the node is too small", resolvable=False),
)
_LACKS, _TOO_SMALL = 1, 2
_Number = TypeVar("_Number", int, Ints)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return which nodes lack which resources; one too small when empty cannot be helped."""
    names = room.snapshot.table.resources.names
    codes = np.zeros(len(room.free), np.int8)
    short = lacking(pod_class, room.free, names)
    for lacks in short.values():
        codes[lacks] = _LACKS
    for column, amount in pod_class.demands:
        if column != PODS:
            too_small = room.snapshot.allocatable[:, column] < amount
            codes[short[message(column, names)] & too_small] = _TOO_SMALL
    if pod_class.missing:
        codes[:] = _TOO_SMALL
    return Verdict(codes, REFUSALS, tuple(short.items()))


def lacking(pod_class: PodClass, free: Ints, names: list[str]) -> dict[str, Mask]:
    """Return for each requested resource, by its message: bool[n], nodes with too little free.

    ``names`` are those of the columns.
    """
    short = {message(column, names): free[:, column] < n for column, n in pod_class.demands}
    for name, _ in pod_class.missing:
        short[insufficient(name)] = np.ones(len(free), np.bool_)
    return short


def free_of(name: str, room: Room, rows: Ints) -> Ints:
    """Return int64[len(rows)]: how much of a resource is free on these rows."""
    resources = room.snapshot.table.resources
    column = resources.columns.get(name)
    if column is not None:
        free: Ints = room.free[rows, column]
        return free
    return np.zeros(len(rows), np.int64)


def could_hold(size: Ints, column: int, amount: int) -> bool:
    """Whether a node with ``size`` (int64[r]) has that much of the resource, were it empty.

    The number of pods is not looked at: kube-scheduler calls a lack of it always resolvable.
    """
    return column == PODS or int(size[column]) >= amount


def message(column: int, names: list[str]) -> str:
    """Return the default scheduler's words for a lack of the resource."""
    return "Too many pods" if column == PODS else insufficient(names[column])


def insufficient(name: str) -> str:
    """Return the default scheduler's words for a lack of a resource, but for that of pods."""
    return f"Insufficient {name}"


class FreeOn:
    """What is free on one node, for a trial."""

    def __init__(self, room: Room, row: int) -> None:
        self._free: list[int] = room.free[row].tolist()
        self._room, self._row = room, row

    def shift(self, entry: PodEntry, pods: int) -> None:
        """Count the pod once more (``pods`` is 1) or once less (-1)."""
        for column, amount in entry.pod_class.demands:
            self._free[column] -= pods * amount

    def refused(self, pod_class: PodClass) -> Refused | None:
        """Return which resources are too few; None: none is."""
        short = [(c, a) for c, a in pod_class.demands if self._free[c] < a]
        missing = pod_class.missing
        if not (short or missing):
            return None
        names = self._room.snapshot.table.resources.names
        texts = [message(column, names) for column, _ in short]
        texts += [insufficient(name) for name, _ in missing]
        size = self._room.snapshot.allocatable[self._row]
        is_large_enough = all(could_hold(size, c, a) for c, a in short)
        return Refused(tuple(texts), is_large_enough and not missing)


def cap(pod_class: PodClass, room: Room, count: Ints, _together: bool) -> None:
    """Lower ``count`` (int64[n]) to the pods that fit by resources."""
    np.minimum(count, slots_of(pod_class, room.free), out=count)


def fits(pod_class: PodClass, room: Room, rows: Ints | None, mask: Mask) -> None:
    """Clear ``mask`` (bool[m]) on those of the rows (None: of all) that lack some resource."""
    free = room.free if rows is None else room.free[rows]
    for column, amount in pod_class.demands:
        mask &= free[:, column] >= amount
    if pod_class.missing:
        mask[:] = False


def fits_on(pod_class: PodClass, _room: Room, _row: int, free: list[int]) -> bool:
    """Whether a node with so much free (by resource) has enough of everything."""
    return not (pod_class.missing or any(free[c] < a for c, a in pod_class.demands))


def on_node(room: Room, row: int, _cluster: Cluster) -> FreeOn:
    """Return what is free on the node at ``row``."""
    return FreeOn(room, row)


_Scored = tuple[int, int, int]
"""A resource that is scored: its column, what one pod adds, and its column in ``scored``."""


def _scored(pod_class: PodClass) -> list[_Scored]:
    """Return cpu and memory, as scores count them: pods that ask for none use a little too."""
    pending = pod_class.spec.scored_pending or pod_class.spec.scored
    return [(CPU, pending[0], 0), (MEMORY, pending[1], 1)]


def _share(pod_class: PodClass, used: _Number, size: _Number) -> _Number:
    """Return 0 to 100: how good it is that ``used`` (at most ``size``) is allocated of ``size``."""
    spreads = pod_class.profile.packing == "least-allocated"
    return (size - used if spreads else used) * 100 // size


def score(pod_class: PodClass, amounts: Amounts) -> Ints:
    """Return int64[m] from 0 to 100, with one pod of the class counted in."""
    total = np.zeros(len(amounts.free), np.int64)
    counted = np.zeros(len(amounts.free), np.int64)
    for column, added, scored in _scored(pod_class):
        size = amounts.allocatable[:, column]
        used = np.minimum(amounts.scored[:, scored] + added, size)
        total += np.where(size > 0, _share(pod_class, used, np.maximum(size, 1)), 0)
        counted += size > 0
    return total // np.maximum(counted, 1)


def score_one(pod_class: PodClass, amounts: NodeAmounts) -> int:
    """Return what ``score`` says of one node."""
    total = counted = 0
    for column, added, scored in _scored(pod_class):
        size = amounts.allocatable[column]
        if size > 0:
            total += _share(pod_class, min(amounts.scored[scored] + added, size), size)
            counted += 1
    return total // max(counted, 1)


RULE = Rule(
    name="NodeResourcesFit",
    kind=RuleKind.USE,
    judge=judge,
    cap=cap,
    fits=fits,
    fits_on=fits_on,
    on_node=on_node,
    score_amounts=score,
    score_one=score_one,
)
