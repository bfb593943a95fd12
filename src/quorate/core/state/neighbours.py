"""Which pods are where, by labels: counted for each selector and each node, updated by change.

Owned by ``state.cluster``; read through ``plan.room``. A selector that some pod's affinity,
anti-affinity or spread uses gets a column of counts over the nodes; so do the terms that running
pods carry. A cycle then reads arrays, however many pods run. What no pod uses any more is dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from quorate.core.model import Namespace, PodSelector, PodShape, all_of
from quorate.core.state.arrays import Ints, grown
from quorate.core.state.encoding import PodClass
from quorate.core.state.log import Log

_GUESTS_MAX = 256


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
    """Sum of weights of pods' preferred terms of this selector and topology (negative: anti)."""


class Key(NamedTuple):
    """Names a column. ``topology`` is a node label, for columns of terms."""

    column: Column
    selector: int
    topology: str = ""


class LabelSet:
    """Pods with the same labels in the same namespace, and how many of them are on which row."""

    __slots__ = ("labels", "leaving", "matched", "namespace", "pods", "rows", "seen", "version")

    def __init__(self, namespace: str, labels: tuple[tuple[str, str], ...]) -> None:
        self.namespace = namespace
        self.labels = labels
        self.pods = 0
        """How many pods bear it, those without a node included."""
        self.rows: Counter[int] = Counter()
        self.leaving: Counter[int] = Counter()
        """As ``rows``, of terminating pods only."""
        self.matched: frozenset[int] = frozenset()
        """The selectors that match it, of those made before ``seen`` and in use at ``version``."""
        self.seen = 0
        self.version = 0


class _Selector:
    """A selector in use: its number, and how many shapes of living pods use it."""

    __slots__ = ("id", "selector", "users")

    def __init__(self, selector_id: int, selector: PodSelector) -> None:
        self.id = selector_id
        self.selector = selector
        self.users = 0


class Neighbours:
    """Counts of pods by selector and node. ``rows`` is how long the columns are."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.label_sets: dict[tuple[str, tuple[tuple[str, str], ...]], LabelSet] = {}
        self._by_namespace: dict[str, set[LabelSet]] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        """Labels of namespaces."""
        self._selectors: dict[PodSelector, _Selector] = {}
        self._alive: dict[int, _Selector] = {}
        self._made = 0
        self._version = 0
        """Differs whenever other selectors are in use."""
        self._shapes: Counter[PodShape] = Counter()
        """Shapes of living pods that use selectors, and how many pods have them."""
        self.columns: dict[Key, Ints] = {}
        self._terms: dict[int, set[Key]] = {}
        """The columns of terms, by selector."""
        self._carriers: Counter[Key] = Counter()
        self._guests: dict[PodSelector, None] = {}
        """Selectors that are kept for default spreading, the longest unused first."""
        self._stirred: set[int] = set()
        self.log = Log()
        """Selectors whose counts changed, or that are new."""

    # Who is there

    def hold(
        self, namespace: str, labels: tuple[tuple[str, str], ...], shape: PodShape
    ) -> LabelSet:
        """Note a pod that exists, with or without a node."""
        found = self.label_sets.get((namespace, labels))
        if found is None:
            found = self.label_sets[namespace, labels] = LabelSet(namespace, labels)
            self._by_namespace.setdefault(namespace, set()).add(found)
        found.pods += 1
        if uses_selectors(shape):
            self._shapes[shape] += 1
            if self._shapes[shape] == 1:
                for selector in _selectors_of(shape):
                    self._use(selector)
        return found

    def drop(self, label_set: LabelSet, shape: PodShape) -> None:
        """Forget a pod; it must have left its node."""
        label_set.pods -= 1
        if not label_set.pods:
            del self.label_sets[label_set.namespace, label_set.labels]
            alike = self._by_namespace[label_set.namespace]
            alike.discard(label_set)
            if not alike:
                del self._by_namespace[label_set.namespace]
        if uses_selectors(shape):
            self._shapes[shape] -= 1
            if not self._shapes[shape]:
                del self._shapes[shape]
                for selector in _selectors_of(shape):
                    self._disuse(selector)

    def selector_id(self, selector: PodSelector) -> int:
        """Return the number of a selector that a living pod uses."""
        return self._selectors[selector].id

    def matched(self, label_set: LabelSet) -> frozenset[int]:
        """Return the numbers of the selectors in use that match pods with these labels."""
        if label_set.version != self._version:
            alive, seen = self._alive, label_set.seen
            kept = (number for number in label_set.matched if number in alive)
            new = takewhile(lambda one: one.id >= seen, reversed(alive.values()))  # newest last
            fresh = (one.id for one in new if self._matches(one.selector, label_set))
            label_set.matched = frozenset((*kept, *fresh))
            label_set.seen, label_set.version = self._made, self._version
        return label_set.matched

    def host(self, selector: PodSelector) -> None:
        """Keep a selector that no pod's own terms use; the longest unused of many is dropped."""
        if selector in self._guests:
            self._guests[selector] = self._guests.pop(selector)
            return
        self._guests[selector] = None
        self._use(selector)
        if len(self._guests) > _GUESTS_MAX:
            oldest = next(iter(self._guests))
            del self._guests[oldest]
            self._disuse(oldest)

    @property
    def is_idle(self) -> bool:
        """Whether no living pod uses a selector: then labels tell nobody apart."""
        return not self._alive

    # Pods on nodes

    def take(self, row: int, label_set: LabelSet, shape: PodShape, *, terminating: bool) -> None:
        """Count one pod on the row."""
        self._count(row, label_set, shape, 1, terminating=terminating)

    def release(self, row: int, label_set: LabelSet, shape: PodShape, *, terminating: bool) -> None:
        """Stop counting one pod on the row."""
        self._count(row, label_set, shape, -1, terminating=terminating)

    def take_many(
        self, rows: Sequence[int], label_sets: Sequence[LabelSet], shape: PodShape
    ) -> None:
        """Count pods of one shape that do not terminate, one for each row (which may repeat)."""
        if len(rows) == 1:
            self.take(rows[0], label_sets[0], shape, terminating=False)
            return
        together: dict[frozenset[int], list[int]] = {}
        for row, label_set in zip(rows, label_sets, strict=True):
            label_set.rows[row] += 1
            if self._alive:
                together.setdefault(self.matched(label_set), []).append(row)
        for matched, some in together.items():
            effects = self.effects(shape, matched)
            self._stir({key.selector for key in effects})
            for key, amount in effects.items():
                np.add.at(self._column(key), some, amount)
                self._note_carriers(key, len(some))

    def effects(self, shape: PodShape, matched: frozenset[int]) -> dict[Key, int]:
        """Return what one pod adds to each column; ``matched`` as in ``LabelSet``."""
        effects = {Key(Column.PODS, number): 1 for number in matched}
        effects |= {Key(Column.STAYING, number): 1 for number in matched}
        effects |= self._terms_of(shape)
        return effects

    def terms(self, matched: Iterable[int], column: Column) -> list[Key]:
        """Return the columns of terms that pods on nodes carry and that match such a pod."""
        return sorted(
            key for number in matched for key in self._terms.get(number, ()) if key.column is column
        )

    def column(self, key: Key) -> Ints:
        """Return int64[rows]: what the column counts now. Not to be written to."""
        found = self.columns.get(key)
        return np.zeros(self._rows, np.int64) if found is None else found

    def concerns(self, pod_class: PodClass) -> frozenset[int]:
        """Return the selectors whose counts decide where pods of the class may go."""
        used = [*_selectors_of(pod_class.shape), *(one.selector for one in pod_class.spread)]
        return pod_class.matched | {self._selectors[one].id for one in used}

    def take_stirred(self) -> set[int]:
        """Return and forget the selectors whose counts differ from what they were."""
        stirred, self._stirred = self._stirred, set()
        return stirred

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` rows."""
        self._rows = rows
        for key, counts in self.columns.items():
            self.columns[key] = grown(counts, rows)

    # Namespaces

    def put_namespace(self, namespace: Namespace) -> bool:
        """Take a namespace's labels; return whether some selector may mean other pods now."""
        return self._relabel(namespace.name, dict(namespace.labels))

    def remove_namespace(self, name: str) -> bool:
        """Forget a namespace's labels; return as ``put_namespace`` does."""
        return self._relabel(name, {})

    def _relabel(self, namespace: str, labels: dict[str, str]) -> bool:
        """Count anew what selectors by namespace labels mean of the pods in one namespace."""
        concerned = [one for one in self._alive.values() if _by_namespace_labels(one.selector)]
        label_sets = self._by_namespace.get(namespace, ()) if concerned else ()
        before = [self.matched(label_set) for label_set in label_sets]  # by the labels as they were
        self.namespaces[namespace] = labels
        if not labels:
            del self.namespaces[namespace]
        others: set[int] = set()
        for label_set, was in zip(label_sets, before, strict=True):
            now = {one.id for one in concerned if self._matches(one.selector, label_set)}
            label_set.matched = was - {one.id for one in concerned} | now
            for number in was ^ label_set.matched:
                self._tally(number, label_set, 1 if number in now else -1)
                others.add(number)
        self._stir(others)
        return bool(others)

    # Inside

    def _use(self, selector: PodSelector) -> None:
        used = self._selectors.get(selector)
        if used is None:
            used = self._selectors[selector] = _Selector(self._made, selector)
            self._alive[used.id] = used
            self._made += 1
            self._version += 1
            self.log.note(used.id)
            for column in (Column.PODS, Column.STAYING):
                self.columns[Key(column, used.id)] = np.zeros(self._rows, np.int64)
            for label_set in self._candidates(selector):
                if self._matches(selector, label_set):
                    self._tally(used.id, label_set, 1)
        used.users += 1

    def _disuse(self, selector: PodSelector) -> None:
        used = self._selectors[selector]
        used.users -= 1
        if not used.users:
            del self._selectors[selector], self._alive[used.id]
            self._version += 1
            for column in (Column.PODS, Column.STAYING):
                del self.columns[Key(column, used.id)]

    def _candidates(self, selector: PodSelector) -> Iterable[LabelSet]:
        if selector.labels is None:
            return ()
        if selector.namespace_selector is not None:
            return self.label_sets.values()
        return (one for name in selector.namespaces for one in self._by_namespace.get(name, ()))

    def _matches(self, selector: PodSelector, label_set: LabelSet) -> bool:
        if selector.labels is None:
            return False
        if label_set.namespace not in selector.namespaces:
            wanted = selector.namespace_selector
            labels = self.namespaces.get(label_set.namespace, {})
            if wanted is None or not wanted.matches(labels):
                return False
        if not selector.labels.matches(dict(label_set.labels)):
            return False
        return all(self._matches(other, label_set) for other in selector.also)

    def _tally(self, number: int, label_set: LabelSet, sign: int) -> None:
        """Count all pods of a label set for one selector; a terminating pod is in both counters."""
        pods = self.columns[Key(Column.PODS, number)]
        staying = self.columns[Key(Column.STAYING, number)]
        for row, count in label_set.rows.items():
            pods[row] += sign * count
            staying[row] += sign * (count - label_set.leaving[row])

    def _count(
        self, row: int, label_set: LabelSet, shape: PodShape, sign: int, *, terminating: bool
    ) -> None:
        # What is matched is settled first: a new selector must not find this pod on its row twice.
        matched = self.matched(label_set)
        _add(label_set.rows, row, sign)
        if terminating:
            _add(label_set.leaving, row, sign)
        stirred = set(matched)
        for number in matched:
            self.columns[Key(Column.PODS, number)][row] += sign
            if not terminating:
                self.columns[Key(Column.STAYING, number)][row] += sign
        for key, amount in self._terms_of(shape).items():
            self._column(key)[row] += sign * amount
            self._note_carriers(key, sign)
            stirred.add(key.selector)
        self._stir(stirred)

    def _stir(self, selectors: set[int]) -> None:
        self._stirred |= selectors
        self.log.note_all(selectors)

    def _column(self, key: Key) -> Ints:
        found = self.columns.get(key)
        if found is None:
            found = self.columns[key] = np.zeros(self._rows, np.int64)
        return found

    def _note_carriers(self, key: Key, count: int) -> None:
        """Drop the column of a term that no pod on a node carries any more."""
        if key.column in (Column.PODS, Column.STAYING):
            return
        self._carriers[key] += count
        if self._carriers[key]:
            self._terms.setdefault(key.selector, set()).add(key)
            return
        del self._carriers[key], self.columns[key]
        self._terms[key.selector].discard(key)
        if not self._terms[key.selector]:
            del self._terms[key.selector]

    def _terms_of(self, shape: PodShape) -> dict[Key, int]:
        if not (shape.affinity or shape.anti_affinity or shape.preferred_affinity):
            return {}
        effects: Counter[Key] = Counter()
        number = self.selector_id
        for term in shape.anti_affinity:
            effects[Key(Column.REPELLING, number(term.selector), term.topology_key)] += 1
        for term in shape.affinity:
            effects[Key(Column.ATTRACTED, number(term.selector), term.topology_key)] += 1
        for one in shape.preferred_affinity:
            key = Key(Column.PULL, number(one.term.selector), one.term.topology_key)
            effects[key] += one.weight
        return dict(effects)


def uses_selectors(shape: PodShape) -> bool:
    """Whether pods of this shape look at other pods' labels."""
    return bool(shape.affinity or shape.anti_affinity or shape.preferred_affinity or shape.spread)


def _selectors_of(shape: PodShape) -> list[PodSelector]:
    terms = [*shape.affinity, *shape.anti_affinity, *(o.term for o in shape.preferred_affinity)]
    together = [all_of(shape.affinity)] if len(shape.affinity) > 1 else []
    return [
        *(term.selector for term in terms),
        *(constraint.selector for constraint in shape.spread),
        *together,
    ]


def _by_namespace_labels(selector: PodSelector) -> bool:
    return selector.namespace_selector is not None or any(map(_by_namespace_labels, selector.also))


def _add(counter: Counter[int], row: int, count: int) -> None:
    counter[row] += count
    if not counter[row]:
        del counter[row]
