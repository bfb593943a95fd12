"""Goal: each check finds what it is there to find, names the object, and is silent otherwise.

Method: a world in good order (a started gang, one under way, one blocked, one held, pods of
others); then one thing is broken by hand, as a defect of the core would break it.
"""

import msgspec
import pytest

from quorate.core.cluster.gangs.gangs import Attempt, Where
from quorate.core.cluster.gangs.reservation import Placed, Reservation
from quorate.core.invariants import Invariant, check_gang
from quorate.core.model import HostPort, policy
from tests.invariants import check_all
from tests.unit.core.world import LABELS, World, key

STARTED, UNDER_WAY, BLOCKED, HELD = key("done"), key("starts"), key("large"), key("few", LABELS)
PORT = HostPort("TCP", "0.0.0.0", 80)


@pytest.fixture
def w():
    w = World()
    for name in ("n0", "n1"):
        w.node(name, cpu=4)
    w.gang("done", 2, spec={"host_ports": (PORT,)})
    w.cycle()
    w.gang("large", 9)
    w.gang("few", 3, pods=1, dialect=LABELS)
    w.running("other", "n0")
    w.cycle()
    w.gang("starts", 2)
    w.decide()
    assert found(w) == []
    return w


def found(w, after_s=0.0):
    return check_all(w.scheduler, w.now_s + after_s)


def names(violations):
    return {(violation.invariant, violation.object) for violation in violations}


def entry(w, name):
    return w.cluster.pods[f"uid-{name}"]


def gang(w, which):
    return w.cluster.gangs[which]


def set_count(w, which, where, count):
    gang(w, which).counts[where] = count


def set_used(w, node, column, amount):
    nodes = w.cluster.nodes
    row = nodes.rows[node]
    nodes.free[row, column] = nodes.allocatable[row, column] - amount


def drop_from_queue(w):
    w.scheduler.queue.blocked.discard(BLOCKED)


def swap_waiting(w):
    """Leave the numbers as they are, but not who it is that waits."""
    few, (alike,) = gang(w, HELD), gang(w, BLOCKED).waiting.values()
    (mine,) = few.waiting.values()
    mine.clear()
    mine["uid-large-0"] = alike["uid-large-0"]


def hold_of(w, which=STARTED, node="n0", until_s=1e9):
    one = entry(w, "done-0")
    reservation = Reservation(Placed(which, node, Where.BOUND, True, one.pod_class, 0), one.pod)
    reservation.until_s = until_s
    return reservation


def hold_for(w, which, node="n0", until_s=1e9):
    w.cluster.reservations._of[which] = [hold_of(w, which, node, until_s)]
    w.cluster.reservations._missing[which] = 1


def wait_for_a_waiting_pod(w):
    attempt = gang(w, BLOCKED).lifecycle.attempt = Attempt("q-9", w.now_s + 60.0, 1)
    attempt.open.add("uid-large-0")


BROKEN = {
    "a count of places is too high": (
        lambda w: set_count(w, BLOCKED, Where.GATED, 1),
        {(Invariant.GANG_COUNTS, "team/large")},
    ),
    "two counts of places are swapped": (
        lambda w: (set_count(w, STARTED, Where.BOUND, 1), set_count(w, STARTED, Where.ENDED, 1)),
        {(Invariant.GANG_COUNTS, "team/done")},
    ),
    "members of ours are counted twice": (
        lambda w: setattr(gang(w, STARTED), "ours", 4),
        {(Invariant.GANG_COUNTS, "team/done")},
    ),
    "a member that is alive is counted twice": (
        lambda w: setattr(gang(w, STARTED), "alive", 4),
        {(Invariant.GANG_COUNTS, "team/done")},
    ),
    "evictions are not counted": (
        lambda w: setattr(entry(w, "done-0"), "evicting", True),
        {(Invariant.GANG_COUNTS, "team/done")},
    ),
    "an opinion of a pod that left stays": (
        lambda w: gang(w, BLOCKED).priorities.update([7]),
        {(Invariant.GANG_COUNTS, "team/large")},
    ),
    "a min of a pod that left stays": (
        lambda w: gang(w, HELD).minima.update([7]),
        {(Invariant.GANG_COUNTS, "team/few")},
    ),
    "the sum of all that wait is wrong": (
        lambda w: setattr(w.cluster, "waiting", 3),
        {(Invariant.GANG_COUNTS, "cluster")},
    ),
    "a pod is counted on no node": (
        lambda w: set_used(w, "n1", 0, 0),
        {(Invariant.NODE_COUNTS, "n1")},
    ),
    "a pod that left is still counted on its node": (
        lambda w: set_used(w, "n1", 3, 100),
        {(Invariant.NODE_COUNTS, "n1")},
    ),
    "a host port was given back twice": (
        lambda w: w.cluster.nodes.ports["TCP", 80].clear(),
        {(Invariant.NODE_COUNTS, "n0"), (Invariant.NODE_COUNTS, "n1")},
    ),
    "a gang that does not fit is in no queue": (
        drop_from_queue,
        {(Invariant.POD_IN_ONE_PLACE, "team/large")},
    ),
    "more is held than was lost": (
        lambda w: w.cluster.reservations._of.setdefault(STARTED, []).append(hold_of(w)),
        {(Invariant.HELD_SLOTS, "team/done")},
    ),
    "room is held for a gang that never started": (
        lambda w: hold_for(w, BLOCKED),
        {(Invariant.HELD_SLOTS, "team/large")},
    ),
    "room is held for a gang that is not there": (
        lambda w: hold_for(w, key("gone")),
        {(Invariant.HELD_SLOTS, "team/gone")},
    ),
    "room is held on a node that is not there": (
        lambda w: hold_for(w, STARTED, "n9"),
        {(Invariant.HELD_SLOTS, "team/done")},
    ),
    "room is held for ever": (
        lambda w: hold_for(w, STARTED, until_s=w.now_s - 1.0),
        {(Invariant.HELD_SLOTS, "team/done")},
    ),
    "a gang is in two queues": (
        lambda w: w.scheduler.queue.ready.add(BLOCKED),
        {(Invariant.POD_IN_ONE_PLACE, "team/large")},
    ),
    "another one waits in a pod's place": (
        swap_waiting,
        {(Invariant.POD_IN_ONE_PLACE, "team/few-0")},
    ),
    "a pod of ours is in no gang": (
        lambda w: setattr(entry(w, "few-0"), "gang", None),
        {
            (Invariant.POD_IN_ONE_PLACE, "team/few-0"),
            (Invariant.POD_IN_ONE_PLACE, "team/few"),
        },
    ),
    "a pod's gang was dropped": (
        lambda w: w.cluster.gangs.pop(STARTED),
        {
            (Invariant.POD_IN_ONE_PLACE, "team/done-0"),
            (Invariant.POD_IN_ONE_PLACE, "team/done-1"),
        },
    ),
    "a pod's row is another node's": (
        lambda w: setattr(entry(w, "starts-0"), "row", 1 - entry(w, "starts-0").row),
        {(Invariant.POD_IN_ONE_PLACE, "team/starts-0")},
    ),
    "an assumed pod's bind is not waited for": (
        lambda w: gang(w, UNDER_WAY).attempt.open.discard("uid-starts-0"),
        {(Invariant.ASSUMED_HAS_ATTEMPT, "team/starts-0")},
    ),
    "an attempt was closed too early": (
        lambda w: setattr(gang(w, UNDER_WAY).lifecycle, "attempt", None),
        {
            (Invariant.ASSUMED_HAS_ATTEMPT, "team/starts-0"),
            (Invariant.ASSUMED_HAS_ATTEMPT, "team/starts-1"),
        },
    ),
    "a bind that has its outcome is still waited for": (
        wait_for_a_waiting_pod,
        {(Invariant.ASSUMED_HAS_ATTEMPT, "team/large-0")},
    ),
}


@pytest.mark.parametrize(("breaks", "expected"), BROKEN.values(), ids=list(BROKEN))
def test_what_is_broken_is_found_and_named(w, breaks, expected):
    breaks(w)
    assert names(found(w)) == expected


def test_a_pod_that_is_on_another_node_than_it_says_is_found(w):
    entry(w, "done-0").node = "n9"
    assert (Invariant.POD_IN_ONE_PLACE, "team/done-0") in names(found(w))


# Rooms of nodes


def test_our_binds_over_a_nodes_allocatable_are_told_apart_from_those_of_others(w):
    """The planner would have to be wrong for it: here the accounts are right, and too high."""
    w.edit("done-0", node=w.where("done-0"), attempt="q-1")
    w.edit("done-1", node=w.where("done-1"), attempt="q-2")
    node = w.where("done-0")
    w.running("foreign", node, cpu=4)
    shared = found(w)
    assert names(shared) == {(Invariant.NODE_SHARED_WITHIN_ALLOCATABLE, node)}
    assert shared[0].tolerated_s > 0
    assert "of cpu (4000)" in shared[0].text
    w.delete("foreign")
    assert found(w) == []

    w.gang("more", 1, cpu=9, node=node, attempt="q-3")
    assert names(found(w)) == {(Invariant.NODE_WITHIN_ALLOCATABLE, node)}
    excused = check_all(w.scheduler, w.now_s, excused=frozenset({node}))
    assert excused == [], "when the node shrank it is nobody's fault"


def test_a_pod_of_ours_that_somebody_else_bound_is_not_our_bind(w):
    w.gang("theirs", 1, cpu=9, node="n0")
    assert (Invariant.NODE_WITHIN_ALLOCATABLE, "n0") not in names(found(w))


# Gangs in part


@pytest.fixture
def part():
    """One of two members is bound, by an attempt whose time is over in a minute."""
    w = World()
    w.node("n0")
    w.gang("half", 2)
    plan = w.decide()
    bind = plan.gangs[0].binds[0]
    w.settle(msgspec.structs.replace(plan, gangs=(_only(plan.gangs[0], bind),)))
    return w


def _only(binds, bind):
    return msgspec.structs.replace(binds, binds=(bind,))


def test_a_gang_is_in_part_only_after_its_attempts_time(part):
    assert found(part) == []
    (violation,) = found(part, after_s=75.0)
    assert violation[:2] == (Invariant.GANG_NOT_IN_PART, "team/half")
    assert violation.text == (
        "1 of 2 members are bound, and it was never quorate; the attempt's time was over 15 s ago"
    )
    assert violation.tolerated_s == policy.LATE_TOLERATED_S


def test_a_gang_in_part_without_an_attempt_is_found_at_once(part):
    half = gang(part, key("half"))
    half.lifecycle.attempt = None
    found_now = list(check_gang(part.scheduler, half, part.now_s))
    assert (Invariant.GANG_NOT_IN_PART, "team/half") in names(found_now)


def test_a_gang_that_is_being_undone_has_time_for_it(part):
    half = gang(part, key("half"))
    half.give_up(e for e in half.members.values() if e.where is Where.BOUND)
    (violation,) = found(part, after_s=75.0)
    assert violation.tolerated_s == policy.UNDONE_TOLERATED_S


def test_a_started_gang_that_lost_a_member_is_not_in_part(w):
    w.delete("done-0")
    w.decide()
    assert gang(w, STARTED).bound == 1
    late = {violation.invariant for violation in found(w, after_s=1000.0)}
    assert Invariant.GANG_NOT_IN_PART not in late


def test_large_gangs_are_checked_in_sum_only(w):
    large = gang(w, BLOCKED)
    large.ours = 5
    assert list(check_gang(w.scheduler, large, w.now_s, members_max=8)) == []
    assert names(check_gang(w.scheduler, large, w.now_s, members_max=9))
    large.counts[Where.GATED] = 1
    assert names(check_gang(w.scheduler, large, w.now_s, members_max=8))


def test_news_that_no_decision_has_seen_yet_is_no_violation(w):
    w.pod("new", BLOCKED)
    w.gang("fresh", 2)
    assert found(w) == []
