"""Pod classes are there while somebody has them, and what was made of them goes with them."""

import pytest

from quorate.core.cluster.nodes.encoding import PodClasses, Resources
from quorate.core.model import Owner, PodSpec, policy
from tests.unit.core.held_world import held, lose
from tests.unit.core.world import World, key


def specs(w: World) -> set[int]:
    return {dict(spec.requests)["cpu"] for spec, _ in w.cluster.classes._by_spec}


JOB = Owner("batch/v1", "Job", "a")


def started(*cpus) -> World:
    """A started gang of members of different sizes, on nodes that each of them fills."""
    w = World()
    gang = w.object("a", len(cpus))
    for cpu in cpus:
        w.node(f"n{cpu}", cpu=cpu)
        w.pod(f"a-{cpu}", gang, cpu=cpu, owner=JOB)
    assert len(w.cycle()) == len(cpus)
    return w


def test_a_hold_keeps_the_class_of_the_only_member_that_had_it():
    w = started(1, 2)
    assert lose(w, "a-2") == "n2"
    assert w.cycle() == {}
    assert held(w) == ["n2"]
    assert specs(w) == {1000, 2000}
    w.pod("a-new", key("a"), cpu=2)
    assert w.cycle() == {"a-new": "n2"}
    assert held(w) == []


@pytest.mark.parametrize(
    "end",
    [
        lambda w: w.decide(after_s=400.0),
        lambda w: w.lose_node("n2"),
        lambda w: w.object("a", 1),
        lambda w: w.delete("a-1"),
        lambda w: (w.pod("a-new", key("a"), cpu=1), w.cycle(), w.delete("a-new")),
        lambda w: (w.pod("a-new", key("a"), cpu=2), w.cycle(), w.delete("a-new", "a-1")),
        lambda w: (w.pod("a-new", key("a"), cpu=2), w.decide(), w.delete("a-new", "a-1")),
        lambda w: (w.pod("a-new", key("a"), cpu=2, node="n2"), w.delete("a-new", "a-1")),
    ],
)
def test_however_the_hold_ends_its_class_goes(end):
    w = started(1, 2)
    lose(w, "a-2")
    w.cycle()
    end(w)
    w.decide(after_s=400.0)
    w.decide(after_s=400.0)
    left = {reservation.pod_class.base for reservation in w.cluster.reservations}
    alive = {entry.pod_class.base for entry in w.cluster.pods.values()}
    assert w.cluster.classes.by_id.keys() == left | alive
    assert w.cluster.classes._held.total() == len(w.cluster.pods) + len(w.cluster.reservations)


def test_a_hold_that_is_lent_when_its_gang_is_forgotten_keeps_no_class():
    w = started(1, 2, 3)
    lose(w, "a-2")
    lose(w, "a-3")
    w.decide()
    w.pod("a-new", key("a"), cpu=2)
    w.decide()
    assert held(w) == ["n3"]
    w.delete("a-1")
    w.decide()
    assert held(w) == []
    w.delete("a-new")
    assert specs(w) == set()


def made(classes, base, count):
    return [classes.variant(base, frozenset((number,))) for number in range(count)]


@pytest.mark.parametrize("count", [3, 4, 5])
def test_of_so_many_variants_the_longest_unused_goes(monkeypatch, count):
    monkeypatch.setattr(policy, "CLASS_VARIANTS_KEPT_MAX", 4)
    classes = PodClasses(Resources())
    base = classes.take(PodSpec())
    first, *others = made(classes, base, 3)
    assert classes.variant(base, frozenset((0,))) is first
    more = [classes.variant(base, frozenset((number,))) for number in range(3, count)]
    assert len(classes._by_selectors) == min(count, 4)
    assert classes.variant(base, frozenset((0,))) is first
    known = list(classes._by_selectors.values())
    assert [one for one in (*others, *more) if one in known] == [*others, *more][count > 4 :]
