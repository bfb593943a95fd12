"""Counts of pods by selector and row, and which selectors match: by change, against a recount."""

import random
from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from quorate.core.cluster.labels.neighbours import Column, Key, Neighbours
from quorate.core.model import (
    LabelSelector,
    PodSelector,
    PodSpec,
    PodTerm,
    Requirement,
    SpreadConstraint,
    WeightedPodTerm,
    all_of,
    policy,
)
from tests.property.seeds import drawn
from tests.unit.core.counted import held_in, selectors_in_use

NAMESPACES = ("red", "blue", "grey")
KEYS = ("app", "rev", "tier")
VALUES = ("a", "b", "c")
SORTS = ("In", "In", "In", "NotIn", "Exists", "DoesNotExist")
seeds = st.integers(0, 2**32)


def random_requirements(chance):
    found = []
    for key in chance.sample(KEYS, chance.choice([0, 1, 1, 2, 2, 3])):
        sort = chance.choice(SORTS)
        few = chance.sample(VALUES, chance.choice([1, 1, 2, 3]))
        found.append(Requirement(key, sort, tuple(few) if sort in ("In", "NotIn") else ()))
    return LabelSelector(tuple(found))


def random_selector(chance):
    of = None
    if chance.random() < 0.3:
        of = LabelSelector(chance.choice([(), (Requirement("env", "In", ("x",)),)]))
    names = tuple(
        sorted(chance.sample(NAMESPACES, chance.choice([1, 1, 1, 2] if not of else [0, 1])))
    )
    return PodSelector(names, None if chance.random() < 0.05 else random_requirements(chance), of)


def random_spec(chance, selectors):
    def term():
        return PodTerm(chance.choice(selectors), chance.choice(["zone", "host"]))

    sort = chance.choice(["none", "none", "near", "nearer", "apart", "pulled", "spread"])
    match sort:
        case "near" | "nearer":
            return PodSpec(affinity=tuple(term() for _ in range(1 + (sort == "nearer"))))
        case "apart":
            return PodSpec(anti_affinity=tuple(term() for _ in range(chance.choice([1, 1, 2]))))
        case "pulled":
            weights = chance.choice([(5,), (-5,), (5, -5)])
            return PodSpec(preferred_affinity=tuple(WeightedPodTerm(n, term()) for n in weights))
        case "spread":
            return PodSpec(spread=(SpreadConstraint(1, "zone", True, chance.choice(selectors)),))
    return PodSpec()


def holds(selector, labels):
    """The reference: by reading metav1.LabelSelector, on plain values."""
    for one in selector.requirements:
        is_listed = one.key in labels and labels[one.key] in one.values
        wanted = {
            "In": is_listed,
            "NotIn": not is_listed,
            "Exists": one.key in labels,
            "DoesNotExist": one.key not in labels,
        }
        if not wanted[one.operator]:
            return False
    return True


def selects(selector, namespace, labels, of):
    if selector.labels is None:
        return False
    by_labels = selector.namespace_selector
    is_there = namespace in selector.namespaces
    is_there |= by_labels is not None and holds(by_labels, of.get(namespace, {}))
    return (
        is_there
        and holds(selector.labels, labels)
        and all(selects(one, namespace, labels, of) for one in selector.also)
    )


def used_by(spec):
    found = [one.selector for one in (*spec.affinity, *spec.anti_affinity, *spec.spread)]
    found += [one.term.selector for one in spec.preferred_affinity]
    return {*found, *([all_of(spec.affinity)] if spec.affinity else [])}


class Town:
    """Pods by name: namespace, labels, spec, row (None: none), whether it terminates."""

    def __init__(self, chance):
        self.chance = chance
        self.rows = 8
        self.neighbours = Neighbours(self.rows)
        self.pods = {}
        self.of = {}
        self.selectors = [random_selector(chance) for _ in range(8)]
        self.guests = Counter()
        self.made = 0

    def move(self):
        chance = self.chance
        moves = [self.come] * 6 + [self.go] * 4 + [self.place, self.end, self.leave] * 2
        moves += [self.relabel, self.place_many, self.host, self.grow, self.look, self.other]
        chance.choice(moves)()

    def come(self):
        labels = {key: self.chance.choice(VALUES) for key in KEYS if self.chance.random() < 0.6}
        spec = random_spec(self.chance, self.selectors)
        namespace = self.chance.choice(NAMESPACES)
        held = self.neighbours.acquire(namespace, tuple(sorted(labels.items())), spec)
        self.pods[self.made] = [namespace, labels, spec, None, False, held]
        self.made += 1
        if self.chance.random() < 0.7:
            self.put(self.pods[self.made - 1])

    def put(self, pod):
        _, _, spec, row, _, held = pod
        if row is None:
            pod[3], pod[4] = self.chance.randrange(self.rows), self.chance.random() < 0.2
            self.neighbours.take(pod[3], held, spec, terminating=pod[4])

    def take_off(self, pod):
        _, _, spec, row, terminating, held = pod
        if row is not None:
            self.neighbours.release(row, held, spec, terminating=terminating)
            pod[3], pod[4] = None, False

    def one(self):
        return self.pods[self.chance.choice(list(self.pods))] if self.pods else None

    def go(self):
        if self.pods:
            name = self.chance.choice(list(self.pods))
            self.take_off(self.pods[name])
            pod = self.pods.pop(name)
            self.neighbours.drop(pod[5], pod[2])

    def place(self):
        if pod := self.one():
            self.put(pod)

    def leave(self):
        if pod := self.one():
            self.take_off(pod)

    def end(self):
        pod = self.one()
        if pod and pod[3] is not None and not pod[4]:
            row = pod[3]
            self.take_off(pod)
            pod[3], pod[4] = row, True
            self.neighbours.take(row, pod[5], pod[2], terminating=True)

    def place_many(self):
        spec = random_spec(self.chance, self.selectors)
        alike = []
        for _ in range(self.chance.choice([1, 3, 9])):
            labels = {"app": self.chance.choice(VALUES)}
            held = self.neighbours.acquire("red", tuple(labels.items()), spec)
            alike.append(["red", labels, spec, self.chance.randrange(self.rows), False, held])
            self.pods[self.made] = alike[-1]
            self.made += 1
        self.neighbours.take_many([pod[3] for pod in alike], [pod[5] for pod in alike], spec)

    def relabel(self):
        name, env = self.chance.choice(NAMESPACES), self.chance.choice([{}, {"env": "x"}])
        self.of[name] = env
        self.neighbours.relabel(name, env)

    def host(self):
        """Default spreading uses a selector, or no more."""
        selector = self.chance.choice(self.selectors)
        if self.guests[selector]:
            self.guests[selector] -= 1
            self.neighbours.disuse(selector)
        else:
            self.guests[selector] += 1
            self.neighbours.use(selector)

    def other(self):
        self.selectors[self.chance.randrange(len(self.selectors))] = random_selector(self.chance)

    def grow(self):
        self.rows += self.chance.choice([0, 0, 8])
        self.neighbours.grow(self.rows)

    def look(self):
        """Ask for columns, so that they are kept as arrays and brought up to date."""
        for selector in selectors_in_use(self.neighbours):
            number = self.neighbours.selector_id(selector)
            column = self.neighbours.column(Key(self.chance.choice(list(Column)), number, "zone"))
            assert len(column) == self.rows
            assert not column.flags.writeable

    def recounted(self):
        counts = {}

        def add(column, selector, topology, row, amount):
            key = column, selector, topology
            counts.setdefault(key, np.zeros(self.rows, np.int64))[row] += amount

        used = {one for pod in self.pods.values() for one in used_by(pod[2])} | set(+self.guests)
        for namespace, labels, spec, row, terminating, _ in self.pods.values():
            if row is None:
                continue
            for selector in used:
                if selects(selector, namespace, labels, self.of):
                    add(Column.PODS, selector, "", row, 1)
                    add(Column.STAYING, selector, "", row, not terminating)
            for one in spec.anti_affinity:
                add(Column.REPELLING, one.selector, one.topology_key, row, 1)
            for one in spec.affinity:
                add(Column.ATTRACTED, one.selector, one.topology_key, row, 1)
            for one in spec.preferred_affinity:
                add(Column.PULL, one.term.selector, one.term.topology_key, row, one.weight)
        return used, counts


def check_counts(town):
    neighbours = town.neighbours
    used, counts = town.recounted()
    assert set(selectors_in_use(neighbours)) == used
    numbers = {selector: neighbours.selector_id(selector) for selector in used}
    for selector, number in numbers.items():
        for column in Column:
            for topology in [""] if column in (Column.PODS, Column.STAYING) else ["zone", "host"]:
                wanted = counts.get((column, selector, topology), np.zeros(town.rows, np.int64))
                key = Key(column, number, topology)
                assert neighbours.column(key).tolist() == wanted.tolist()
    for namespace, labels, _, _, _, held in town.pods.values():
        matching = {n for one, n in numbers.items() if selects(one, namespace, labels, town.of)}
        assert neighbours.matched(held) == matching
        for column in (Column.REPELLING, Column.ATTRACTED):
            carried = {(numbers[one], by) for what, one, by in counts if what is column}
            found = neighbours.terms(matching, column)
            assert {(key.selector, key.topology) for key in found} == {
                one for one in carried if one[0] in matching
            }
            assert found == sorted(found)


def check_sizes(town):
    """Nothing is kept but for pods that are there and selectors that they use."""
    neighbours = town.neighbours
    matching = neighbours._matching
    sets = {(pod[0], tuple(sorted(pod[1].items()))) for pod in town.pods.values()}
    assert len(neighbours.label_sets) == len(sets)
    bearing = matching.label_sets._bearing.values()
    listed = sum(
        len(few) for keys in bearing for values in keys.values() for few in values.values()
    )
    assert listed == sum(len(labels) for _, labels in sets)
    index = matching._index
    assert len(index) == len(matching.in_use) == len(selectors_in_use(neighbours))
    places = sum(len(places) for places in index._places.values())
    assert places == sum(len(there) for there in index._listed.values())
    assert places <= sum(
        max(
            len(one.namespaces),
            1,
            *(len(r.values) for s in (one, *one.also) for r in s.labels.requirements),
        )
        for one in selectors_in_use(neighbours)
        if all(s.labels is not None for s in (one, *one.also))
    )
    assert neighbours._views.size <= max(policy.NEIGHBOUR_CELLS_MAX, town.rows)
    kept = set()
    for columns in (neighbours._pods, neighbours._leaving, neighbours._weights):
        for counts in columns._counts.values():
            kept.add(counts)
            filled = np.count_nonzero(counts.to_array(town.rows))
            assert filled
            entries = len(counts._few)
            assert entries in (0, filled)
            assert entries * policy.COUNT_ENTRY_CELLS <= town.rows
            if counts.array is not None:
                assert counts._filled == filled
                assert filled * policy.COUNT_ENTRY_CELLS * 4 >= len(counts.array)
    assert set(neighbours._views) <= kept


@drawn(150)
@given(seeds)
def test_counts_and_matches_by_change_equal_a_recount(seed):
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "COUNT_ENTRY_CELLS", chance.choice([1, 2, 8]))
        patch.setattr(policy, "NEIGHBOUR_CELLS_MAX", chance.choice([0, 16, 40, 10_000]))
        town = Town(chance)
        for number in range(80):
            town.move()
            if number % 4 == 0:
                check_counts(town)
                check_sizes(town)


@drawn(50)
@given(seeds)
def test_nothing_is_left_of_pods_and_selectors_that_are_gone(seed):
    town = Town(random.Random(seed))
    for _ in range(80):
        town.move()
    assert held_in(town.neighbours) > 0
    while town.pods:
        town.go()
    for selector in +town.guests:
        town.neighbours.disuse(selector)
    assert held_in(town.neighbours) == 0


@drawn(100)
@given(seeds)
def test_worth_a_look_are_at_least_those_that_match(seed):
    chance = random.Random(seed)
    town = Town(chance)
    for _ in range(40):
        town.move()
    label_sets, index = town.neighbours.label_sets, town.neighbours._matching._index
    for selector in selectors_in_use(town.neighbours):
        found = list(label_sets.candidates(selector))
        assert len(found) == len(set(found))
        for name in NAMESPACES:
            for one in label_sets.of(name):
                assert one in found or not selects(selector, name, dict(one.labels), town.of)
    for name in NAMESPACES:
        for one in label_sets.of(name):
            found = list(index.candidates(one))
            assert len(found) == len(set(found))
            assert one.matched <= set(found)
