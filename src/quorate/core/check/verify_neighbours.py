"""Check again that pods obey the rules about other pods. Called by ``verify``.

In: the pods of a plan, which are assumed already. Out: messages. It judges the state after the
whole plan, in no order: what must be true at the end if the rules let pod after pod in, in whatever
order. It reads counts by row (``cluster.labels.neighbours``), which tests count again, and shares
no code with the filters. Source: kube-scheduler 1.36's InterPodAffinity and PodTopologySpread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quorate.core.check.verify_nodes import is_counted
from quorate.core.cluster.arrays import Codes, Ints, Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.labels.neighbours import Column, Key
from quorate.core.model import PodSpec, SpreadConstraint, all_of


class NeighbourCheck:
    """The check of one plan: ``placed`` are its pods; all others stood there before."""

    def __init__(self, placed: Sequence[PodEntry], cluster: Cluster) -> None:
        self._placed = placed
        self._nodes = cluster.nodes
        self._neighbours = cluster.neighbours
        self._sums: dict[tuple[Key, str], Ints] = {}
        self._known: dict[object, str] = {}
        """The answers so far: pods of one class with the same labels on one node have one."""
        self._skews: dict[tuple[int, int, bool], Ints] = {}
        """By base of a class, place of a constraint among its hard ones, and whether it selects the
        pods themselves: see ``_skew``."""
        self._fit: dict[tuple[int, bool, bool], Mask] = {}
        """By base of a class, and what a constraint honours: the nodes that count."""
        self._stood: dict[tuple[Key, str], bool] = {}
        self._first: dict[int, str] = {}
        """The pod, by uid, that is the first of those that a selector selects."""

    def problems(self, entries: Sequence[PodEntry]) -> list[str]:
        """Return a message for each of these pods that breaks a rule."""
        if self._neighbours.is_idle:
            return []
        found = []
        for entry in entries:
            alike = entry.pod_class.base, entry.label_set, entry.row
            if alike not in self._known:
                self._known[alike] = self._problem(entry)
            if problem := self._known[alike]:
                found.append(f"pod {entry.pod.name} {problem}, on node {entry.node}")
        return found

    def _problem(self, entry: PodEntry) -> str:
        if self._is_beside_one_that_it_keeps_away(entry):
            return "would be beside a pod that it keeps away from"
        if self._is_kept_away(entry):
            return "would be beside a pod that keeps it away"
        if entry.pod.spec.affinity and not self._is_near(entry):
            return "would not be beside the pods that it belongs to"
        hard = [one for one in entry.pod.spec.spread if one.hard]
        for place, one in enumerate(hard):
            if self._is_skewed(place, hard, entry):
                return f"would not be spread over {one.topology_key}"
        return ""

    def _is_beside_one_that_it_keeps_away(self, entry: PodEntry) -> bool:
        for term in entry.pod.spec.anti_affinity:
            number = self._neighbours.selector_id(term.selector)
            itself = number in entry.label_set.matched
            if (self._near(Key(Column.PODS, number), term.topology_key, entry.row) or 0) > itself:
                return True
        return False

    def _is_kept_away(self, entry: PodEntry) -> bool:
        for key in self._neighbours.terms(entry.label_set.matched, Column.REPELLING):
            own = self._neighbours.effects(entry.pod.spec, frozenset()).get(key, 0)
            if (self._near(key, key.topology, entry.row) or 0) > own:
                return True
        return False

    def _is_near(self, entry: PodEntry) -> bool:
        """Whether all that the pod needs is in each domain, or it is the first of its kind."""
        terms = entry.pod.spec.affinity
        number = self._neighbours.selector_id(all_of(terms))
        itself, pods = number in entry.label_set.matched, Key(Column.PODS, number)
        near = [self._near(pods, term.topology_key, entry.row) for term in terms]
        if any(count is None for count in near):
            return False
        if all((count or 0) > itself for count in near):
            return True
        if not itself or any(self._stood_before(pods, term.topology_key) for term in terms):
            return False
        first = self._first.setdefault(number, entry.pod.uid)
        return first == entry.pod.uid

    def _stood_before(self, pods: Key, topology: str) -> bool:
        """Whether pods that a selector selects are in a domain and not of this plan."""
        known = self._stood.get((pods, topology))
        if known is None:
            codes = self._codes(topology)
            rows = self._rows_of(pods.selector)
            ours = int((codes[rows] >= 0).sum())
            known = self._stood[pods, topology] = bool(self._summed(pods, topology).sum() > ours)
        return known

    def _is_skewed(self, place: int, hard: list[SpreadConstraint], entry: PodEntry) -> bool:
        """Whether the pod's domain holds too many, whatever the order in which pods came."""
        one = hard[place]
        here = int(self._codes(one.topology_key)[entry.row])
        if here < 0:
            return True
        labels = one.selector.labels
        if labels is None or not labels.requirements:
            return False  # it counts nothing
        itself = self._neighbours.selector_id(one.selector) in entry.label_set.matched
        key = entry.pod_class.base, place, itself
        skew = self._skews.get(key)
        if skew is None:
            skew = self._skews[key] = self._skew(place, hard, entry, itself=itself)
        return bool(skew[here] > one.max_skew)

    def _skew(
        self, place: int, hard: list[SpreadConstraint], entry: PodEntry, *, itself: bool
    ) -> Ints:
        """Return int64[domains], by code: how many more pods are there than in the emptiest.

        Pods of the plan that do not have the constraint may have come after those that have it.
        """
        one = hard[place]
        codes, number = self._codes(one.topology_key), self._neighbours.selector_id(one.selector)
        width = int(codes.max(initial=-1)) + 1
        counted = self._counted(one, hard, entry)
        domains = np.unique(codes[counted])
        if not len(domains):
            return np.zeros(width, np.int64)
        column = self._neighbours.column(Key(Column.STAYING, number))[: len(codes)]
        pods = np.bincount(codes[counted], column[counted], minlength=width).astype(np.int64)
        lowest = int(pods[domains].min()) if len(domains) >= one.min_domains else 0
        later = self._rows_of(number, one if itself else None)
        later = later[counted[later]]
        found: Ints = pods - np.bincount(codes[later], minlength=width) - lowest
        return found

    def _rows_of(self, selector: int, but: SpreadConstraint | None = None) -> Ints:
        """Return the rows of the plan's pods that are selected, but for those with a constraint."""
        rows = [
            one.row
            for one in self._placed
            if selector in one.label_set.matched and (but is None or but not in one.pod.spec.spread)
        ]
        return np.array(rows, np.int64)

    def _counted(
        self, one: SpreadConstraint, hard: list[SpreadConstraint], entry: PodEntry
    ) -> Mask:
        """Return bool[rows]: nodes that a constraint counts, with the labels of all ``hard``."""
        labelled = [self._codes(other.topology_key) >= 0 for other in hard]
        found: Mask = np.logical_and.reduce(labelled)
        spec = entry.pod.spec
        has_affinity = bool(spec.node_selector) or spec.required_terms is not None
        if one.honor_taints or (one.honor_affinity and has_affinity):
            key = entry.pod_class.base, one.honor_affinity, one.honor_taints
            if key not in self._fit:
                self._fit[key] = self._fitting(spec, one)
            found &= self._fit[key]
        return found

    def _fitting(self, spec: PodSpec, one: SpreadConstraint) -> Mask:
        """Return bool[rows]: nodes that count by inclusion policies. Of alike ones one is asked."""
        terms = spec.required_terms or ()
        keys = [key for key, _ in spec.node_selector]
        keys += [asked.key for term in terms for asked in term.expressions]
        is_named = any(term.fields for term in terms)
        known: dict[object, bool] = {}
        found = np.zeros(self._nodes.capacity, np.bool_)
        for row, node in enumerate(self._nodes.nodes):
            if node is None:
                continue
            labels = self._nodes.labels_at(row)
            alike = node.taints, node.name if is_named else "", *map(labels.get, keys)
            if alike not in known:
                known[alike] = is_counted(spec, node, one)
            found[row] = known[alike]
        return found

    def _near(self, key: Key, topology: str, row: int) -> int | None:
        """Return what a column counts in the domain of a node; None: the node is in none."""
        here = int(self._codes(topology)[row])
        return None if here < 0 else int(self._summed(key, topology)[here])

    def _summed(self, key: Key, topology: str) -> Ints:
        """Return int64[domains]: a column summed over each domain, by the label's code."""
        found = self._sums.get((key, topology))
        if found is None:
            codes = self._codes(topology)
            counts = self._neighbours.column(key)[: len(codes)]
            present = codes >= 0
            sums = np.bincount(codes[present], counts[present]).astype(np.int64)
            found = self._sums[key, topology] = sums
        return found

    def _codes(self, topology: str) -> Codes:
        """Return int32[rows]: the code of each node's value of a label, -1 for none."""
        return self._nodes.label(topology).codes
