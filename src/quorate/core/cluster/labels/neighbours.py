"""Counts of pods by selector and node, updated by each change of a pod, node or namespace.

In: pods that appear, move and go, with their label sets and specs. Out: for each selector or term
in use an int64[rows] column. Owned by ``cluster.cluster``; read through ``room.room``. A column
exists for each selector that a pod's affinity, anti-affinity or spread uses, and for each term that
pods on nodes carry. A cycle reads these arrays and never iterates over pods. A column is dropped
when its last user goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.change_log import Log
from quorate.core.cluster.labels.label_sets import LabelSet, LabelSets
from quorate.core.cluster.labels.matching import Matching
from quorate.core.cluster.labels.row_counts import Columns, Views
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodSelector, PodSpec, all_of


class Column(IntEnum):
    """What a column counts."""

    PODS = 0
    """Pods that the selector matches, terminating ones included."""
    STAYING = 1
    """Pods that the selector matches and that are not terminating."""
    REPELLING = 2
    """Pods with a required anti-affinity term of this selector and topology."""
    ATTRACTED = 3
    """Pods with a required affinity term of this selector and topology."""
    PULL = 4
    """Sum of the weights of pods' preferred terms with this selector and topology; the weights of
    anti-affinity are negative."""
    SUPPOSED = 5
    """Pods that a trial alone adds or (negative) removes and that the selector matches."""

    __hash__ = int.__hash__  # Enum's hash is slow, and differs between processes


class Key(NamedTuple):
    """Names a column. ``selector`` is its number; ``topology`` a node label, for terms only."""

    column: Column
    selector: int
    topology: str = ""


class _User:
    """A spec that uses selectors: its number of living pods, its selectors and its terms."""

    __slots__ = ("pods", "selectors", "terms")

    def __init__(self, selectors: list[PodSelector]) -> None:
        self.pods = 0
        self.selectors = selectors
        self.terms: Mapping[Key, int] = {}
        """What the terms of one pod add, by column."""


class Neighbours:
    """Counts of pods by selector and node. ``rows`` is the length of each column."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._matching = Matching()
        self._specs: dict[PodSpec, _User] = {}
        """Specs of living pods that use selectors."""
        self.repelling_by_namespace_labels: Counter[PodSelector] = Counter()
        """Selectors of living specs' required anti-affinity that select namespaces by label."""
        self._views: Views = LruCache()
        self._pods: Columns[int] = Columns(rows, self._views)
        """Pods that a selector matches, by the selector's number."""
        self._leaving: Columns[int] = Columns(rows, self._views)
        """Terminating pods that a selector matches, by the selector's number."""
        self._weights: Columns[Key] = Columns(rows, self._views)
        """The summed amounts of the terms of pods on nodes."""
        self._carriers: Counter[Key] = Counter()
        """The number of pods on nodes that carry a term."""
        self._terms: dict[int, set[Key]] = {}
        """The keys of ``_carriers``, by selector."""
        self._changed: set[int] = set()
        self.log = Log()
        """Selectors whose counts changed, or that are new."""

    @property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """Labels of namespaces, by name."""
        return self._matching.namespaces

    @property
    def selectors_in_use(self) -> int:
        """The number of selectors that a pod or a default constraint uses."""
        return len(self._matching.in_use)

    @property
    def label_sets(self) -> LabelSets:
        """The label sets of living pods: pods with one namespace and the same labels share one."""
        return self._matching.label_sets

    # Pods that exist

    def acquire(
        self, namespace: str, labels: tuple[tuple[str, str], ...], spec: PodSpec
    ) -> LabelSet:
        """Add a pod, with or without a node; return its label set. Its selectors get columns."""
        found = self._matching.acquire(namespace, labels)
        if uses_selectors(spec):
            user = self._specs.get(spec)
            if user is None:
                user = self._specs[spec] = _User(_selectors_of(spec))
                for selector in user.selectors:
                    self.use(selector)
                user.terms = self._make_terms(spec)
                self.repelling_by_namespace_labels.update(_repelling(spec))
            user.pods += 1
        return found

    def drop(self, label_set: LabelSet, spec: PodSpec) -> None:
        """Remove a pod that has already left its node."""
        self.label_sets.drop(label_set)
        if uses_selectors(spec):
            user = self._specs[spec]
            user.pods -= 1
            if not user.pods:
                del self._specs[spec]
                for selector in _repelling(spec):
                    self.repelling_by_namespace_labels[selector] -= 1
                    if not self.repelling_by_namespace_labels[selector]:
                        del self.repelling_by_namespace_labels[selector]
                for selector in user.selectors:
                    self.disuse(selector)

    def selector_id(self, selector: PodSelector) -> int:
        """Return the number of a selector in use; KeyError if it is not in use."""
        return self._matching.in_use[selector].id

    def matched(self, label_set: LabelSet) -> frozenset[int]:
        """Return the numbers of the selectors in use that match pods with these labels."""
        return label_set.matched

    def use(self, selector: PodSelector) -> None:
        """Keep columns for a selector, of a spec or of default spreading, until ``disuse``."""
        is_new = selector not in self._matching.in_use
        number, matched = self._matching.use(selector)
        if is_new:
            self.log.note(number)
            self._pods.fill(number, _sum(one.rows for one in matched))
            self._leaving.fill(number, _sum(one.leaving for one in matched))

    def disuse(self, selector: PodSelector) -> None:
        """Take back one ``use``; the last one drops the selector's columns."""
        gone = self._matching.disuse(selector)
        if gone is not None:
            self._pods.drop(gone)
            self._leaving.drop(gone)

    @property
    def is_idle(self) -> bool:
        """Whether no selector is in use: then labels do not affect scheduling."""
        return not self._matching.in_use

    # Pods on nodes

    def take(self, row: int, label_set: LabelSet, spec: PodSpec, *, terminating: bool) -> None:
        """Count one pod on the row."""
        self._count(row, label_set, spec, 1, terminating=terminating)

    def release(self, row: int, label_set: LabelSet, spec: PodSpec, *, terminating: bool) -> None:
        """Stop counting one pod on the row."""
        self._count(row, label_set, spec, -1, terminating=terminating)

    def take_many(self, rows: Sequence[int], label_sets: Sequence[LabelSet], spec: PodSpec) -> None:
        """Count pods of one spec that are not terminating, one for each row; rows may repeat."""
        if len(rows) == 1:
            self.take(rows[0], label_sets[0], spec, terminating=False)
            return
        together: dict[frozenset[int], list[int]] = {}
        for (label_set, row), pods in Counter(zip(label_sets, rows, strict=True)).items():
            label_set.count(row, pods, terminating=False)
            if self._matching.in_use:
                together.setdefault(label_set.matched, []).extend([row] * pods)
        terms = self._terms_of(spec)
        for matched, some in together.items():
            places, times = np.unique(np.array(some, np.int64), return_counts=True)
            self._note_changed({*matched, *(key.selector for key in terms)})
            for number in matched:
                self._pods.add_at(number, places, times)
            for key, amount in terms.items():
                self._weights.add_at(key, places, amount * times)
                self._note_carriers(key, len(some))

    def effects(self, spec: PodSpec, matched: frozenset[int]) -> dict[Key, int]:
        """Return the amount that one pod adds to each column; ``matched`` as in ``LabelSet``."""
        effects = {Key(Column.PODS, number): 1 for number in matched}
        effects |= {Key(Column.STAYING, number): 1 for number in matched}
        effects |= self._terms_of(spec)
        return effects

    def terms(self, matched: Iterable[int], column: Column) -> list[Key]:
        """Return the keys, sorted, of the terms in a column that pods on nodes carry.

        Only terms with one of the ``matched`` selectors count: those that match the pod.
        """
        return sorted(
            key for number in matched for key in self._terms.get(number, ()) if key.column is column
        )

    def column(self, key: Key) -> Ints:
        """Return int64[rows]: the column's counts now.

        The array is read-only. Later changes may update it in place: copy it to keep it.
        """
        if key.column not in (Column.PODS, Column.STAYING):
            return self._weights.column(key)
        pods = self._pods.column(key.selector)
        if key.column is Column.PODS or key.selector not in self._leaving:
            return pods
        staying = pods - self._leaving.column(key.selector)
        staying.flags.writeable = False
        return staying

    def deciding_selectors(self, pod_class: PodClass) -> frozenset[int]:
        """Return the selectors whose counts decide where pods of the class may go."""
        used = {*_selectors_of(pod_class.spec), *(one.selector for one in pod_class.spread)}
        in_use = self._matching.in_use
        return pod_class.matched.union(in_use[one].id for one in used & in_use.keys())

    def take_changed_selectors(self) -> set[int]:
        """Return the selectors whose counts changed since the last call, and forget them."""
        changed, self._changed = self._changed, set()
        return changed

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` rows."""
        if rows == self._rows:
            return
        self._rows = rows
        self._views = LruCache()
        for columns in (self._pods, self._leaving, self._weights):
            columns.grow(rows, self._views)

    # Namespaces

    def relabel(self, namespace: str, labels: Mapping[str, str]) -> None:
        """Set a namespace's labels, empty if it is gone.

        Its pods are counted again for the selectors that select namespaces by label.
        """
        if self.namespaces.get(namespace, {}) == labels:
            return
        others: set[int] = set()
        for label_set, number in self._matching.relabel(namespace, labels):
            self._tally(number, label_set, 1 if label_set.is_matched(number) else -1)
            others.add(number)
        self._note_changed(others)

    # Inside

    def _tally(self, number: int, label_set: LabelSet, sign: int) -> None:
        """Count all pods of a label set for one selector; a terminating pod is in both counters."""
        for row, count in label_set.rows.items():
            self._pods.add(number, row, sign * count)
        for row, count in label_set.leaving.items():
            self._leaving.add(number, row, sign * count)

    def _count(
        self, row: int, label_set: LabelSet, spec: PodSpec, sign: int, *, terminating: bool
    ) -> None:
        matched = label_set.matched
        label_set.count(row, sign, terminating=terminating)
        changed = set(matched)
        for number in matched:
            self._pods.add(number, row, sign)
            if terminating:
                self._leaving.add(number, row, sign)
        for key, amount in self._terms_of(spec).items():
            self._weights.add(key, row, sign * amount)
            self._note_carriers(key, sign)
            changed.add(key.selector)
        self._note_changed(changed)

    def _note_changed(self, selectors: set[int]) -> None:
        self._changed |= selectors
        self.log.note_all(selectors)

    def _note_carriers(self, key: Key, count: int) -> None:
        """Add ``count`` carriers to a term; forget the term when no pod on a node carries it."""
        self._carriers[key] += count
        if self._carriers[key]:
            self._terms.setdefault(key.selector, set()).add(key)
            return
        del self._carriers[key]
        self._terms[key.selector].discard(key)
        if not self._terms[key.selector]:
            del self._terms[key.selector]

    def _terms_of(self, spec: PodSpec) -> Mapping[Key, int]:
        """Return the amounts that the terms of one pod add, by column."""
        if not uses_selectors(spec):
            return {}
        user = self._specs.get(spec)
        return self._make_terms(spec) if user is None else user.terms

    def _make_terms(self, spec: PodSpec) -> Mapping[Key, int]:
        effects: dict[Key, int] = {}
        in_use = self._matching.in_use
        for column, terms in (
            (Column.REPELLING, spec.anti_affinity),
            (Column.ATTRACTED, spec.affinity),
        ):
            for term in terms:
                key = Key(column, in_use[term.selector].id, term.topology_key)
                effects[key] = effects.get(key, 0) + 1
        for one in spec.preferred_affinity:
            key = Key(Column.PULL, in_use[one.term.selector].id, one.term.topology_key)
            effects[key] = effects.get(key, 0) + one.weight
        return effects


def _sum(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for part in parts:
        for row, count in part.items():
            found[row] = found.get(row, 0) + count
    return found


def uses_selectors(spec: PodSpec) -> bool:
    """Whether pods of this spec look at other pods' labels."""
    return bool(spec.affinity or spec.anti_affinity or spec.preferred_affinity or spec.spread)


def _repelling(spec: PodSpec) -> list[PodSelector]:
    """Return the selectors of required anti-affinity that select namespaces by label."""
    terms = spec.anti_affinity
    return [term.selector for term in terms if term.selector.by_namespace_labels]


def _selectors_of(spec: PodSpec) -> list[PodSelector]:
    terms = [*spec.affinity, *spec.anti_affinity, *(o.term for o in spec.preferred_affinity)]
    together = [all_of(spec.affinity)] if len(spec.affinity) > 1 else []
    return [
        *(term.selector for term in terms),
        *(constraint.selector for constraint in spec.spread),
        *together,
    ]
