"""Counts of pods by node name and domain, against which plans are verified. Updated by change.

In: every pod that comes to a node or leaves it, from ``cluster.cluster``, which owns the ledger.
Out: books, the counts for one selector or constraint; read by ``check.verify_neighbours``. The
ledger shares no count with ``cluster.labels.neighbours``, from whose arrays plans are made: here
nodes are names, domains are label values, and selectors are matched independently. Only the indexes
that find candidate pairs of labels and selectors are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.labels.label_sets import LabelSet, LabelSets
from quorate.core.cluster.labels.ledger_pages import Book, PodMatcher, Scope, SpreadBook
from quorate.core.cluster.labels.selector_index import SelectorIndex
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.model import Node, PodSelector, PodTerm, SpreadConstraint, policy


class _Group:
    """Pods that every book treats alike, by the name of their node; and the books they are in."""

    __slots__ = ("books", "leaving", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, int] = {}
        self.leaving: dict[str, int] = {}
        """The terminating pods among ``pods``."""
        self.books: list[Book] = []
        """Open books, and closed ones that are not removed yet."""

    def open_books(self) -> list[Book]:
        """Return the open books, and forget the closed ones."""
        if self.books and not all(book.is_open for book in self.books):
            self.books = [book for book in self.books if book.is_open]
        return self.books


class _Carriers(_Group):
    """Pods with the same anti-affinity term; ``books`` has at most one open book."""

    __slots__ = ("_matcher", "term")

    def __init__(self, term: PodTerm) -> None:
        super().__init__()
        self.term = term
        self._matcher: PodMatcher | None = None

    @property
    def matcher(self) -> PodMatcher:
        """Which pods the term selects; computed at the first use."""
        if self._matcher is None:
            self._matcher = PodMatcher(self.term.selector)
        return self._matcher


class Ledger:
    """Pods on nodes, by labels and by the anti-affinity terms that they carry.

    A book is opened by the first query for it and then updated by each change. It is closed when
    attributes of nodes or labels of namespaces change, or when too many newer books are open.
    """

    def __init__(
        self,
        nodes: NodeTable,
        namespaces: Mapping[str, Mapping[str, str]],
        label_sets: LabelSets,
    ) -> None:
        self._nodes = nodes
        self._namespaces = namespaces
        self._label_sets = label_sets
        self._alike: dict[LabelSet, _Group] = {}
        self._carriers: dict[PodTerm, _Carriers] = {}
        self._repelling: SelectorIndex[_Carriers] = SelectorIndex()
        self.carriers_version = 0
        """Grows whenever the set of terms that pods on nodes carry may have changed."""
        self._books: dict[object, Book] = {}
        """In order of their last use, the oldest first."""
        self._index: SelectorIndex[Book] = SelectorIndex()
        self._scopes: LruCache[object, Scope] = LruCache()
        self._made_for = -1
        """The version of the nodes' attributes with which the open books were made."""
        self._labels: dict[str, tuple[Node, Mapping[str, str]]] = {}
        """A cache by name of nodes and their labels."""

    def count_alike(self, label_set: LabelSet, entries: Sequence[PodEntry]) -> None:
        """Count pods with one label set and one spec on their nodes; none is terminating."""
        if entries[0].pod.spec.anti_affinity:
            for entry in entries:
                self.count(entry, 1)
            return
        group = self._group(label_set)
        books, pods = group.open_books(), group.pods
        for entry in entries:
            name = entry.node
            pods[name] = pods.get(name, 0) + 1
            for book in books:
                self._enter(book, name, 1, 0)

    def count(self, entry: PodEntry, sign: int) -> None:
        """Count a pod on its node; ``sign`` is 1 to add it and -1 to remove it."""
        label_set = entry.label_set
        if self._count(self._group(label_set), entry, sign):
            del self._alike[label_set]
        if not entry.pod.spec.anti_affinity:
            return
        for term in dict.fromkeys(entry.pod.spec.anti_affinity):
            carriers = self._carriers.get(term)
            if carriers is None:
                carriers = self._carriers[term] = _Carriers(term)
                self._repelling.add(term.selector, carriers)
                self.carriers_version += 1
            if self._count(carriers, entry, sign):
                del self._carriers[term]
                self._repelling.remove(carriers)
                self.carriers_version += 1

    def _group(self, label_set: LabelSet) -> _Group:
        group = self._alike.get(label_set)
        if group is None:
            group = self._alike[label_set] = _Group()
            for book in self._index.candidates(label_set):
                if book.matcher.matches(label_set, self._namespaces):
                    group.books.append(book)
        return group

    def _count(self, group: _Group, entry: PodEntry, sign: int) -> bool:
        """Count a pod in a group and its books; return whether the group is now empty."""
        name, leaving = entry.node, 0
        if entry.pod.terminating:
            leaving = sign
            group.leaving[name] = group.leaving.get(name, 0) + sign
        for book in group.open_books():
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

    # Queries

    def refresh(self) -> None:
        """Close all books if the nodes, or their labels or taints, have changed.

        Otherwise close the least recently used books until the rest is within the bounds.
        """
        version = self._nodes.attributes_version
        if version != self._made_for:
            self._made_for = version
            self.forget()
            return
        too_many = len(self._books) - policy.LEDGER_BOOKS_MAX
        cells = sum(len(book.pods) for book in self._books.values())
        for key, book in list(self._books.items()):
            if too_many <= 0 and cells <= policy.LEDGER_CELLS_MAX:
                break
            cells -= len(book.pods)
            too_many -= 1
            self._index.remove(book)
            book.close()
            del self._books[key]

    def forget(self) -> None:
        """Close all books: selectors may select other pods now."""
        self.carriers_version += 1
        for book in self._books.values():
            book.close()
        for carriers in self._carriers.values():
            for book in carriers.books:
                book.close()
            carriers.books = []
        self._books.clear()
        self._index.clear()
        self._labels.clear()
        self._scopes = LruCache()

    @property
    def is_idle(self) -> bool:
        """Whether no pod on a node carries required anti-affinity."""
        return not self._carriers

    def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a node; AssertionError if it does not exist."""
        known = self._node(name)
        assert known is not None, f"node {name} does not exist"
        return known[1]

    def selects(self, selector: PodSelector, label_set: LabelSet) -> bool:
        """Whether the selector selects pods with this label set: labels and namespace."""
        return PodMatcher(selector).matches(label_set, self._namespaces)

    def near(self, selector: PodSelector, topology_key: str) -> Book:
        """Return the book of a selector's pods by domain of the topology."""
        key = selector, topology_key
        return self._kept(key) or self._open(key, Book(selector, topology_key))

    def spread(
        self, key: object, one: SpreadConstraint, counts: Callable[[Node], bool]
    ) -> SpreadBook:
        """Return the book of a spread constraint over the nodes for which ``counts`` is true.

        ``key`` stands for ``counts``: equal keys have to mean equal answers for each node.
        """
        found = self._kept((one, key))
        if found is None:
            scope = self._scope(key, one.topology_key, counts)
            found = self._open((one, key), SpreadBook(one, scope))
        assert isinstance(found, SpreadBook)
        return found

    def _scope(self, key: object, topology_key: str, counts: Callable[[Node], bool]) -> Scope:
        found = self._scopes.get((key, topology_key))
        if found is None:
            nodes = [node for node in self._nodes.nodes if node is not None and counts(node)]
            found = Scope(
                frozenset(node.name for node in nodes),
                frozenset(self.labels(node.name)[topology_key] for node in nodes),
            )
            size = len(found.nodes) + len(found.domains)
            self._scopes.put((key, topology_key), found, policy.LEDGER_CELLS_MAX, size)
        return found

    def repelling(self, label_set: LabelSet) -> list[Book]:
        """Return the books of the anti-affinity terms that select pods with this label set.

        Only terms that pods on nodes carry count; each book says where a term's carriers are.
        """
        found = []
        for carriers in self._repelling.candidates(label_set):
            if carriers.matcher.matches(label_set, self._namespaces):
                if not carriers.open_books():
                    term = carriers.term
                    self._fill(Book(term.selector, term.topology_key), carriers)
                found.append(carriers.books[0])
        return found

    def _kept(self, key: object) -> Book | None:
        found = self._books.pop(key, None)
        if found is not None:
            self._books[key] = found
        return found

    def _open(self, key: object, book: Book) -> Book:
        self._books[key] = book
        self._index.add(book.selector, book)
        for label_set in self._label_sets.candidates(book.selector):
            group = self._alike.get(label_set)
            if group is not None and book.matcher.matches(label_set, self._namespaces):
                self._fill(book, group)
        return book

    def _fill(self, book: Book, group: _Group) -> None:
        group.open_books().append(book)
        for name, pods in group.pods.items():
            self._enter(book, name, pods, group.leaving.get(name, 0))

    @contextmanager
    def without(self, entries: Iterable[PodEntry]) -> Iterator[dict[str, PodEntry]]:
        """Leave pods out of all counts; yield them by uid, and count them again at the end.

        A caller that counts one of them earlier has to remove it from the mapping.
        """
        aside = {entry.pod.uid: entry for entry in entries}
        for entry in aside.values():
            self.count(entry, -1)
        try:
            yield aside
        finally:
            for entry in aside.values():
                self.count(entry, 1)
