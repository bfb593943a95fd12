"""Every bound of the core is met: below it, at it and above it nothing is lost.

``TESTED`` names for each bound the test that runs it just below, at and just above its value. A
bound that is not there, or a test that is not, fails. And in random worlds each bound in turn is
set so small that what the worlds bring is below, at and above it.
"""

import ast
import random

import msgspec
import pytest

from quorate.core.model import policy
from quorate.core.model.policy import Policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.turn.defects import Defects
from tests.paths import ROOT
from tests.property.chaos import small_world
from tests.property.seeds import SEED, times
from tests.property.worlds import bounds
from tests.property.worlds.running import error_of
from tests.unit.core.world import World, binds_of

WORLDS = times(3)
CORE, WATCH = "tests/unit/core/", "tests/unit/shell/watch/"
HELD = CORE + "gangs/test_held_bounds.py::"
PODS = WATCH + "test_pod_limits.py::test_a_pod_at_the_bound_is_read_whole"
HERE = "tests/property/turns/test_bounds.py::"
WOKEN = CORE + "queue/test_woken_by_need.py::"
WORDS = WOKEN + "test_when_nodes_come_the_words_of_the_blocked_are_given_out_few_at_a_time"
DEVICES, SIZES = CORE + "devices/test_device_limits.py::", CORE + "devices/test_device_sizes.py::"
CEL, COUNTS = CORE + "devices/test_cel.py::", CORE + "cluster/test_neighbour_counts.py::"
CAPACITY = CORE + "words/test_capacity.py::"
TELLING = CORE + "telling/test_telling.py::"
IN_WORLDS = HERE + "test_worlds_with_a_small_bound_break_no_promise"

TESTED = {
    "ASIDE_S": HERE + "test_what_is_set_aside_waits_ever_longer_up_to_a_bound",
    "ASIDE_S_MAX": HERE + "test_what_is_set_aside_waits_ever_longer_up_to_a_bound",
    "INCIDENT_FRAMES_MAX": HERE + "test_so_many_calls_of_a_defect_are_told",
    "INCIDENTS_KEPT_MAX": HERE + "test_so_many_incidents_are_kept_to_be_told_of",
    "TURN_STEPS_MAX": IN_WORLDS,
    "TRY_STEPS_MAX": CORE + "place/test_interrupted.py::"
    "test_one_that_needs_more_than_its_part_of_a_turn_lets_others_go_on",
    "TOUCHED_PER_TURN_MAX": CORE + "cluster/test_much_news.py::"
    "test_nothing_is_planned_before_all_news_is_taken_in",
    "OWNER_ASKED_AGAIN_S": CORE + "queue/test_names_on_owners.py::"
    "test_it_is_asked_again_though_nothing_happens",
    "OWNER_READ_AGAIN_S": CORE + "queue/test_names_on_owners.py::"
    "test_it_is_asked_again_though_nothing_happens",
    "OWNER_READS_MAX": CORE + "queue/test_names_on_owners.py::"
    "test_a_job_that_cannot_be_read_holds_its_pods_no_longer_than_for_some_reads",
    "TASKS_PER_GANG_MAX": "tests/unit/dialects/test_volcano_fields.py::"
    "test_tasks_with_a_minimum_are_bounded",
    "RESOURCES_PER_POD_MAX": PODS,
    "CONTAINERS_PER_POD_MAX": PODS,
    "POD_TERMS_PER_POD_MAX": PODS,
    "SPREADS_PER_POD_MAX": PODS,
    "EXPRESSIONS_PER_POD_MAX": PODS,
    "VALUES_PER_POD_MAX": PODS,
    "TOLERATIONS_PER_POD_MAX": PODS,
    "PORTS_PER_POD_MAX": PODS,
    "VOLUMES_PER_POD_MAX": PODS,
    "DEVICE_CLAIMS_PER_POD_MAX": PODS,
    "PREEMPTABLE_SUMS_MAX": CORE + "cluster/test_preemptable.py::"
    "test_sums_are_kept_for_so_many_priorities_and_the_longest_unasked_goes",
    "PREEMPTABLE_ROWS_FEW": CORE + "cluster/test_preemptable.py::"
    "test_nothing_is_kept_for_a_question_about_few_rows",
    "PREEMPTION_CANDIDATES_FEW": CORE + "preempt/test_preemption_over_turns.py::"
    "test_of_many_nodes_no_more_than_enough_are_looked_at",
    "ALIKE_IDLE_MAX": CORE + "place/test_profiles.py::"
    "test_labels_stay_counted_while_no_replica_waits_and_of_many_the_longest_idle_go",
    "COLUMNS_UNUSED_MAX": CORE + "cluster/test_columns.py::"
    "test_columns_close_up_when_more_than_so_many_are_free",
    "LABEL_COLUMNS_KEPT_MAX": CORE + "rules/test_masks.py::"
    "test_of_so_many_labels_the_longest_unused_is_encoded_anew",
    "VALUES_UNUSED_MAX": CORE + "rules/test_masks.py::"
    "test_values_that_no_node_has_are_dropped_when_they_are_many",
    "CLASS_VARIANTS_KEPT_MAX": CORE + "cluster/test_classes.py::"
    "test_of_so_many_variants_the_longest_unused_goes",
    "MASKS_KEPT_BYTES_MAX": CORE + "rules/test_masks.py::"
    "test_of_so_many_bytes_the_longest_unused_mask_goes",
    "TOTALS_CELLS_MAX": CORE + "place/test_singles.py::"
    "test_so_many_classes_are_remembered_and_the_oldest_is_forgotten",
    "MASK_ENTRY_BYTES": CORE
    + "rules/test_masks.py::test_of_so_many_bytes_the_longest_unused_mask_goes",
    "LOG_KEPT_MAX": CORE
    + "rules/test_masks.py::test_a_log_that_forgot_means_that_all_nodes_are_asked",
    "SEARCHED_PODS_MAX": "tests/property/playing/test_large.py::"
    "test_a_large_world_breaks_no_promise",
    "GREEDY_ORDERS_MAX": IN_WORLDS,
    "GREEDY_FILLS_MAX": IN_WORLDS,
    "SEARCH_CHOSEN_MAX": IN_WORLDS,
    "RESTART_FAILURES_MAX": IN_WORLDS,
    "ORDER_FAILURES_MAX": IN_WORLDS,
    "SEARCH_SIZES_MAX": IN_WORLDS,
    "SEARCHES_OPEN_MAX": IN_WORLDS,
    "EXPLAIN_STEPS_MAX": IN_WORLDS,
    "EXPLAINED_CLASSES_MAX": CORE + "place/test_many_classes.py::"
    "test_so_many_classes_are_looked_at_one_by_one_to_explain_a_gang",
    "SEARCH_STEPS_MIN": IN_WORLDS,
    "INTERRUPTIONS_FEW": IN_WORLDS,
    "LONG_TURN_STEPS_MAX": CORE + "place/test_interrupted.py::"
    "test_a_gang_that_needs_more_than_the_longest_turn_is_left_alone",
    "CHECK_STEPS_MAX": WOKEN + "test_what_a_turn_has_no_steps_for_follows_at_once",
    "CLASSES_WATCHED_MAX": WOKEN + "test_classes_without_a_tally_are_looked_at_in_turn",
    "CLASS_MASKS_CELLS_MAX": WOKEN + "test_so_many_masks_of_classes_are_kept",
    "PRIORITIES_WATCHED_MAX": WOKEN
    + "test_priorities_without_a_level_are_woken_too_often_and_never_too_seldom",
    "EXPLAINED_PER_TURN_MAX": WORDS,
    "EXPLAINED_AGAIN_S": WORDS,
    "DEVICE_CHOICES_PER_POD_MAX": DEVICES + "test_a_pods_claims_have_so_many_choices",
    "DEVICE_SELECTORS_PER_POD_MAX": DEVICES + "test_a_pods_claims_have_so_many_selectors",
    "DEVICES_PER_CLAIM_MAX": DEVICES + "test_a_claim_gets_as_many_devices_as_the_api_allows",
    "DEVICE_LOOKS_MAX": DEVICES + "test_a_search_looks_at_so_many_devices",
    "DEVICE_LOOKS_PER_STEP": IN_WORLDS,
    "DEVICE_PODS_PER_NODE_MAX": DEVICES + "test_so_many_pods_are_tried_on_one_kind_of_node",
    "DEVICE_ASKS_MAX": SIZES + "test_asks_go_one_by_one",
    "DEVICE_OUTCOMES_ASKS_MAX": SIZES + "test_outcomes_go_ask_by_ask",
    "DEVICE_OUTCOMES_MAX": SIZES + "test_outcomes_go_ask_by_ask",
    "DEVICE_KINDS_SPARE_MIN": SIZES + "test_kinds_that_somebody_looks_up_stay_valid",
    "DEVICE_STALE_POOLS_MAX": SIZES + "test_many_stale_pools_are_remembered_as_all",
    "DEVICE_REFUSALS_MAX": DEVICES + "test_so_many_reasons_why_nodes_get_no_devices_are_told_apart",
    "CEL_TEXT_MAX": CEL + "test_bounds_hold_below_at_and_above",
    "CEL_DEPTH_MAX": CEL + "test_bounds_hold_below_at_and_above",
    "CEL_NAMES_MAX": CEL + "test_of_so_many_names_it_is_remembered_whether_they_are_looked_at",
    "CEL_COST_PER_STEP": IN_WORLDS,
    **dict.fromkeys(
        (
            *("CEL_TOKEN_COST", "CEL_CALL_COST", "CEL_ATTRIBUTE_COST", "CEL_OWN_CALL_COST"),
            "CEL_WHOLE_DEVICE_LOOKUPS",
        ),
        CEL + "test_each_cost_counts_where_it_is_spent",
    ),
    "CEL_PROGRAMS_TEXT_MAX": SIZES + "test_programs_and_answers_go_one_by_one",
    "CEL_ANSWERS_MAX": SIZES + "test_programs_and_answers_go_one_by_one",
    "COUNT_ENTRY_CELLS": COUNTS
    + "test_counts_are_an_array_once_that_is_no_larger_than_a_dictionary",
    "NEIGHBOUR_CELLS_MAX": COUNTS + "test_as_many_arrays_are_kept_as_the_bound_has_cells",
    "CHECKED_NODES_PER_STEP": IN_WORLDS,
    "PACKED_NODES_PER_STEP": IN_WORLDS,
    "SPREAD_NODES_PER_STEP": IN_WORLDS,
    "SPREAD_LOOKUPS_PER_STEP": IN_WORLDS,
    "NOMINATED_PODS_PER_STEP": IN_WORLDS,
    "NOMINATED_CLASSES_PER_STEP": IN_WORLDS,
    "NOMINATED_ROWS_PER_STEP": IN_WORLDS,
    "TRIAL_NODES_PER_STEP": IN_WORLDS,
    "VOLUME_PAIRS_PER_STEP": IN_WORLDS,
    "VOLUME_GROUPS_PER_STEP": IN_WORLDS,
    "VOLUME_PAIRS_PER_GROUP": IN_WORLDS,
    "CLAIM_NODES_PER_STEP": IN_WORLDS,
    "CLAIM_PODS_PER_STEP": IN_WORLDS,
    "REACH_WORK_PER_STEP": IN_WORLDS,
    "REACH_NODES_PER_WORK": IN_WORLDS,
    "PORTS_PER_STEP": IN_WORLDS,
    "PORT_PAIRS_PER_STEP": IN_WORLDS,
    "PORTS_COPIED_PER_STEP": IN_WORLDS,
    "DEVICE_SEARCH_STEPS": IN_WORLDS,
    "DEVICES_TAKEN_PER_STEP": IN_WORLDS,
    "DEVICES_SORTED_PER_STEP": IN_WORLDS,
    "DEVICES_LISTED_PER_LOOK": IN_WORLDS,
    "ANSWERS_UNUSED_FEW": IN_WORLDS,
    "ROOM_ROWS_FEW": IN_WORLDS,
    "SINGLE_ROWS_FEW": IN_WORLDS,
    "SEARCH_US_PER_STEP": IN_WORLDS,
    "RESERVED_NODES_NAMED_MAX": HELD + "test_so_many_nodes_are_named",
    "OVERCOMMIT_TOLERATED_S": CORE + "check/test_invariants.py::"
    "test_our_binds_over_a_nodes_allocatable_are_told_apart_from_those_of_others",
    "UNDONE_TOLERATED_S": CORE + "check/test_invariants.py::"
    "test_a_gang_that_is_being_undone_has_time_for_it",
    "LATE_TOLERATED_S": CORE + "check/test_invariants.py::"
    "test_a_gang_is_in_part_only_after_its_attempts_time",
    "OPEN_BYTES_MAX": CORE + "gangs/test_journal.py::"
    "test_a_journal_that_would_not_fit_into_an_annotation_says_so",
    "SINCE_MAX": CORE + "gangs/test_journal.py::"
    "test_after_very_many_leaders_without_a_journal_nothing_is_known",
    "LATE_S": CORE + "gangs/test_journal_late.py::"
    "test_a_gang_that_waits_is_open_no_more_when_no_bind_can_arrive",
    "REBUILDING_PASSES_MAX": IN_WORLDS,
    "SAYINGS_PER_S": TELLING + "test_all_gangs_together_say_so_much_a_second",
    "SAYINGS_AT_ONCE_MAX": TELLING + "test_all_gangs_together_say_so_much_a_second",
    "QUIET_S": TELLING + "test_requests_depend_on_time_and_not_on_pods_times_nodes",
    "PATIENCE_S": TELLING + "test_requests_depend_on_time_and_not_on_pods_times_nodes",
    "PODS_PER_S": TELLING + "test_requests_depend_on_time_and_not_on_pods_times_nodes",
    "AGAIN_S": TELLING + "test_counts_that_change_are_said_again_after_30_s_and_the_last_is_said",
    "AFTER_LOSS_S": TELLING + "test_what_was_lost_is_said_again_later_and_not_at_once",
    "CHANGES_AT_ONCE_MAX": TELLING + "test_a_reason_that_flaps_is_said_a_few_times_only",
    "ANSWER_S": CORE
    + "telling/test_other_schedulers.py::test_a_gang_whose_scheduler_is_silent_is_told",
    "STILL_SO_S": TELLING + "test_what_stays_as_it_is_is_said_again_before_it_is_forgotten",
    "GATES_NAMED_MAX": IN_WORLDS,
    "TASKS_NAMED_MAX": IN_WORLDS,
    "OWNERS_NAMED_MAX": CORE
    + "words/test_owner_words.py::test_so_many_owners_are_named_and_of_more_the_sum_is",
    "NAME_CHARS_MAX": IN_WORLDS,
    "TERM_CHARS_MAX": IN_WORLDS,
    "LISTED_MAX": CAPACITY + "test_three_holders_are_named_and_the_others_counted",
    "CLOSED_KINDS_MAX": CORE + "words/test_closed_nodes.py::"
    "test_of_many_reasons_those_with_the_most_nodes_are_told_and_the_others_counted",
    "HOLDERS_PODS_MAX": CAPACITY + "test_of_many_pods_those_on_the_fullest_nodes_are_looked_at",
    "PODS_RENEWED_PER_S": TELLING + "test_words_are_renewed_one_gang_after_the_other_at_a_pace",
    "SUM_PLACES_MAX": CORE + "gangs/test_min_resources.py::"
    "test_each_gang_is_woken_by_the_room_that_its_own_members_may_use",
    "QUEUE_LOOKS_PER_STEP": IN_WORLDS,
    "SLOT_CELLS_PER_STEP": IN_WORLDS,
    "MASK_ROWS_PER_STEP": IN_WORLDS,
    "WOKEN_ROWS_PER_STEP": IN_WORLDS,
    "WOKEN_PODS_PER_STEP": IN_WORLDS,
    "PORT_LOOKS_PER_STEP": IN_WORLDS,
    "VICTIM_NODES_PER_STEP": IN_WORLDS,
    "KNOWN_NODES_PER_STEP": IN_WORLDS,
    "VICTIM_PODS_PER_STEP": IN_WORLDS,
    "EXPLAINED_NODES_PER_STEP": IN_WORLDS,
    "WOKEN_FEW": IN_WORLDS,
    "SLOT_CELLS_AT_ONCE": IN_WORLDS,
    "SLOT_ROWS_AT_ONCE_MIN": IN_WORLDS,
    "MASKS_UNUSED_FEW": IN_WORLDS,
    "MASK_ROWS_AS_WHOLE": IN_WORLDS,
    "MASK_ROWS_PER_ROW": IN_WORLDS,
    "STALE_FEW": IN_WORLDS,
    "PREEMPTABLE_ALIKE_FEW": IN_WORLDS,
    "attempt_timeout_s_max": HERE + "test_nobody_gets_more_time_for_an_attempt",
    "hold_s_max": HELD + "test_nobody_gets_more_time_than_the_operator_allows",
    "held_slots_per_gang_max": HELD + "test_a_gang_has_no_more_slots_than_the_operator_allows",
    "held_slots_per_namespace_max": HELD + "test_the_gangs_of_a_namespace_have_no_more_together",
    "backoff_s_max": CORE + "gangs/test_attempts.py::test_back_off_grows_and_is_bounded",
    "binds_per_plan_max": HERE + "test_so_many_pods_are_bound_by_one_decision",
    "singles_per_plan_max": HERE + "test_so_many_pods_are_bound_by_one_decision",
    "preemptions_per_plan_max": HERE + "test_so_many_pods_are_promised_room_in_one_decision",
    "search_steps_max": CORE + "place/test_heterogeneous.py::"
    "test_a_bound_ends_the_search_and_the_reason_says_so",
}
GIVE_UP = frozenset(
    {
        *("SEARCHED_PODS_MAX", "GREEDY_ORDERS_MAX", "GREEDY_FILLS_MAX", "SEARCH_CHOSEN_MAX"),
        *("RESTART_FAILURES_MAX", "ORDER_FAILURES_MAX", "SEARCH_SIZES_MAX"),
    }
)
"""Bounds of the search: a gang that needs more is not placed, by one who looks in another order."""


def bounds_of_the_core():
    """Return the names of all bounds, of the modules and of what an operator may configure."""
    module = [
        name
        for one in bounds.MODULES
        for name, value in vars(one).items()
        if name.isupper() and type(value) in (int, float)
    ]
    return [*module, *(name for name in Policy.__struct_fields__ if name.endswith("_max"))]


@pytest.mark.parametrize("name", bounds_of_the_core())
def test_each_bound_has_a_test_that_exists(name):
    assert name in TESTED, f"{name} needs a test below, at and above it, and an entry here"
    path, _, test = TESTED[name].partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_no_entry_is_left_of_a_bound_that_is_gone():
    assert TESTED.keys() <= set(bounds_of_the_core())


@pytest.mark.parametrize("name", bounds.constants())
def test_worlds_with_a_small_bound_break_no_promise(name):
    chance = random.Random(f"{SEED} {name}")
    for _ in range(WORLDS):
        index = chance.randrange(1000)
        value = bounds.value(name, chance.choice([0, 1, 2, 3]))
        setting, script = small_world(SEED, index)
        exact = name not in GIVE_UP
        setting = msgspec.structs.replace(setting, bounds={name: value}, is_exact=exact)
        error = error_of(setting, script)
        assert error is None, f"{name} = {value} in world {index} of seed {SEED}: {error!r}"


def test_what_is_set_aside_waits_ever_longer_up_to_a_bound():
    waits_s = [policy.back_off_s(failures) for failures in range(1, 40)]
    assert waits_s[0] == policy.ASIDE_S
    assert waits_s == sorted(waits_s)
    below = [wait_s for wait_s in waits_s if wait_s < policy.ASIDE_S_MAX]
    assert below == [policy.ASIDE_S * 2**failures for failures in range(len(below))]
    assert set(waits_s[len(below) :]) == {policy.ASIDE_S_MAX}


@pytest.mark.parametrize("met", [2, 3, 4])
def test_so_many_incidents_are_kept_to_be_told_of(met, monkeypatch):
    monkeypatch.setattr(policy, "INCIDENTS_KEPT_MAX", 3)
    defects = Defects("q")
    made = [defects.note("decide", "x", ValueError("no")).id for _ in range(met)]
    told = defects.take_incidents()
    assert [one.id for one in told[:3]] == made[:3]
    assert (len(told), sum(one.times for one in told)) == (met, met)  # of more, the number
    assert defects.take_incidents() == []


@pytest.mark.parametrize(("most", "told"), [(1, 1), (2, 2), (3, 3), (4, 3)])
def test_so_many_calls_of_a_defect_are_told(most, told, monkeypatch):
    def innermost():
        raise ValueError("no")

    def middle():
        innermost()

    monkeypatch.setattr(policy, "INCIDENT_FRAMES_MAX", most)
    try:
        middle()
    except ValueError as error:
        trace = Defects("q").note("decide", "x", error).trace
    calls = [call.partition(":")[0] for call in trace.split(" < ")]
    assert calls == ["innermost", "middle", "test_so_many_calls_of_a_defect_are_told"][:told]


@pytest.mark.parametrize(("asked_s", "given_s"), [(899.0, 899.0), (900.0, 900.0), (901.0, 900.0)])
def test_nobody_gets_more_time_for_an_attempt(asked_s, given_s):
    assert Policy(attempt_timeout_s_max=900.0).timeout_s(asked_s) == given_s


@pytest.mark.parametrize("bound", ["binds_per_plan_max", "singles_per_plan_max"])
@pytest.mark.parametrize("pods", [2, 3, 4, 7])
def test_so_many_pods_are_bound_by_one_decision(bound, pods):
    w = World(**{bound: 3})
    w.node("n0")
    for index in range(pods):
        w.pod(f"p{index}")
    for left in range(pods, 0, -3):
        plan = w.decide()
        assert len(binds_of(plan)) == min(left, 3)
        assert (plan.wake_at_s == w.now_s) == (left > 3)
        w.settle(plan)


@pytest.mark.parametrize("pods", [1, 2, 3])
def test_so_many_pods_are_promised_room_in_one_decision(pods):
    profiles = (("quorate", KUBE_SCHEDULER),)
    w = World(preemptions_per_plan_max=2, profiles=profiles)
    for index in range(pods):
        w.node(f"n{index}", cpu=1)
        w.running(f"low{index}", f"n{index}", priority=0)
        w.pod(f"high{index}", priority=5)
    plan = w.decide()
    assert len(plan.preemptions) == min(pods, 2)
    assert (plan.wake_at_s == w.now_s) == (pods > 2)
    assert len(w.decide().preemptions) == max(0, pods - 2)
