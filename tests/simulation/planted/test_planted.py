"""Mistakes that somebody could make, or once made, planted on purpose: each has to be found.

By the simulation's checkers, or by worlds of the core. A row that is found rarely begins where it
is found.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from simulate.run import run
from simulate.themes.table import THEMES
from tests.property.seeds import SEED
from tests.property.worlds.running import play
from tests.property.worlds.scripts import seed_of
from tests.property.worlds.world import World
from tests.simulation.planted import in_core, in_shell
from tests.simulation.planted.at_the_door import MISTAKES

DRAWS_MAX = 100
"""A row that needs more begins elsewhere: its time would be over before its draws."""

UID = "each bind was decided on and names its pod's uid"
WAITING_ONLY = "only pods that wait are placed"
QUORUM = "no gang starts below its min"
PARTIAL = "no gang stays bound in part"
ROOM = "no node is filled over its allocatable"
LEASE = "only the holder of the lease binds and evicts"
LOOK_UP = "a lost answer is looked up before the pod goes elsewhere"
FITS = "a gang that fits is placed"
MARKED = "only a quorate gang is marked as started"
STARTED = "a started gang is never torn down"
LOGGED = "no task fails unseen"
TOLD = "every pod is bound or has a reason"
APART = "members that stay apart do not meet"
TRUTH = "the leader knows what is true"
TWICE = "no device is given twice"
ASTRAY = "a pod of a gang starts alone"
DEFECTS = "RecursionError", "KeyError", "IndexError"


class Found(NamedTuple):
    """How a mistake is found: ``tells`` is how one of the findings begins."""

    tells: tuple[str, ...]
    draw: Callable[[], Iterator[str]]


def by_simulation(*promises: str, first: int = 1000, themes: tuple[str, ...] = ()) -> Found:
    """Break one of these promises, in worlds without other themes than these."""

    def draw() -> Iterator[str]:
        for seed in range(first, first + DRAWS_MAX):
            broken = run(seed, themes=[THEMES[name] for name in themes]).violations
            yield from [violation.promise for violation in broken] or ["nothing"]

    return Found(promises, draw)


def by_worlds(*tells: str, themes: tuple[str, ...], first: int = 1, of: int = SEED) -> Found:
    """Tell in worlds of these themes, of one run."""

    def draw() -> Iterator[str]:
        for index in range(first, first + DRAWS_MAX):
            yield play(seed_of(of, index), themes[index % len(themes)]).kind

    return Found(tells, draw)


def at_the_door(mistaken: type) -> Callable[[pytest.MonkeyPatch], None]:
    """Let worlds ask this scheduler."""
    return lambda patch: patch.setattr(World, "scheduler_class", mistaken)


PLANTED = {
    in_shell.bind_without_uid: by_simulation(UID),
    in_shell.conflict_is_success: by_simulation(PARTIAL, FITS, TRUTH, TOLD),
    in_shell.lost_answer_is_failure: by_simulation(LOOK_UP, ROOM),
    in_shell.failed_bind_is_not_reported: by_simulation(PARTIAL, FITS, TRUTH),
    in_shell.quorum_is_sealed_at_once: by_simulation(MARKED, PARTIAL, QUORUM),
    in_shell.leader_binds_after_its_lease: by_simulation(LEASE),
    in_shell.nobody_asks_who_leads: by_simulation(LEASE),
    in_shell.deletions_are_not_heard: by_simulation(FITS, TRUTH, WAITING_ONLY),
    in_shell.a_cut_watch_goes_on_too_late: by_simulation(FITS, TRUTH, TOLD, PARTIAL, first=1062),
    in_shell.rules_between_pods_are_not_read: by_simulation(APART),
    in_core.deadline_is_forgotten: by_simulation(PARTIAL, first=1152),
    in_core.half_bound_gang_is_not_taken_up: by_simulation(PARTIAL, first=1203),
    in_core.started_gang_is_rolled_back: by_simulation(STARTED),
    in_core.terminating_members_count: by_simulation(WAITING_ONLY, QUORUM, first=1015),
    in_core.gated_members_count: by_simulation(WAITING_ONLY, LOGGED),
    in_core.a_quorum_never_lapses: by_worlds("", themes=("life",)),
    in_core.min_is_off_by_one: by_simulation(QUORUM, PARTIAL),
    in_core.members_are_placed_one_by_one: by_simulation(QUORUM),
    in_core.room_is_released_before_the_outcome: by_simulation(ROOM),
    in_core.verification_is_left_out_and_a_gang_fills_one_node: by_simulation(ROOM),
    in_core.foreign_pods_are_not_counted: by_simulation(ROOM, TRUTH),
    in_core.wake_up_is_lost: by_simulation(FITS),
    in_core.watched_class_never_wakes: by_simulation(FITS),
    in_core.bucket_passes_over: by_simulation(FITS),
    in_core.label_news_wake_nobody: by_worlds(
        "missed wake-up", themes=("rules", "tied", "nodes"), first=229
    ),
    in_core.back_off_never_ends: by_simulation(FITS, PARTIAL, first=1007),
    in_core.journal_says_that_all_was_settled: by_simulation(PARTIAL, first=1660),
    in_core.journal_leaves_out_what_is_open: by_simulation(PARTIAL, MARKED, first=1217),
    in_core.devices_are_free_when_their_claim_is_allocated_for_another_pod: by_simulation(
        TWICE, first=412, themes=("devices",)
    ),
    in_core.owners_say_nothing: by_worlds(ASTRAY, themes=("gangs",)),
    in_core.nobody_waits_for_what_an_owner_says: by_worlds(ASTRAY, themes=("gangs",)),
    in_core.every_bound_pod_is_a_gangs_own: by_worlds("", themes=("moved",)),
    in_core.a_bind_for_another_gang_counts_at_once: by_worlds(
        "", themes=("moved",), first=137, of=77
    ),
    in_core.promises_are_never_looked_at_again: by_worlds("", themes=("kube nodes",)),
    in_core.a_search_as_deep_as_the_gang_is_large: by_worlds(*DEFECTS, themes=("gangs", "tied")),
    in_core.a_selector_that_is_not_known_any_more: by_worlds(*DEFECTS, themes=("rules", "tied")),
    in_core.devices_by_recursion: by_worlds(*DEFECTS, themes=("devices",)),
    in_core.rows_that_cannot_be_empty: by_worlds(*DEFECTS, themes=("gangs", "nodes")),
    in_core.tasks_are_dropped: by_worlds("unverified", themes=("gangs", "life")),
}
ROWS = {plant.__name__: (plant, found) for plant, found in PLANTED.items()}
ROWS |= {
    one.__name__: (at_the_door(one), by_worlds(*one.found, themes=(one.theme,))) for one in MISTAKES
}


@pytest.mark.parametrize("name", ROWS)
def test_a_planted_mistake_is_found(name, monkeypatch):
    plant, found = ROWS[name]
    plant(monkeypatch)
    told = set()
    for one in found.draw():
        if one and one.startswith(found.tells):
            return
        told.add(one)
    pytest.fail(f"not found in {DRAWS_MAX} draws; found instead: {sorted(told)}")
