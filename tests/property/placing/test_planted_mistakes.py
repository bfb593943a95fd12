"""Mistakes that were made once, planted again: worlds of the kept seed find each of them.

One for each class of defect that a review found in the core. A mutation changes one thing; worlds
are drawn until one of them tells, and what it tells is the promise that is broken. What their
accounts know nothing of is found by a test of its own.
"""

from typing import NamedTuple

import pytest

from quorate.core.cluster.gangs import gangs
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.reservations import Reservations
from quorate.core.cluster.labels import neighbours
from quorate.core.lifecycle import nominating
from quorate.core.lifecycle.attempts import Attempts, _roll_back
from quorate.core.room.devices import allocations as outcomes
from quorate.core.room.room import Room
from quorate.core.turn import cycle
from tests.property.reading import test_gt_lt
from tests.property.seeds import SEED
from tests.property.worlds.running import play
from tests.property.worlds.scripts import seed_of
from tests.simulation import mutations
from tests.unit.core.gangs import test_attempts, test_gang_meaning, test_held_bounds
from tests.unit.core.place import test_beside_nominated

WORLDS_MAX = 1500


class Planted(NamedTuple):
    apply: object
    themes: tuple
    tells: tuple
    """How the finding begins, one of these."""
    first_world: int = 1
    """Where few worlds find it: one of the kept seed that does."""


def a_search_as_deep_as_the_gang_is_large(patch):
    place = cycle.place_gang_in_turn

    def recursive(demand, *rest, **more):
        if demand.pods > 3:
            raise RecursionError("maximum recursion depth exceeded")
        return place(demand, *rest, **more)

    patch.setattr(cycle, "place_gang_in_turn", recursive)


def a_relabelled_pod_is_a_member_like_any_other(patch):
    patch.setattr(GangEntry, "knows_attempt_of", lambda self, pod: True)


def a_selector_that_is_not_known_any_more(patch):
    drop = neighbours.Neighbours.drop

    def strict(self, label_set, spec):
        if spec.affinity or spec.anti_affinity:
            raise KeyError("selector")
        drop(self, label_set, spec)

    patch.setattr(neighbours.Neighbours, "drop", strict)


def min_resources_are_not_asked_where_nodes_are_avoided(patch):
    lacks = cycle.Cycle._lacks_resources
    patch.setattr(
        cycle.Cycle,
        "_lacks_resources",
        lambda self, one, withheld: not one.avoid and lacks(self, one, withheld),
    )


def holds_without_a_bound(patch):
    patch.setattr(Reservations, "_end_above", lambda *_: None)


def an_attempt_asks_for_the_min_it_began_with(patch):
    patch.setattr(Attempts, "to_evict", lambda self, gang: _roll_back(gang, gang.attempt))


def devices_by_recursion(patch):
    class Deep(outcomes.Outcomes):
        def __getattribute__(self, name):
            if not name.startswith("_") and name not in ("expressions",):
                raise RecursionError("maximum recursion depth exceeded")
            return super().__getattribute__(name)

    patch.setattr("quorate.core.room.rule_cache.Outcomes", Deep)


def promises_that_never_end(patch):
    patch.setattr(nominating, "_suits", lambda *_: True)


def nominated_pods_that_others_rely_on(patch):
    patch.setattr(Room, "withhold_at", Room.take_at)


def tasks_are_dropped(patch):
    patch.setattr(gangs, "lacking", lambda *_, **__: {})
    patch.setattr(cycle, "task_minima_of", lambda _: ())


def numbers_as_python_reads_them(patch):
    def lenient(text):
        try:
            return int(text)
        except ValueError:
            return None

    patch.setattr(test_gt_lt, "parse_int64", lenient)


def rows_that_cannot_be_empty(patch):
    take = Room.take

    def strict(self, pod_class, pods):
        pods[pods > 0][0]
        take(self, pod_class, pods)

    patch.setattr(Room, "take", strict)


DEFECT = ("RecursionError", "KeyError", "IndexError")
PLANTED = {
    "01 recursion": Planted(a_search_as_deep_as_the_gang_is_large, ("gangs", "tied"), DEFECT),
    "02 relabelled": Planted(
        a_relabelled_pod_is_a_member_like_any_other,
        ("moved",),
        ("a relabelled pod is evicted", "a gang starts in part", "a started gang", "missed"),
    ),
    "03 wake-ups": Planted(
        mutations.label_news_wake_nobody, ("rules", "tied", "nodes"), ("missed wake-up",), 229
    ),
    "04 selectors": Planted(a_selector_that_is_not_known_any_more, ("rules", "tied"), DEFECT),
    "09 devices": Planted(devices_by_recursion, ("devices",), DEFECT),
    "12 empty rows": Planted(rows_that_cannot_be_empty, ("gangs", "nodes"), DEFECT),
    "13 promises": Planted(
        promises_that_never_end, ("kube", "kube nodes", "kube rules"), ("a promise",)
    ),
    "15 tasks": Planted(tasks_are_dropped, ("gangs", "life"), ("unverified",)),
}


BY_TESTS = {
    "05 minResources": (
        min_resources_are_not_asked_where_nodes_are_avoided,
        lambda: test_gang_meaning.test_min_resources_hold_a_gang_whatever_nodes_it_avoids(True),
    ),
    "06 holds": (
        holds_without_a_bound,
        lambda: test_held_bounds.test_a_gang_has_no_more_slots_than_the_operator_allows(4),
    ),
    "08 min is lowered": (
        an_attempt_asks_for_the_min_it_began_with,
        test_attempts.test_min_that_is_lowered_to_what_is_bound_evicts_nobody_when_time_is_over,
    ),
    "14 beside nominated pods": (
        nominated_pods_that_others_rely_on,
        test_beside_nominated.test_a_gang_does_not_rely_on_a_nominated_pod_to_raise_the_minimum,
    ),
    "16 numbers": (
        numbers_as_python_reads_them,
        test_gt_lt.test_planner_and_verifier_agree_with_a_plain_rule_on_any_text,
    ),
}
"""Of what the accounts of the worlds know nothing: the test that has to find it."""


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED.keys())
def test_worlds_find_a_mistake_that_is_planted(monkeypatch, planted):
    planted.apply(monkeypatch)
    told = []
    for index in range(planted.first_world, planted.first_world + WORLDS_MAX):
        kind = play(seed_of(SEED, index), planted.themes[index % len(planted.themes)]).kind
        told.append(kind)
        if kind.startswith(planted.tells):
            return
    raise AssertionError(f"no world tells: {sorted(set(told))}")


@pytest.mark.parametrize(("apply", "test"), BY_TESTS.values(), ids=BY_TESTS.keys())
def test_a_test_finds_a_mistake_that_is_planted(monkeypatch, apply, test):
    apply(monkeypatch)
    with pytest.raises(AssertionError):
        test()
