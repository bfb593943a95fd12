"""Pod classes are there while somebody has them, and what was made of them goes with them."""

import pytest

from quorate.core.cluster.nodes.encoding import PodClasses, Resources
from quorate.core.model import Owner, PodSpec, policy
from quorate.core.model.profile import KUBE_SCHEDULER
from tests.unit.core.held_world import held, lose
from tests.unit.core.world import World, key


def specs(w: World) -> set[int]:
    return {dict(spec.requests)["cpu"] for spec, _ in w.cluster.classes._by_spec}


def test_a_class_goes_with_its_last_pod():
    w = World()
    w.node("n0")
    w.pod("a", cpu=1)
    w.pod("b", cpu=1)
    w.running("c", "n0", cpu=2)
    assert specs(w) == {1000, 2000}
    w.delete("a", "c")
    assert specs(w) == {1000}
    w.delete("b")
    assert specs(w) == set()
    assert not w.cluster.classes.by_id
    assert not w.cluster.classes._held


def test_a_pod_that_is_resized_leaves_its_class():
    w = World()
    pod = w.pod("a", cpu=1)
    w.edit("a", spec=PodSpec(requests=(("cpu", 3000),)))
    assert specs(w) == {3000}
    w.tell(pod)
    w.tell(pod)
    assert specs(w) == {1000}


def test_a_class_that_comes_again_gets_another_number():
    w = World()
    w.pod("a", cpu=1)
    first = w.cluster.pods["uid-a"].pod_class
    w.delete("a")
    w.pod("a", cpu=1)
    assert w.cluster.pods["uid-a"].pod_class.id != first.id


def test_one_spec_under_two_profiles_is_two_classes():
    classes = PodClasses(Resources())
    ours, theirs = classes.take(PodSpec()), classes.take(PodSpec(), KUBE_SCHEDULER)
    assert ours is not theirs
    classes.release(ours)
    assert list(classes.by_id.values()) == [theirs]


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


def test_variants_go_with_their_class():
    classes = PodClasses(Resources())
    one, other = (classes.take(PodSpec(requests=(("cpu", n),))) for n in (1, 2))
    made(classes, one, 3)
    (kept,) = made(classes, other, 1)
    classes.release(one)
    assert list(classes._by_selectors.values()) == [kept]
    assert list(classes._variants_of) == [other.id]


def test_a_class_that_nobody_has_any_more_still_knows_what_its_pods_take():
    resources = Resources()
    classes = PodClasses(resources)
    base = classes.take(PodSpec(requests=(("cpu", 1), ("x", 2))))
    (variant,) = made(classes, base, 1)
    classes.release(base)
    resources.add(["y", "x"])
    assert variant.demands == base.demands == ((0, 1), (5, 2), (3, 1))
    assert classes.take(base.spec).id not in (base.id, variant.id)
