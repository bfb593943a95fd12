"""Slots that are kept by change equal those counted from nothing; and what they are asked for."""

from itertools import product

import numpy as np
import pytest

from quorate.core.model.steps import Steps
from quorate.core.queue.totals.cycle_totals import CycleTotals
from quorate.core.queue.totals.slots import ALL_BELOW
from quorate.core.queue.wakeups.buckets import short_of
from quorate.core.room.reserved_room import without
from quorate.core.rules.masks import mask_of
from tests.property.seeds import chances
from tests.property.worlds.running import some_worlds

FULL = ("full", "tied", "kube nodes")
"""Themes in which gangs wait for room."""


def counted(tally, room, cluster):
    """Count the slots of a class anew."""
    free = room.free
    if tally.level is not None:
        free = free + cluster.precedence.bound.below(
            tally.level, np.arange(len(free)), free.shape[1]
        )
    fits = [slots_on(tally.pod_class, row) for row in free.tolist()]
    return int(np.array(fits)[mask_of(tally.pod_class, room)].sum())


def slots_on(pod_class, free):
    """Count the slots of one node in plain numbers; ``free`` is by resource."""
    if pod_class.missing:
        return 0
    return max(min(free[column] // amount for column, amount in pod_class.demands), 0)


def up_to_date(world):
    """Return the slot totals after all news, and the room."""
    scheduler = world.scheduler
    slots, room = scheduler.queue.blocked.slots, scheduler.planner.room()
    waking = scheduler.planner._waking
    waking._ask_room, waking._room_now = lambda: room, room
    slots.set_inputs(waking._slot_inputs)
    rows = scheduler.cluster.nodes.log.since(waking._rows_seen)
    slots.note(rows, set())
    slots.bring_up_to_date(Steps(10**9))
    waking._rows_seen = scheduler.cluster.nodes.log.position
    return slots, room


@pytest.mark.parametrize("levels", [0, 1, 16])
def test_totals_kept_by_change_equal_a_recount(levels):
    seen = 0
    for world, script in some_worlds(60, *FULL, bounds={"PRIORITIES_WATCHED_MAX": levels}):
        for _ in world.each(script):
            slots, room = up_to_date(world)
            for tally in slots.tallies:
                assert slots.totals[tally.index] == counted(tally, room, world.scheduler.cluster)
                assert tally.level in (None, ALL_BELOW) or levels
                seen += 1
            assert sum(not tally.users for tally in slots.tallies) == slots._unused
    assert seen > 20


def test_totals_of_many_nodes_and_classes_equal_a_recount():
    """So many that rows are sorted into kinds, and are looked at in several turns."""
    bounds, most = {"SLOT_CELLS_AT_ONCE": 64, "SLOT_ROWS_AT_ONCE_MIN": 8}, 0
    for world, script in some_worlds(60, *FULL, nodes_max=30, members_max=40, bounds=bounds):
        for _ in world.each(script):
            slots, room = up_to_date(world)
            most = max(most, len(slots))
            for tally in slots.tallies:
                assert slots.totals[tally.index] == counted(tally, room, world.scheduler.cluster)
    assert most > 9


def test_totals_of_a_cycle_are_those_of_what_it_leaves():
    compared = 0
    for chance, (world, script) in zip(chances(100), some_worlds(100, *FULL), strict=True):
        world.play(script)
        cluster = world.scheduler.cluster
        slots, room = up_to_date(world)
        steps = Steps(10**9)
        totals = CycleTotals(slots, world.scheduler.planner._waking._withheld, steps)
        left = room.copy()
        for _ in range(8):
            classes = [entry.pod_class for entry in cluster.pods.values() if entry.gang]
            if not (classes and len(left.free)):
                break
            pod_class = chance.choice(classes)
            rows = np.unique([chance.randrange(len(left.free)) for _ in range(2)])
            left.take_at(pod_class, rows, np.ones(len(rows), np.int64))
            totals.note_placed(rows.tolist(), left.free)
            slots.add(chance.choice(classes), chance.choice([None, 5]), steps)
            for tally in slots.tallies:
                for priority in (0, 3, 99):
                    reservations = [one for one in cluster.reservations if one.priority >= priority]
                    mine = _without_promised(without(left, reservations), priority, cluster)
                    assert totals.of(tally, priority) == counted(tally, mine, cluster)
                    compared += 1
    assert compared > 20


def _without_promised(room, priority, cluster):
    mine, nominated = room.copy(), cluster.precedence.nominated
    for node in nominated:
        for entry in nominated.on(node):
            row = cluster.nodes.rows.get(node, -1)
            if entry.pod.priority >= priority and row >= 0:
                pods = np.zeros(len(mine.free), np.int64)
                pods[row] = 1
                mine.withhold(entry.pod_class, pods)
    return mine


# What a bucket is short of


def has_room(counts, need, slots):
    """Whether so many pods can be chosen, each class having so many slots."""
    return sum(map(min, counts, slots)) >= max(need, 1)


def test_a_demand_is_short_when_too_few_pods_can_be_chosen_and_only_then():
    for counts in product(range(1, 4), repeat=2):
        for need, slots in product(range(sum(counts) + 1), product(range(5), repeat=2)):
            short = short_of(list(counts), need, list(slots))
            assert bool(short) is not has_room(counts, need, slots), (counts, need, slots)


def test_a_demand_that_is_short_stays_so_until_a_threshold_is_reached():
    for chance in chances(3000):
        counts = [chance.randint(1, 6) for _ in range(chance.randint(1, 4))]
        need = chance.randint(0, sum(counts))
        slots = [chance.randint(0, 7) for _ in counts]
        thresholds = short_of(counts, need, slots)
        later = [chance.randint(0, 9) for _ in counts]
        if thresholds and all(later[place] < threshold for place, threshold in thresholds):
            assert not has_room(counts, need, later)
        for place, threshold in thresholds:
            assert slots[place] < threshold <= max(counts[place], slots[place] + 1)
