"""Check again that pods obey the rules about other pods. Called by ``verify``.

In: placed pods and the ledger. Out: messages. It reads plain values and counters
(``cluster.labels.ledger``) and shares no code with the filters. The binds are assumed already and
are sent in any order, but kube-scheduler's rules hold at the moment of placing. So the pods of a
plan are removed, and put back one by one, each when the rules accept it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice
from typing import NamedTuple

from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.labels.label_sets import LabelSet
from quorate.core.cluster.labels.ledger import Ledger
from quorate.core.cluster.labels.ledger_pages import Book, SpreadBook
from quorate.core.model import Node, PodSpec, SpreadConstraint, all_of, policy

Counts = Callable[[PodSpec, Node, SpreadConstraint], bool]
"""Whether a spread constraint of a pod counts a node, by its inclusion policies."""
_Spreads = tuple[SpreadConstraint, ...]
_NOT_IN_TURN = "needs others before it, and no order was found"


class NeighbourCheck:
    """The check of one plan. Its pods start outside the ledger; checking a gang adds its pods."""

    def __init__(self, ledger: Ledger, counts: Counts) -> None:
        self._ledger = ledger
        self._rule_check = _RuleCheck(ledger, counts)

    def problems(self, placed: list[PodEntry]) -> list[str]:
        """Return a message for each pod that the rules refuse in every order that was tried.

        ``placed`` are the pods of one gang. The cost is some look-ups for each pod and term: all
        pods are tried once, and then again up to ``policy.ORDER_LOOKS_MAX`` times in all.
        """
        world, ledger = self._rule_check, self._ledger
        waiting, looks = world.in_order(placed), 0
        while waiting and (not looks or looks < policy.ORDER_LOOKS_MAX):
            refused = []
            looks += len(waiting)
            for entry in waiting:
                if world.problem(entry):
                    refused.append(entry)
                else:
                    ledger.count(entry, 1)
            if len(refused) == len(waiting):
                break
            waiting = refused
        problems = [f"pod {e.pod.name} {world.problem(e) or _NOT_IN_TURN}" for e in waiting]
        if problems and len(placed) <= policy.SEARCHED_PODS_MAX:
            left = {entry.pod.uid for entry in waiting}
            for entry in placed:
                if entry.pod.uid not in left:
                    ledger.count(entry, -1)
            orders = _Orders(placed, world, ledger)
            if not orders.none_is_right():
                problems = []
            waiting = orders.left()
        for entry in waiting:
            ledger.count(entry, 1)
        return problems


class _Orders:
    """Try orders of placing pods, up to a bound; equal pods form a group, which is one choice."""

    def __init__(self, placed: list[PodEntry], world: _RuleCheck, ledger: Ledger) -> None:
        self._rule_check, self._ledger = world, ledger
        groups: dict[object, list[PodEntry]] = {}
        for entry in placed:
            alike = entry.pod_class.id, entry.label_set, entry.node, world.hard(entry)
            groups.setdefault(alike, []).append(entry)
        self._groups = list(groups.values())
        self._left = [len(alike) for alike in self._groups]
        self._pods_left = len(placed)
        self._placed: list[int] = []
        """The group of each placed pod, in order."""
        self._seen: set[tuple[int, ...]] = set()
        self._looks = 0

    def none_is_right(self) -> bool:
        """Whether all orders fail; False if an order was not tried."""
        is_found = self._search()
        return not is_found and not self._is_cut

    def left(self) -> list[PodEntry]:
        """Return the pods that are not in the ledger after the search."""
        return [e for n, alike in zip(self._left, self._groups, strict=True) for e in alike[:n]]

    @property
    def _is_cut(self) -> bool:
        is_long = self._looks >= policy.ORDER_LOOKS_MAX
        return is_long or len(self._seen) >= policy.ORDERS_MAX

    def _search(self) -> bool:
        """Place pods one by one, with backtracking; return whether all of them were placed."""
        following = [0]
        """For each number of placed pods, from 0: the group to try next."""
        self._seen.add(tuple(self._left))
        while following:
            number = following[-1]
            if number == len(self._groups) or self._is_cut:
                following.pop()
                if following:
                    self._take_back()
                continue
            following[-1] += 1
            if not self._left[number]:
                continue
            self._looks += 1
            if self._rule_check.problem(self._groups[number][0]):
                continue
            self._place(number)
            if not self._pods_left:
                return True
            state = tuple(self._left)
            if state in self._seen:
                self._take_back()
                continue
            self._seen.add(state)
            following.append(0)
        return False

    def _place(self, number: int) -> None:
        self._ledger.count(self._groups[number][0], 1)
        self._left[number] -= 1
        self._pods_left -= 1
        self._placed.append(number)

    def _take_back(self) -> None:
        number = self._placed.pop()
        self._ledger.count(self._groups[number][0], -1)
        self._left[number] += 1
        self._pods_left += 1


class _Rules(NamedTuple):
    """The rules of equal pods, each with its counter; ``itself``: whether the pods match it too."""

    anti_affinity: tuple[Book, ...]
    affinity: tuple[Book, ...]
    is_own_kind: bool
    """Whether the pods match all their own affinity terms."""
    hard: _Spreads
    spread: tuple[tuple[SpreadBook, bool], ...]
    """For each of ``hard``: its counter, and whether it counts the pods themselves."""


class _RuleCheck:
    """Evaluates the rules for pods, on the ledger's present counts."""

    def __init__(self, ledger: Ledger, counts: Counts) -> None:
        ledger.refresh()
        self._ledger = ledger
        self._counts = counts
        self._rules: dict[tuple[int, LabelSet, _Spreads], _Rules] = {}
        self._rules_by_uid: dict[str, _Rules] = {}
        self._repelling: dict[LabelSet, tuple[int, list[Book]]] = {}

    def problem(self, entry: PodEntry) -> str:
        """Return why the pod is refused on its node; "" if it is accepted."""
        labels = self._ledger.labels(entry.node)
        rules = self._rules_of(entry)
        for book in rules.anti_affinity:
            here = labels.get(book.topology_key)
            if here is not None and book.pods.get(here, 0):
                return f"would be beside a pod that it keeps away from, on node {entry.node}"
        for book in self._repelling_of(entry.label_set):
            here = labels.get(book.topology_key)
            if here is not None and book.pods.get(here, 0):
                return f"would be beside a pod that keeps it away, on node {entry.node}"
        if rules.affinity and not _is_near(rules, labels):
            return f"would not be beside the pods that it belongs to, on node {entry.node}"
        for spread, itself in rules.spread:
            if spread.is_skewed(labels.get(spread.topology_key), itself=itself):
                return f"would not be spread over {spread.topology_key}, on node {entry.node}"
        return ""

    def _rules_of(self, entry: PodEntry) -> _Rules:
        known = self._rules_by_uid.get(entry.pod.uid)
        if known is not None:
            return known
        hard = self.hard(entry)
        key = entry.pod_class.id, entry.label_set, hard
        found = self._rules.get(key)
        if found is None:
            found = self._rules[key] = self._make_rules(entry, hard)
        self._rules_by_uid[entry.pod.uid] = found
        return found

    def hard(self, entry: PodEntry) -> _Spreads:
        """Return the hard spread constraints of a pod."""
        return tuple(one for one in entry.pod.spec.spread if one.hard)

    def _make_rules(self, entry: PodEntry, hard: _Spreads) -> _Rules:
        ledger, spec, label_set = self._ledger, entry.pod.spec, entry.label_set
        affinity: list[Book] = []
        is_own_kind = False
        if spec.affinity:
            whole = all_of(spec.affinity)
            affinity = [ledger.near(whole, one.topology_key) for one in spec.affinity]
            is_own_kind = ledger.selects(whole, label_set)
        return _Rules(
            tuple(ledger.near(one.selector, one.topology_key) for one in spec.anti_affinity),
            tuple(affinity),
            is_own_kind,
            hard,
            tuple(
                (self._spread(one, spec, hard), ledger.selects(one.selector, label_set))
                for one in hard
            ),
        )

    def _spread(self, one: SpreadConstraint, spec: PodSpec, hard: _Spreads) -> SpreadBook:
        keys = frozenset(other.topology_key for other in hard)
        nodes = (spec.node_selector, spec.required_terms) if one.honor_affinity else ()
        tolerated = spec.tolerations if one.honor_taints else None

        def counted(node: Node) -> bool:
            return keys <= {key for key, _ in node.labels} and self._counts(spec, node, one)

        return self._ledger.spread((keys, nodes, tolerated), one, counted)

    def _repelling_of(self, label_set: LabelSet) -> list[Book]:
        version = self._ledger.carriers_version
        known, found = self._repelling.get(label_set, (-1, []))
        if known != version:
            found = self._ledger.repelling(label_set)
            self._repelling[label_set] = version, found
        return found

    def in_order(self, placed: list[PodEntry]) -> list[PodEntry]:
        """Sort pods by spec, in the given order; within a spec they fill domains level by level.

        The levels are those of the first ``policy.ORDER_SPREADS_MAX`` constraints.
        """
        if len(placed) < 2:
            return placed
        place = {
            number: n for n, number in enumerate(dict.fromkeys(e.pod_class.id for e in placed))
        }
        books = self._books_by_constraint(placed)
        for one in islice(books, policy.ORDER_SPREADS_MAX):
            domain_of = {
                entry.pod.uid: self._ledger.labels(entry.node).get(one.topology_key, "")
                for entry in placed
            }
            most, domains = Counter[str](), set(domain_of.values())
            for book in books[one]:
                for domain in book.pods.keys() & domains:
                    most[domain] = max(most[domain], book.pods[domain])
            levels: dict[str, int] = {}
            for entry in placed:
                domain = domain_of[entry.pod.uid]
                most[domain] += 1
                levels[entry.pod.uid] = most[domain]
            placed = sorted(placed, key=lambda entry: levels[entry.pod.uid])
        return sorted(placed, key=lambda entry: place[entry.pod_class.id])

    def _books_by_constraint(
        self, placed: list[PodEntry]
    ) -> dict[SpreadConstraint, dict[SpreadBook, None]]:
        """Return the counters of each hard constraint; specs share them, so each occurs once."""
        found: dict[SpreadConstraint, dict[SpreadBook, None]] = {}
        rules = {id(one): one for one in map(self._rules_of, placed)}
        for one in rules.values():
            for constraint, (book, _) in zip(one.hard, one.spread, strict=True):
                found.setdefault(constraint, {})[book] = None
        return found


def _is_near(rules: _Rules, labels: Mapping[str, str]) -> bool:
    near = [labels.get(book.topology_key) for book in rules.affinity]
    if any(here is None for here in near):
        return False
    pairs = list(zip(rules.affinity, near, strict=True))
    if all(book.pods.get(here or "", 0) for book, here in pairs):
        return True
    return rules.is_own_kind and not any(book.pods for book in rules.affinity)
