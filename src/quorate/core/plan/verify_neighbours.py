"""Check again that pods obey the rules that look at other pods. Called by ``verify``.

Plain values and counters, sharing nothing with the filters. The binds are assumed already, and they
are sent in any order, but kube-scheduler's rules are about the moment of placing: so the pods of a
plan are set aside, and put back one after the other, each when the rules accept it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from quorate.core.model import (
    Node,
    Pod,
    PodSelector,
    PodShape,
    PodTerm,
    SpreadConstraint,
    all_of,
)


class Placed(NamedTuple):
    """A pod of the plan, and its node.

    ``spread`` are its hard constraints, its own or its profile's; ``is_free`` says that its profile
    has no rule about the pods beside it.
    """

    pod: Pod
    node: Node
    spread: tuple[SpreadConstraint, ...]
    is_free: bool = False


Counts = Callable[[PodShape, Node, SpreadConstraint], bool]
"""Whether a spread constraint of a pod counts a node: as its inclusion policies say."""
_ORDERS_MAX = 2000
_SEARCHED_PODS_MAX = 200
"""Plans of more pods are not searched for either: they keep to the order of shapes."""
_Who = tuple[str, tuple[tuple[str, str], ...]]


def neighbour_problems(
    placed: list[Placed],
    others: Iterable[tuple[Pod, Node]],
    nodes: list[Node],
    namespaces: Mapping[str, Mapping[str, str]],
    counts: Counts,
) -> list[str]:
    """Return a sentence for each pod that no rule lets in, whatever was placed before it.

    ``others`` are the pods that were on nodes before. Costs one look at each, and then some
    look-ups for each pod and term.
    """
    world = _World(placed, nodes, namespaces, counts)
    for pod, node in others:
        world.add(pod, node)
    waiting = world.in_order(placed)
    while waiting:
        refused = []
        for one in waiting:
            if world.problem(one):
                refused.append(one)
            else:
                world.add(one.pod, one.node)
        if len(refused) == len(waiting):
            break
        waiting = refused
    problems = [f"pod {one.pod.name} {world.problem(one)}" for one in waiting]
    if not problems or len(placed) > _SEARCHED_PODS_MAX:
        return problems
    done = {one.pod.uid for one in waiting}
    for one in placed:
        if one.pod.uid not in done:
            world.add(one.pod, one.node, -1)
    return problems if _Orders(placed, world).none_is_right() else []


class _Orders:
    """Try orders of placing pods, up to a bound; pods that are alike are one choice."""

    def __init__(self, placed: list[Placed], world: _World) -> None:
        self._world = world
        groups: dict[object, list[Placed]] = {}
        for one in placed:
            pod = one.pod
            alike = pod.shape, pod.namespace, pod.labels, one.node.name, one.spread
            groups.setdefault(alike, []).append(one)
        self._groups = list(groups.values())
        self._seen: set[tuple[int, ...]] = set()

    def none_is_right(self) -> bool:
        """Whether each order fails. An order that was not tried may be right."""
        is_found = self._go([len(alike) for alike in self._groups])
        return not is_found and len(self._seen) < _ORDERS_MAX

    def _go(self, left: list[int]) -> bool:
        if not any(left):
            return True
        if tuple(left) in self._seen or len(self._seen) >= _ORDERS_MAX:
            return False
        self._seen.add(tuple(left))
        for number, alike in enumerate(self._groups):
            first = alike[0]
            if not left[number] or self._world.problem(first):
                continue
            self._world.add(first.pod, first.node)
            left[number] -= 1
            if self._go(left):
                return True
            left[number] += 1
            self._world.add(first.pod, first.node, -1)
        return False


class _World:
    """Pods that have been put on nodes, counted for each term that matters to the placed ones."""

    def __init__(
        self,
        ours: list[Placed],
        nodes: list[Node],
        namespaces: Mapping[str, Mapping[str, str]],
        counts: Counts,
    ) -> None:
        self._namespaces = namespaces
        self._nodes = {node.name: dict(node.labels) for node in nodes}
        self._who = {(one.pod.namespace, one.pod.labels) for one in ours}
        shapes = {one.pod.shape for one in ours}
        self._near: dict[tuple[PodSelector, str], Counter[str]] = {}
        for shape in shapes:
            whole = [PodTerm(all_of(shape.affinity), one.topology_key) for one in shape.affinity]
            for term in (*whole, *shape.anti_affinity):
                self._near[term.selector, term.topology_key] = Counter()
        self._repelling: dict[PodTerm, Counter[str]] = {}
        self._spread = {
            (placed.pod.shape, one): _Spread(placed, one, nodes, counts)
            for placed in {(one.pod.shape, one.spread): one for one in ours}.values()
            for one in placed.spread
        }
        self.selects = cache(self._selects)

    def _selects(self, selector: PodSelector, who: _Who) -> bool:
        namespace, labels = who
        if selector.labels is None or not selector.labels.matches(dict(labels)):
            return False
        if namespace not in selector.namespaces:
            wanted = selector.namespace_selector
            if wanted is None or not wanted.matches(self._namespaces.get(namespace, {})):
                return False
        return all(self.selects(other, who) for other in selector.also)

    def add(self, pod: Pod, node: Node, sign: int = 1) -> None:
        """Count a pod on a node, or no more (-1)."""
        who, labels = (pod.namespace, pod.labels), self._nodes[node.name]
        for (selector, key), domains in self._near.items():
            if key in labels and self.selects(selector, who):
                domains[labels[key]] += sign
        for term in pod.shape.anti_affinity:
            key = term.topology_key
            if key in labels and any(self.selects(term.selector, one) for one in self._who):
                self._repelling.setdefault(term, Counter())[labels[key]] += sign
        if not pod.terminating:
            for (_, one), spread in self._spread.items():
                if spread.counts(node.name) and self._is_counted(one, who):
                    spread.add(labels[one.topology_key], sign)

    def _is_counted(self, one: SpreadConstraint, who: _Who) -> bool:
        labels = one.selector.labels
        return bool(labels and labels.requirements) and self.selects(one.selector, who)

    def problem(self, one: Placed) -> str:
        """Say why one more such pod is not accepted on the node; nothing if it is."""
        beside = "" if one.is_free else self._beside(one.pod, one.node)
        return beside or self._spread_problem(one)

    def _spread_problem(self, placed: Placed) -> str:
        pod, node = placed.pod, placed.node
        who, labels = (pod.namespace, pod.labels), self._nodes[node.name]
        for one in placed.spread:
            if self._spread[pod.shape, one].is_skewed(
                labels.get(one.topology_key), itself=self.selects(one.selector, who)
            ):
                return f"would not be spread over {one.topology_key}, on node {node.name}"
        return ""

    def _beside(self, pod: Pod, node: Node) -> str:
        who, labels = (pod.namespace, pod.labels), self._nodes[node.name]
        for term in pod.shape.anti_affinity:
            here = labels.get(term.topology_key)
            if here is not None and self._near[term.selector, term.topology_key][here]:
                return f"would be beside a pod that it keeps away from, on node {node.name}"
        for term, domains in self._repelling.items():
            here = labels.get(term.topology_key)
            if here is not None and domains[here] and self.selects(term.selector, who):
                return f"would be beside a pod that keeps it away, on node {node.name}"
        if pod.shape.affinity and not self._is_near(pod.shape, who, labels):
            return f"would not be beside the pods that it belongs to, on node {node.name}"
        return ""

    def _is_near(self, shape: PodShape, who: _Who, labels: dict[str, str]) -> bool:
        whole = all_of(shape.affinity)
        keys = [term.topology_key for term in shape.affinity]
        if any(key not in labels for key in keys):
            return False
        if all(self._near[whole, key][labels[key]] for key in keys):
            return True
        return self.selects(whole, who) and not any(self._near[whole, key].total() for key in keys)

    def in_order(self, placed: list[Placed]) -> list[Placed]:
        """Keep shapes in order, and of each let pods fill their domains level by level."""
        shapes = {s: n for n, s in enumerate(dict.fromkeys(p.pod.shape for p in placed))}
        constraints = list(dict.fromkeys(one for _, one in self._spread))
        for one in constraints:
            ordinal: Counter[str] = Counter()
            levels: dict[str, int] = {}
            for pod, node, *_ in placed:
                domain = self._nodes[node.name].get(one.topology_key, "")
                ordinal[domain] += 1
                before = max(
                    (s.pods[domain] for (_, o), s in self._spread.items() if o == one), default=0
                )
                levels[pod.uid] = before + ordinal[domain]
            placed = sorted(placed, key=lambda item: levels[item.pod.uid])
        return sorted(placed, key=lambda item: shapes[item.pod.shape])


class _Spread:
    """One hard constraint of one shape: pods by domain, and how many domains hold how many."""

    def __init__(
        self, placed: Placed, one: SpreadConstraint, nodes: list[Node], counts: Counts
    ) -> None:
        self._one = one
        keys = {other.topology_key for other in placed.spread}
        self._counted = {
            node.name
            for node in nodes
            if keys <= {key for key, _ in node.labels} and counts(placed.pod.shape, node, one)
        }
        domains = {
            dict(node.labels)[one.topology_key] for node in nodes if node.name in self._counted
        }
        self.pods: Counter[str] = Counter(dict.fromkeys(domains, 0))
        self._levels: Counter[int] = Counter({0: len(domains)})
        self._lowest = 0

    def counts(self, node: str) -> bool:
        """Whether pods on the node count."""
        return node in self._counted

    def add(self, domain: str, sign: int) -> None:
        """Count one pod, or one less (-1)."""
        self._levels[self.pods[domain]] -= 1
        self.pods[domain] += sign
        self._levels[self.pods[domain]] += 1
        self._lowest = min(self._lowest, self.pods[domain])
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
