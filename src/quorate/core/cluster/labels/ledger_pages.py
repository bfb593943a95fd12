"""The books of ``cluster.labels.ledger``: counts of pods by domain, for rules about other pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from quorate.core.cluster.labels.label_sets import LabelSet
from quorate.core.model import LabelSelector, Node, PodSelector, SpreadConstraint

_Namespaces = Mapping[str, Mapping[str, str]]


class _Labels:
    """A label selector with the semantics of metav1.LabelSelector; values are looked up in sets."""

    def __init__(self, selector: LabelSelector) -> None:
        self._wanted = [
            (one.key, one.operator, frozenset(one.values)) for one in selector.requirements
        ]

    def match(self, labels: Mapping[str, str]) -> bool:
        for key, operator, values in self._wanted:
            has_key = key in labels
            if operator == "In":
                holds = has_key and labels[key] in values
            elif operator == "NotIn":
                holds = not has_key or labels[key] not in values
            else:
                holds = has_key is (operator == "Exists")
            if not holds:
                return False
        return True


class PodMatcher:
    """Decides which pods a selector selects."""

    def __init__(self, selector: PodSelector) -> None:
        named = selector.namespace_selector
        self._names = frozenset(selector.namespaces)
        self._named = None if named is None else _Labels(named)
        self._labels = None if selector.labels is None else _Labels(selector.labels)
        self._also = [PodMatcher(other) for other in selector.also]

    def matches(self, label_set: LabelSet, namespaces: _Namespaces) -> bool:
        """Whether it selects pods with a label set; ``namespaces`` has all namespaces' labels."""
        if label_set.namespace not in self._names:
            labels = namespaces.get(label_set.namespace, {})
            if self._named is None or not self._named.match(labels):
                return False
        if self._labels is None or not self._labels.match(label_set.by_key):
            return False
        return all(other.matches(label_set, namespaces) for other in self._also)


class Book:
    """The number of pods that a selector selects, by domain: the value of a node label."""

    def __init__(self, selector: PodSelector, topology_key: str) -> None:
        self.selector = selector
        self.matcher = PodMatcher(selector)
        self.topology_key = topology_key
        self.pods: Counter[str] = Counter()
        self.is_open = True

    def count(self, node: Node, labels: Mapping[str, str], pods: int, leaving: int) -> None:
        """Add ``pods`` on a node (negative: fewer), of which ``leaving`` are terminating."""
        del node, leaving  # terminating pods count as well, on every node
        domain = labels.get(self.topology_key)
        if domain is not None:
            self._add(domain, pods)

    def close(self) -> None:
        """Close the book and drop its counts: it is no longer updated."""
        self.is_open = False
        self.pods = Counter()

    def _add(self, domain: str, pods: int) -> None:
        left = self.pods[domain] + pods
        if left:
            self.pods[domain] = left
        else:
            del self.pods[domain]


class Scope(NamedTuple):
    """Names of the nodes that a constraint counts, and the domains of these nodes."""

    nodes: frozenset[str]
    domains: frozenset[str]


class SpreadBook(Book):
    """The counts of one hard constraint: pods by domain, and domains by number of pods.

    Terminating pods and pods on nodes outside its scope do not count; an empty selector counts
    nothing.
    """

    def __init__(self, one: SpreadConstraint, scope: Scope) -> None:
        super().__init__(one.selector, one.topology_key)
        self._one = one
        self._scope = scope
        self._levels: Counter[int] = Counter({0: len(scope.domains)})
        self._lowest = 0
        labels = one.selector.labels
        self._means_pods = bool(labels and labels.requirements)

    def count(self, node: Node, labels: Mapping[str, str], pods: int, leaving: int) -> None:
        """Count pods on a node; see ``Book.count``."""
        change = pods - leaving
        if not change or not self._means_pods or node.name not in self._scope.nodes:
            return
        domain = labels[self.topology_key]
        before = self.pods[domain]
        self._levels[before] -= 1
        if not self._levels[before]:
            del self._levels[before]
        self._add(domain, change)
        level = self.pods[domain]
        self._levels[level] += 1
        self._lowest = min(self._lowest, level)
        while not self._levels[self._lowest]:
            self._lowest += 1

    def is_skewed(self, domain: str | None, *, itself: bool) -> bool:
        """Whether one more pod in the domain exceeds maxSkew; True for a node without the label.

        ``itself`` says whether the constraint's selector selects that pod.
        """
        if domain is None:
            return True
        domains = len(self._scope.domains)
        if not domains:
            return False
        lowest = self._lowest if domains >= self._one.min_domains else 0
        return self.pods[domain] + itself - lowest > self._one.max_skew
