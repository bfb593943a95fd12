"""The check of a plan finds an order of placing its pods if there is one, within its bounds."""

import itertools
import random
from functools import cache
from types import SimpleNamespace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from quorate.core.check.verify_neighbours import NeighbourCheck, _Orders
from quorate.core.model import policy
from tests.property.seeds import drawn


class Table:
    """Stands for rules and ledger: which group's pod is let in when so many of each are there."""

    def __init__(self, sizes, lets_in):
        self.there = [0] * len(sizes)
        self.lets_in = lets_in
        self.placed = [
            SimpleNamespace(
                pod_class=SimpleNamespace(id=group),
                label_set=None,
                node="n",
                group=group,
                pod=SimpleNamespace(uid=f"{group}-{number}", name=f"{group}-{number}"),
            )
            for group, size in enumerate(sizes)
            for number in range(size)
        ]

    def hard(self, entry):
        return ()

    def in_order(self, placed):
        return placed

    def problem(self, entry):
        return "" if self.lets_in(tuple(self.there), entry.group) else "is kept out"

    def count(self, entry, sign):
        self.there[entry.group] += sign

    def orders(self):
        return _Orders(self.placed, self, self)

    def check(self):
        found = NeighbourCheck.__new__(NeighbourCheck)
        found._ledger = found._rule_check = self
        return found


def is_possible(sizes, lets_in):
    @cache
    def reach(there):
        if there == sizes:
            return True
        return any(
            reach((*there[:group], there[group] + 1, *there[group + 1 :]))
            for group, size in enumerate(sizes)
            if there[group] < size and lets_in(there, group)
        )

    return reach((0,) * len(sizes))


@drawn(300)
@given(st.integers(0, 2**32))
def test_an_order_is_found_where_there_is_one(seed):
    chance = random.Random(seed)
    sizes = tuple(chance.randint(1, 3) for _ in range(chance.randint(1, 4)))
    share = chance.choice([0.3, 0.5, 0.7])
    states = itertools.product(*(range(size + 1) for size in sizes))
    table = {
        (there, group): chance.random() < share for there in states for group in range(len(sizes))
    }
    lets_in = lambda there, group: table[there, group]  # noqa: E731
    table_of = Table(sizes, lets_in)
    orders = table_of.orders()
    assert orders.none_is_right() is not is_possible(sizes, lets_in)
    is_found = is_possible(sizes, lets_in)
    assert tuple(table_of.there) == (sizes if is_found else (0,) * len(sizes))
    assert len(orders.left()) == (0 if is_found else sum(sizes))
    again = Table(sizes, lets_in)
    assert bool(again.check().problems(again.placed)) is not is_found
    assert tuple(again.there) == sizes


@pytest.mark.parametrize("bound", ["ORDERS_MAX", "ORDER_LOOKS_MAX"])
def test_an_order_that_was_not_tried_may_be_right(monkeypatch, bound):
    """Two groups, of which no whole order is right: 8 states that are not whole, 12 looks."""

    def lets_in(there, group):
        return sum(there) < 3

    needed = {"ORDERS_MAX": 8, "ORDER_LOOKS_MAX": 12}[bound]
    for value, is_sure in ((needed - 1, False), (needed, False), (needed + 1, True)):
        monkeypatch.setattr(policy, bound, value)
        table = Table((2, 2), lets_in)
        orders = table.orders()
        assert orders.none_is_right() is is_sure, value
        done = {"ORDERS_MAX": len(orders._seen), "ORDER_LOOKS_MAX": orders._looks}[bound]
        assert done == min(value, needed)
        assert table.there == [0, 0]
        assert len(orders.left()) == 4


def test_thousands_of_pods_are_searched_without_recursion(monkeypatch):
    monkeypatch.setattr(policy, "ORDERS_MAX", 10_000)
    table = Table((1, 3_000), lambda there, group: there[1] == 3_000 or group == 1)
    assert not table.orders().none_is_right()
    assert table.there == [1, 3_000]


@pytest.mark.parametrize("pods", [199, 200, 201])
def test_an_order_is_searched_for_up_to_so_many_pods(pods):
    """Greedily the first group goes first, and then the others cannot."""
    sizes = (1, pods - 1)
    table = Table(sizes, lambda there, group: group == 0 or not there[0])
    assert bool(table.check().problems(table.placed)) is (pods > policy.SEARCHED_PODS_MAX)
    assert tuple(table.there) == sizes


@pytest.mark.parametrize(("more", "problems"), [(-1, 1), (0, 1), (1, 0)])
def test_pods_are_looked_at_again_up_to_so_many_times(monkeypatch, more, problems):
    """In each round the last one that waits is let in: 4 + 3 + 2 looks, and one more."""
    monkeypatch.setattr(policy, "SEARCHED_PODS_MAX", 0)
    monkeypatch.setattr(policy, "ORDER_LOOKS_MAX", 9 + more)
    table = Table((1,) * 4, lambda there, group: all(there[group + 1 :]))
    assert len(table.check().problems(table.placed)) == problems
    assert table.there == [1] * 4
