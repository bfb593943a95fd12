"""Where pods are by plain values: what plans are checked against. Updated by change.

Owned by ``state.cluster``, which tells it of every pod that comes to a node or leaves it; read by
``plan.verify_neighbours``. Shares nothing with ``state.neighbours``, whose arrays plans are made
from: nodes are names, domains are values of labels, and selectors are matched here once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from quorate.core.model import Node, PodSelector, PodTerm, SpreadConstraint
from quorate.core.state.gangs import PodEntry
from quorate.core.state.neighbours import LabelSet
from quorate.core.state.nodes import NodeTable

_BOOKS_MAX = 1000


class Book:
    """Pods that a selector means, by domain: by the value of a node's label."""

    def __init__(self, selector: PodSelector, topology_key: str) -> None:
        self.selector = selector
        self.topology_key = topology_key
        self.pods: Counter[str] = Counter()

    def count(self, node: Node, labels: Mapping[str, str], pods: int, leaving: int) -> None:
        """Count pods on a node (negative: fewer), and of these, how many are terminating."""
        del node, leaving  # all of them count
        domain = labels.get(self.topology_key)
        if domain is not None:
            self.pods[domain] += pods


class SpreadBook(Book):
    """What one hard constraint counts: pods by domain, and how many domains hold how many.

    Terminating pods do not count, nor pods on nodes that are not ``counted`` (names); an empty
    selector counts nothing.
    """

    def __init__(
        self, one: SpreadConstraint, counted: frozenset[str], domains: Iterable[str]
    ) -> None:
        super().__init__(one.selector, one.topology_key)
        self._one = one
        self._counted = counted
        self.pods.update(dict.fromkeys(domains, 0))
        self._levels: Counter[int] = Counter({0: len(self.pods)})
        self._lowest = 0
        labels = one.selector.labels
        self._means_pods = bool(labels and labels.requirements)

    def count(self, node: Node, labels: Mapping[str, str], pods: int, leaving: int) -> None:
        """Count pods on a node; see ``Book.count``."""
        change = pods - leaving
        if not change or not self._means_pods or node.name not in self._counted:
            return
        domain = labels[self.topology_key]
        self._levels[self.pods[domain]] -= 1
        self.pods[domain] += change
        level = self.pods[domain]
        self._levels[level] += 1
        self._lowest = min(self._lowest, level)
        while not self._levels[self._lowest]:
            self._lowest += 1

    def is_skewed(self, domain: str | None, *, itself: bool) -> bool:
        """Whether one more pod in the domain would be too many."""
        if domain is None:
            return True
        if not self.pods:
            return False
        lowest = self._lowest if len(self.pods) >= self._one.min_domains else 0
        return self.pods[domain] + itself - lowest > self._one.max_skew


class _Group:
    """Pods that are the same to all books, by the name of their node; and these books."""

    __slots__ = ("books", "leaving", "pods")

    def __init__(self) -> None:
        self.pods: Counter[str] = Counter()
        self.leaving: Counter[str] = Counter()
        """Those of ``pods`` that are terminating."""
        self.books: list[Book] = []


class Ledger:
    """Pods on nodes, by labels and by the anti-affinity terms that they carry.

    Books are made when somebody asks, and kept by change until nodes or namespaces are other ones.
    """

    def __init__(self, nodes: NodeTable, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._nodes = nodes
        self._namespaces = namespaces
        self._alike: dict[LabelSet, _Group] = {}
        self._carriers: dict[PodTerm, _Group] = {}
        self.carriers_version = 0
        """Differs whenever pods on nodes carry other terms."""
        self._books: dict[object, Book] = {}
        self._made_for = -1
        """The version of the nodes' attributes that books are good for."""
        self._labels: dict[str, tuple[Node, Mapping[str, str]]] = {}
        """Nodes that were asked for, with their labels, by name."""

    def count(self, entry: PodEntry, sign: int) -> None:
        """Count a pod on its node, or (-1) no more."""
        label_set = entry.label_set
        group = self._alike.get(label_set)
        if group is None:
            group = self._alike[label_set] = _Group()
            books = self._books.values()
            group.books = [one for one in books if self.selects(one.selector, label_set)]
        if self._count(group, entry, sign):
            del self._alike[label_set]
        if not entry.pod.shape.anti_affinity:
            return
        for term in dict.fromkeys(entry.pod.shape.anti_affinity):
            group = self._carriers.get(term)
            if group is None:
                group = self._carriers[term] = _Group()
                self.carriers_version += 1
            if self._count(group, entry, sign):
                del self._carriers[term]
                self.carriers_version += 1

    def _count(self, group: _Group, entry: PodEntry, sign: int) -> bool:
        """Count a pod in a group and its books; return whether nobody is left in the group."""
        name, leaving = entry.node, 0
        if entry.pod.terminating:
            leaving = sign
            group.leaving[name] += sign
        for book in group.books:
            self._enter(book, name, sign, leaving)
        left = group.pods.get(name, 0) + sign
        if left:
            group.pods[name] = left
            return False
        del group.pods[name]
        group.leaving.pop(name, None)
        return not group.pods

    def _enter(self, book: Book, name: str, pods: int, leaving: int) -> None:
        known = self._node(name)
        if known is not None and self._made_for == self._nodes.attributes_version:
            book.count(*known, pods, leaving)

    def _node(self, name: str) -> tuple[Node, Mapping[str, str]] | None:
        known = self._labels.get(name)
        if known is None:
            row = self._nodes.rows.get(name)
            node = self._nodes.nodes[row] if row is not None else None
            if node is None:
                return None
            known = self._labels[name] = node, dict(node.labels)
        return known

    # Questions

    def refresh(self) -> None:
        """Forget the books if nodes have other labels or taints, or other nodes are there."""
        version = self._nodes.attributes_version
        if version != self._made_for or len(self._books) > _BOOKS_MAX:
            self._made_for = version
            self.forget()

    def forget(self) -> None:
        """Forget the books: selectors may mean other pods now."""
        self.carriers_version += 1
        self._books.clear()
        self._labels.clear()
        for group in (*self._alike.values(), *self._carriers.values()):
            group.books = []

    @property
    def is_idle(self) -> bool:
        """Whether no pod on a node keeps others away."""
        return not self._carriers

    def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a node that exists."""
        known = self._node(name)
        assert known is not None, f"node {name} does not exist"
        return known[1]

    def selects(self, selector: PodSelector, label_set: LabelSet) -> bool:
        """Whether the selector means pods with these labels in this namespace."""
        if label_set.namespace not in selector.namespaces:
            wanted = selector.namespace_selector
            labels = self._namespaces.get(label_set.namespace, {})
            if wanted is None or not wanted.matches(labels):
                return False
        if selector.labels is None or not selector.labels.matches(dict(label_set.labels)):
            return False
        return all(self.selects(other, label_set) for other in selector.also)

    def near(self, selector: PodSelector, topology_key: str) -> Book:
        """Return how many pods that the selector means are in each domain."""
        found = self._books.get((selector, topology_key))
        return found or self._open((selector, topology_key), Book(selector, topology_key))

    def spread(
        self, key: object, one: SpreadConstraint, counts: Callable[[Node], bool]
    ) -> SpreadBook:
        """Return what a constraint counts; ``key`` says by what ``counts`` looks at nodes."""
        found = self._books.get((one, key))
        if found is None:
            nodes = [node for node in self._nodes.nodes if node is not None and counts(node)]
            domains = {self.labels(node.name)[one.topology_key] for node in nodes}
            counted = frozenset(node.name for node in nodes)
            found = self._open((one, key), SpreadBook(one, counted, domains))
        assert isinstance(found, SpreadBook)
        return found

    def repelling(self, label_set: LabelSet) -> list[Book]:
        """Return for each term of pods on nodes that means such a pod where its carriers are."""
        found = []
        for term, group in self._carriers.items():
            if self.selects(term.selector, label_set):
                if not group.books:
                    self._fill(Book(term.selector, term.topology_key), group)
                found.append(group.books[0])
        return found

    def _open(self, key: object, book: Book) -> Book:
        self._books[key] = book
        for label_set, group in self._alike.items():
            if self.selects(book.selector, label_set):
                self._fill(book, group)
        return book

    def _fill(self, book: Book, group: _Group) -> None:
        group.books.append(book)
        for name, pods in group.pods.items():
            self._enter(book, name, pods, group.leaving[name])

    @contextmanager
    def without(self, entries: Iterable[PodEntry]) -> Iterator[dict[str, PodEntry]]:
        """Leave these pods out. Yields those that are, by uid: they are counted again at the end.

        Who counts one of them before takes it out of what was yielded.
        """
        aside = {entry.pod.uid: entry for entry in entries}
        for entry in aside.values():
            self.count(entry, -1)
        try:
            yield aside
        finally:
            for entry in aside.values():
                self.count(entry, 1)
