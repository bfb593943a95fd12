"""What is kept for checks of plans goes piece by piece, and a check within its bounds is right."""

import pytest

from quorate.core.cluster.labels.ledger import Ledger
from quorate.core.model import policy
from quorate.core.model.changes import ObjectGone
from tests.unit.core.terms import pods, spread
from tests.unit.core.world import World

ZONES = ("a", "b", "c")


def world():
    w = World()
    for zone in ZONES:
        w.node(f"n{zone}", labels={"zone": zone, "host": f"n{zone}"})
    return w


@pytest.mark.parametrize(("bound", "kept"), [(0, 0), (2, 2), (3, 3), (4, 3)])
def test_the_books_that_were_unused_longest_go(monkeypatch, bound, kept):
    monkeypatch.setattr(policy, "LEDGER_BOOKS_MAX", bound)
    w = world()
    ledger = w.cluster.ledger
    ledger.refresh()
    books = [ledger.near(pods(app=app), "zone") for app in ("web", "db", "new")]
    assert ledger.near(pods(app="web"), "zone") is books[0]
    ledger.refresh()
    order = [books[1], books[2], books[0]]
    assert [book for book in order if book.is_open] == order[3 - kept :]
    assert len(ledger._index) == len(ledger._books) == kept


@pytest.mark.parametrize(("bound", "kept"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_books_go_while_all_have_too_many_domains(monkeypatch, bound, kept):
    monkeypatch.setattr(policy, "LEDGER_CELLS_MAX", bound)
    w = world()
    for zone in ("a", "b"):
        for app in ("web", "db"):
            w.running(f"{app}-{zone}", f"n{zone}", labels={"app": app})
    ledger = w.cluster.ledger
    ledger.refresh()
    books = [ledger.near(pods(app=app), "zone") for app in ("web", "db")]
    assert [len(book.pods) for book in books] == [2, 2]
    ledger.refresh()
    assert [book for book in books if book.is_open] == books[2 - kept :]


def test_a_book_that_went_is_opened_again_with_the_same_counts(monkeypatch):
    monkeypatch.setattr(policy, "LEDGER_BOOKS_MAX", 0)
    w = world()
    w.running("web-1", "na", labels={"app": "web"})
    ledger = w.cluster.ledger
    ledger.refresh()
    before = ledger.near(pods(app="web"), "zone")
    ledger.refresh()
    w.running("web-2", "nb", labels={"app": "web"})
    after = ledger.near(pods(app="web"), "zone")
    assert before is not after
    assert after.pods == {"a": 1, "b": 1}
    assert not before.pods
    [group] = ledger._alike.values()
    assert group.books == [after]


@pytest.mark.parametrize("bound", [0, 1, 2, 3])
def test_a_right_plan_passes_however_few_constraints_order_its_pods(monkeypatch, bound):
    monkeypatch.setattr(policy, "ORDER_SPREADS_MAX", bound)
    w = world()
    gang = w.object("g", 6)
    both = spread(pods(app="web"))["spread"] + spread(pods(app="web"), by="host")["spread"]
    for number in range(6):
        w.pod(f"p{number}", gang, labels={"app": "web"}, spec={"spread": both})
    placed = w.cycle()
    assert sorted(placed.values()) == ["na", "na", "nb", "nb", "nc", "nc"]


@pytest.mark.parametrize(("labels", "times"), [({"a": "b"}, 0), ({"a": "c"}, 1), ({}, 1)])
def test_books_are_made_anew_when_labels_of_a_namespace_are_others(monkeypatch, labels, times):
    w = World()
    w.namespace("team", {"a": "b"})
    calls = []
    monkeypatch.setattr(Ledger, "forget", lambda _: calls.append("once"))
    w.namespace("team", labels)
    assert len(calls) == times


@pytest.mark.parametrize(("labels", "times"), [({}, 0), ({"a": "b"}, 1)])
def test_a_namespace_that_goes_leaves_the_books_as_they_are_if_it_had_no_labels(
    monkeypatch, labels, times
):
    w = World()
    w.namespace("team", labels)
    calls = []
    monkeypatch.setattr(Ledger, "forget", lambda _: calls.append("once"))
    w.observe(ObjectGone("Namespace", "", "team"))
    assert len(calls) == times
