"""Which nodes reach bound volumes, and where volumes can be provisioned, by node labels.

Called by ``room.volume_room`` and ``room.claim_choices``. Computed on demand and valid for one
cycle, whose rooms share it.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.terms import matches_term
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.cluster.storage.needs import Topology
from quorate.core.cluster.storage.volume_needs import ZONE_LABELS
from quorate.core.model import SelectorTerm
from quorate.core.model.steps import costs
from quorate.core.model.storage import NO_PROVISIONER


class Reach:
    """Rows are those of the snapshot; n of them. Returned arrays are read-only."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._affinities: dict[tuple[SelectorTerm, ...], Mask] = {}
        self._zones: dict[tuple[Topology, ...], Mask] = {}
        self._by_label: dict[str, tuple[Ints, list[int]]] = {}
        """By label: rows sorted by their code, and where the rows of each code begin."""
        self._provisions: dict[str, Mask] = {}
        self._work = 0
        """Work below one step, in microseconds, roughly."""

    def affinity(self, terms: tuple[SelectorTerm, ...]) -> Mask:
        """Return bool[n]: nodes that match a volume's node affinity."""
        found = self._affinities.get(terms)
        if found is None:
            found = np.zeros(len(self.snapshot), np.bool_)
            for term in terms:
                found |= matches_term(term, self.snapshot)
                parts = len(term.expressions) + len(term.fields)
                self._work += (1 + parts) * len(found) // costs.REACH_NODES_PER_WORK + 10
            self._affinities[terms] = found
        return found

    def rows_of(self, terms: tuple[SelectorTerm, ...] | None) -> Ints:
        """Return the rows of the nodes that match a volume's node affinity (None: of all), sorted.

        Where the affinity is values of one label (host names, zones), the rows are looked up, not
        searched for.
        """
        alive = self.snapshot.alive
        if terms is None:
            return np.flatnonzero(alive)
        if len(terms) != 1 or len(terms[0].expressions) != 1 or terms[0].fields:
            return np.flatnonzero(self.affinity(terms) & alive)
        [one] = terms[0].expressions
        if one.operator != "In":
            return np.flatnonzero(self.affinity(terms) & alive)
        column = self.snapshot.label(one.key)
        codes = {column.code_of[value] for value in one.values if value in column.code_of}
        self._work += 8 + len(one.values) // 2
        order, starts = self._sorted_by(one.key)
        found = [order[starts[code] : starts[code + 1]] for code in codes]
        if len(found) == 1:
            return found[0]
        return np.sort(np.concatenate([*found, order[:0]]))

    def _sorted_by(self, key: str) -> tuple[Ints, list[int]]:
        found = self._by_label.get(key)
        if found is None:
            alive, column = self.snapshot.alive, self.snapshot.label(key)
            codes = np.where(alive, column.codes[: len(alive)], -1)
            order = np.argsort(codes, kind="stable")
            starts = np.searchsorted(codes[order], np.arange(len(column.values) + 1)).tolist()
            found = self._by_label[key] = order, starts
        return found

    def in_zone(self, topologies: tuple[Topology, ...]) -> Mask:
        """Return bool[n]: nodes in the zones of bound volumes, and nodes without a zone."""
        found = self._zones.get(topologies)
        if found is None:
            bears_none = np.ones(len(self.snapshot), np.bool_)
            for key in ZONE_LABELS:
                bears_none &= self.snapshot.label(key).codes[: len(bears_none)] < 0
            found = np.ones(len(self.snapshot), np.bool_)
            for topology in topologies:
                found &= self._in_one(topology)
            found |= bears_none
            self._zones[topologies] = found
        return found

    def _in_one(self, topology: Topology) -> Mask:
        own = self.snapshot.label(topology.key)
        present = self.snapshot.label(ZONE_LABELS[topology.key])
        n = len(self.snapshot)
        wanted = [own.code_of.get(value, -2) for value in topology.values]
        wanted_now = [present.code_of.get(value, -2) for value in topology.values]
        absent = own.codes[:n] < 0
        found: Mask = np.isin(own.codes[:n], wanted)
        found |= absent & np.isin(present.codes[:n], wanted_now)
        return found

    def provision(self, class_name: str) -> Mask:
        """Return bool[n]: whether a volume can be provisioned for a claim of a class, by node."""
        mask = self._provisions.get(class_name)
        if mask is None:
            mask = self._provisions[class_name] = self._provision(class_name)
        return mask

    def _provision(self, class_name: str) -> Mask:
        storage_class = self.snapshot.storage.classes.get(class_name)
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            return np.zeros(len(self.snapshot), np.bool_)
        mask = np.full(len(self.snapshot), not storage_class.topologies)
        for term in storage_class.topologies:
            mask |= self._in_topology(term)
        return mask

    def take_steps(self) -> int:
        """Return the steps that were done, and reset the count."""
        steps, self._work = divmod(self._work, costs.REACH_WORK_PER_STEP)
        return steps

    def _in_topology(self, term: tuple[tuple[str, tuple[str, ...]], ...]) -> Mask:
        mask = np.full(len(self.snapshot), bool(term))
        for key, values in term:
            column = self.snapshot.label(key)
            wanted = [column.code_of.get(value, -2) for value in values]
            mask &= np.isin(column.codes[: len(mask)], wanted)
        return mask
