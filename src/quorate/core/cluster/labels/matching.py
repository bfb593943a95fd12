"""Which selectors in use match which label sets, updated by change.

Owned by ``cluster.labels.neighbours``. A new label set is compared only with candidate selectors,
and a new selector only with candidate label sets; indexes find the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quorate.core.cluster.labels.label_sets import LabelSet, LabelSets
from quorate.core.cluster.labels.selector_index import SelectorIndex
from quorate.core.model import LabelSelector, PodSelector

_Labels = tuple[tuple[str, str], ...]


class _Requirements:
    """A label selector whose values are looked up in sets, however many it lists."""

    __slots__ = ("_tests",)

    def __init__(self, selector: LabelSelector) -> None:
        self._tests: list[tuple[str, frozenset[str | None], bool]] = []
        """Key, values, and whether the label's value must be one of them; None: no such label."""
        for one in selector.requirements:
            has_values = one.operator in ("In", "NotIn")
            values = frozenset(one.values) if has_values else frozenset({None})
            self._tests.append((one.key, values, one.operator not in ("NotIn", "Exists")))

    def acquire(self, labels: Mapping[str, str]) -> bool:
        return all((labels.get(key) in values) is wanted for key, values, wanted in self._tests)


class Selector:
    """A selector in use, with its number and its number of users."""

    __slots__ = ("_also", "_labels", "_names", "_of", "id", "looks_at_namespaces", "users")

    def __init__(self, selector_id: int, selector: PodSelector) -> None:
        self.id = selector_id
        self.users = 0
        self._names = frozenset(selector.namespaces)
        named = selector.namespace_selector
        self._of = None if named is None else _Requirements(named)
        self._labels = None if selector.labels is None else _Requirements(selector.labels)
        self._also = tuple(Selector(selector_id, one) for one in selector.also)
        self.looks_at_namespaces: bool = named is not None or any(
            one.looks_at_namespaces for one in self._also
        )
        """Whether it reads labels of namespaces."""

    def matches(self, label_set: LabelSet, namespace: Mapping[str, str]) -> bool:
        """Whether it matches a label set; ``namespace`` are the labels of the set's namespace."""
        if self._labels is None:
            return False
        is_there = label_set.namespace in self._names
        if not is_there and (self._of is None or not self._of.acquire(namespace)):
            return False
        if not self._labels.acquire(label_set.by_key):
            return False
        return all(one.matches(label_set, namespace) for one in self._also)


class Matching:
    """The selectors in use and the label sets of pods, each with the selectors that match it."""

    def __init__(self) -> None:
        self.label_sets = LabelSets()
        self.namespaces: dict[str, Mapping[str, str]] = {}
        """Labels of namespaces."""
        self.in_use: dict[PodSelector, Selector] = {}
        self._by_id: dict[int, Selector] = {}
        self._index: SelectorIndex[int] = SelectorIndex()
        self._by_namespace: set[int] = set()
        """The selectors that read labels of namespaces."""
        self._made = 0

    def acquire(self, namespace: str, labels: _Labels) -> LabelSet:
        """Add a pod; return its label set."""
        label_set, is_new = self.label_sets.acquire(namespace, labels)
        if is_new and self.in_use:
            for number in self._matching(label_set):
                label_set.match(number, is_in=True)
        return label_set

    def use(self, selector: PodSelector) -> tuple[int, list[LabelSet]]:
        """Count one more user; return the selector's number, and the matches of a new selector."""
        used = self.in_use.get(selector)
        matched = []
        if used is None:
            used = self.in_use[selector] = Selector(self._made, selector)
            self._by_id[used.id] = used
            self._made += 1
            self._index.add(selector, used.id)
            if used.looks_at_namespaces:
                self._by_namespace.add(used.id)
            for label_set in self.label_sets.candidates(selector):
                if used.matches(label_set, self._labels_of(label_set.namespace)):
                    label_set.match(used.id, is_in=True)
                    matched.append(label_set)
        used.users += 1
        return used.id, matched

    def disuse(self, selector: PodSelector) -> int | None:
        """Count one user fewer; return the selector's number if that was the last, else None."""
        used = self.in_use[selector]
        used.users -= 1
        if used.users:
            return None
        for label_set in self.label_sets.candidates(selector):
            if label_set.is_matched(used.id):
                label_set.match(used.id, is_in=False)
        self._index.remove(used.id)
        self._by_namespace.discard(used.id)
        del self.in_use[selector], self._by_id[used.id]
        return used.id

    def relabel(self, namespace: str, labels: Mapping[str, str]) -> Iterator[tuple[LabelSet, int]]:
        """Set a namespace's labels; yield each label set and selector whose match changed."""
        if labels:
            self.namespaces[namespace] = labels
        else:
            self.namespaces.pop(namespace, None)
        concerned = self._by_namespace
        if not concerned:
            return
        for label_set in self.label_sets.of(namespace):
            now = {number for number in self._matching(label_set) if number in concerned}
            for number in (label_set.matched & concerned) ^ now:
                label_set.match(number, is_in=number in now)
                yield label_set, number

    def _matching(self, label_set: LabelSet) -> Iterator[int]:
        namespace = self._labels_of(label_set.namespace)
        for number in self._index.candidates(label_set):
            if self._by_id[number].matches(label_set, namespace):
                yield number

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        return self.namespaces.get(namespace, {})
