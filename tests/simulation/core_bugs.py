"""Bugs that the core once had, planted again: something that is run each time has to find each.

A row says what the bug was, how it is planted, and who finds it: worlds of the core of one theme,
or a test of the core that fails while it is planted. Where the code of a bug is gone, so that it
cannot be planted, ``covered_by`` names the test that would meet it if it came back.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from quorate.core.cluster.gangs.gangs import GangEntry, Where
from quorate.core.cluster.priorities.preemptable import Preemptable
from quorate.core.lifecycle.nominating import Nominating
from quorate.core.turn import cycle
from tests.property.seeds import SEED
from tests.simulation.mutations import a_quorum_never_lapses
from tests.unit.core.gangs.test_gang_meaning import (
    test_min_resources_hold_a_gang_whatever_nodes_it_avoids as min_resources,
)
from tests.unit.core.place.test_beside_nominated import (
    test_a_gang_does_not_rely_on_a_nominated_pod_to_raise_the_minimum as beside_nominated,
)


class CoreBug(NamedTuple):
    number: int
    what: str
    plant: Callable[[pytest.MonkeyPatch], None] | None = None
    themes: tuple[str, ...] = ()
    """Of the worlds that find it."""
    run: int = SEED
    """Whose worlds are played: one that is known to find it, where few worlds do."""
    fails: Callable[[], None] | None = None
    """A test that fails while it is planted."""
    covered_by: str = ""


def every_bound_pod_is_a_gangs_own(patch):
    patch.setattr(GangEntry, "knows_attempt_of", lambda gang, pod: True)
    patch.setattr("quorate.core.cluster.state.entry_of", lambda key: "")


def a_bind_for_another_gang_counts_at_once(patch):
    real = GangEntry.need.fget

    def need(gang):
        lacks = real(gang)
        return max(0, lacks - gang.counts[Where.RELABELLED]) if lacks else 0

    patch.setattr(GangEntry, "need", property(need))
    patch.setattr(
        GangEntry,
        "assumed",
        property(lambda gang: gang.counts[Where.ASSUMED] + gang.counts[Where.RELABELLED]),
    )


def who_avoids_a_node_passes_the_gate(patch):
    real = cycle.Cycle._lacks_resources

    def lacks(self, one, withheld):
        return not (one.avoid or one.shun) and real(self, one, withheld)

    patch.setattr(cycle.Cycle, "_lacks_resources", lacks)


def no_rows_are_no_question(patch):
    real = Preemptable.below

    def below(self, priority, rows, width):
        if len(rows) == 0:
            raise IndexError("arrays used as indices must be of integer type")
        return real(self, priority, rows, width)

    patch.setattr(Preemptable, "below", below)


def promises_are_never_looked_at_again(patch):
    patch.setattr(Nominating, "step", lambda *_: set())


def nominated_pods_raise_a_minimum(patch):
    real = cycle.room_less_nominated

    def room_less_nominated(room, promised, pod_classes, cluster):
        return real(room, promised, [], cluster)

    patch.setattr(cycle, "room_less_nominated", room_less_nominated)


_LARGE = "tests/property/playing/test_large.py::test_a_large_world_breaks_no_promise"
CORE_BUGS = (
    CoreBug(1, "a search as deep as a gang has pods", covered_by=_LARGE),
    CoreBug(
        2,
        "a relabelled bound pod is evicted, or starts a gang",
        every_bound_pod_is_a_gangs_own,
        ("moved",),
    ),
    CoreBug(
        2,
        "a pod counts in its new gang while its bind is under way for the old one",
        a_bind_for_another_gang_counts_at_once,
        ("moved",),
        run=77,
    ),
    CoreBug(
        3,
        "news of labels and taints wake nobody",
        covered_by="tests/property/placing/test_planted_mistakes.py"
        "::test_worlds_find_a_mistake_that_is_planted",
    ),
    CoreBug(
        4,
        "selectors of default spread are dropped while pods use them",
        covered_by="tests/unit/core/cluster/test_spread_defaults.py"
        "::test_any_number_of_owners_may_have_waiting_pods",
    ),
    CoreBug(
        5,
        "minResources are not asked of a gang that avoids a node",
        who_avoids_a_node_passes_the_gate,
        fails=lambda: min_resources(refused=True),
    ),
    CoreBug(
        6,
        "held room without a bound",
        covered_by="tests/unit/core/gangs/test_held_bounds.py"
        "::test_one_living_pod_does_not_hold_99_gpus_for_a_day",
    ),
    CoreBug(7, "a gang that restarts as a whole starts in part", a_quorum_never_lapses, ("life",)),
    CoreBug(
        8,
        "a bound member is evicted when min becomes 0",
        covered_by="tests/unit/core/gangs/test_gang_meaning.py"
        "::test_min_that_is_lowered_while_binds_are_under_way_evicts_nobody",
    ),
    CoreBug(9, "an allocator as deep as there are devices", covered_by=_LARGE),
    CoreBug(
        10,
        "a fuzzer of liveness",
        covered_by="tests/property/playing/test_worlds.py::test_no_world_breaks_a_promise",
    ),
    CoreBug(
        11,
        "a fuzzer of everything",
        covered_by="tests/property/playing/test_worlds.py::test_no_world_breaks_a_promise",
    ),
    CoreBug(12, "a question about no rows raises", no_rows_are_no_question, ("kube", "others")),
    CoreBug(13, "a promise stands in vain", promises_are_never_looked_at_again, ("kube nodes",)),
    CoreBug(
        14,
        "a gang relies on a nominated pod",
        nominated_pods_raise_a_minimum,
        fails=beside_nominated,
    ),
    CoreBug(
        15,
        "fields of Volcano are dropped without a word",
        covered_by="tests/unit/dialects/test_volcano_fields.py"
        "::test_what_cannot_be_kept_is_a_defect_that_names_the_field_and_a_remedy",
    ),
    CoreBug(
        16,
        "1_6 is a number",
        covered_by="tests/property/reading/test_gt_lt.py"
        "::test_planner_and_verifier_agree_with_a_plain_rule_on_any_text",
    ),
)
