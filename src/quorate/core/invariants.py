"""Invariants that must hold between any two calls of the core, checked by recounting.

In: a scheduler and the time. Out: ``Violation``s; none when all is well. It changes nothing.
Called by ``shell.report.self_check`` in the running scheduler, a few objects at a time, and by
tests after every step, for all objects. It shares no counting code with the cluster's state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.cluster.gangs.pods import SETTLED, UNDECIDED
from quorate.core.cluster.gangs.runs import NO_RUNS, Runs
from quorate.core.model import GangKey, policy
from quorate.core.model.reasons import Reason
from quorate.core.queue.gate import held_by
from quorate.core.scheduler import Scheduler


class Invariant(StrEnum):
    """The names of what must hold; values of ``quorate_invariant_violations_total{invariant}``."""

    NODE_WITHIN_ALLOCATABLE = "node-within-allocatable"
    """Pods that we bound, taken alone, ask for no more than their node has."""
    NODE_SHARED_WITHIN_ALLOCATABLE = "node-shared-within-allocatable"
    """All pods of a node fit on it; kept apart because two schedulers may race."""
    NODE_COUNTS = "node-counts"
    """The counts of a node equal the sum over its pods."""
    GANG_NOT_IN_PART = "gang-not-in-part"
    """No gang that was never quorate is bound in part (0 < bound < min) after its attempt."""
    GANG_COUNTS = "gang-counts"
    """The counts of a gang equal the sums over its members."""
    POD_IN_ONE_PLACE = "pod-in-one-place"
    """Every pod of ours is in one gang; a waiting pod is in one queue, or held for a reason."""
    ASSUMED_HAS_ATTEMPT = "assumed-has-attempt"
    """A pod is assumed if and only if an attempt waits for the outcome of its bind."""
    HELD_SLOTS = "held-slots"
    """Each reservation is for a gang that still lives, on an existing node, and ends in time."""
    WAITS_WITH_REASON = "waits-with-reason"
    """Every waiting gang has a reason."""


class Violation(NamedTuple):
    """One invariant fails for one object. ``tolerated_s``: for how many seconds it may."""

    invariant: Invariant
    object: str
    text: str
    tolerated_s: float = 0.0


# Nodes


def check_node(cluster: Cluster, name: str, excused: bool = False) -> Iterator[Violation]:
    """Check the counts of one node.

    ``excused``: the node may be overcommitted, since it shrank or a pod grew after the binds.
    """
    row = cluster.nodes.rows.get(name)
    node = cluster.nodes.nodes[row] if row is not None else None
    if row is None or node is None:
        return
    entries = cluster.pods_on(name)
    total, ours = _sum_of(entries), _sum_of([one for one in entries if _is_bound_by_us(one)])
    yield from _check_counts_of_node(cluster, name, row, total)
    allocatable = dict(node.allocatable)
    over = {r: n for r, n in ours.items() if n > allocatable.get(r, 0)}
    shared = {r: n for r, n in total.items() if n > allocatable.get(r, 0) and ours[r]}
    if over and not excused:
        text = f"our pods ask for {_amounts(over, allocatable)}"
        what = Invariant.NODE_WITHIN_ALLOCATABLE
        yield Violation(what, name, text, policy.OVERCOMMIT_TOLERATED_S)
    elif shared and not excused:
        text = f"ours and other pods ask for {_amounts(shared, allocatable)}"
        what = Invariant.NODE_SHARED_WITHIN_ALLOCATABLE
        yield Violation(what, name, text, policy.OVERCOMMIT_TOLERATED_S)


def _check_preemptable(cluster: Cluster, name: str, row: int) -> Iterator[Violation]:
    """Check the amounts of bound pods that preemption uses."""
    if cluster.precedence.bound is None:
        return
    width = len(cluster.resources.names)
    counted = cluster.precedence.bound.below(2**31, np.array([row]), width)[0].tolist()
    total = _sum_of([one for one in cluster.pods_on(name) if one.where in SETTLED])
    for resource, column in cluster.resources.columns.items():
        if counted[column] != total[resource]:
            text = f"{counted[column]} of {resource} could be preempted, not {total[resource]}"
            yield Violation(Invariant.NODE_COUNTS, name, text)


def _check_counts_of_node(
    cluster: Cluster, name: str, row: int, total: Counter[str]
) -> Iterator[Violation]:
    used = cluster.nodes.used(row).tolist()
    for resource, column in cluster.resources.columns.items():
        counted = used[column] if column < len(used) else 0
        if counted != total[resource]:
            text = f"{counted} of {resource} is counted, and its pods ask for {total[resource]}"
            yield Violation(Invariant.NODE_COUNTS, name, text)
    yield from _check_preemptable(cluster, name, row)
    ports: Counter[tuple[str, int, str]] = Counter(
        (port.protocol, port.port, port.ip)
        for entry in cluster.pods_on(name)
        for port in entry.pod.spec.host_ports
    )
    for wanted, times in ports.items():
        protocol, number, ip = wanted
        held = cluster.nodes.ports.get((protocol, number), {}).get(row, Counter())[ip]
        if held != times:
            text = f"host port {number}/{protocol} is counted {held} times and held {times} times"
            yield Violation(Invariant.NODE_COUNTS, name, text)


def _sum_of(entries: list[PodEntry]) -> Counter[str]:
    total: Counter[str] = Counter(pods=len(entries))
    for entry in entries:
        for resource, amount in entry.pod.spec.requests:
            if amount > 0:
                total[resource] += amount
    return total


def _is_bound_by_us(entry: PodEntry) -> bool:
    """Whether our bind put the pod there: it is under way, just accepted, or left its mark."""
    return entry.ours and not (entry.adopted or entry.is_bound_by_others)


def _amounts(over: dict[str, int], allocatable: dict[str, int]) -> str:
    return ", ".join(f"{n} of {r} ({allocatable.get(r, 0)})" for r, n in sorted(over.items()))


# Pods


def check_pod(cluster: Cluster, entry: PodEntry) -> Iterator[Violation]:
    """Check that a pod is in one place, and that an assumed pod has an open attempt."""
    pod, gang = entry.pod, entry.gang
    name = f"{pod.namespace}/{pod.name}"
    if problem := _misplaced(cluster, entry):
        yield Violation(Invariant.POD_IN_ONE_PLACE, name, problem)
    if gang is None:
        return
    awaited = gang.attempt is not None and pod.uid in gang.attempt.open
    if awaited != (entry.where is Where.ASSUMED):
        attempt = "waits" if awaited else "does not wait"
        text = f"it is {entry.where.name}, and its gang's attempt {attempt} for its bind"
        yield Violation(Invariant.ASSUMED_HAS_ATTEMPT, name, text)


def _misplaced(cluster: Cluster, entry: PodEntry) -> str:
    pod, gang = entry.pod, entry.gang
    if gang is None:
        if entry.ours:
            return "it is ours and in no gang"
    elif gang.members.get(pod.uid) is not entry:
        return f"gang {gang.key} does not know it"
    elif cluster.gangs.get(gang.key) is not gang:
        return f"gang {gang.key} is known no more"
    elif (entry.where is Where.WAITING) != (pod.uid in gang.waiting.get(entry.pod_class.id, ())):
        return f"it is {entry.where.name}, and gang {gang.key} has it elsewhere"
    counted = bool(entry.node) and not pod.finished
    if counted != (pod.uid in cluster._on_node.get(entry.node, ())):
        return f"it is {entry.where.name} on {entry.node or 'no node'}, where it is not"
    if entry.row != (cluster.nodes.rows.get(entry.node, -1) if counted else -1):
        return f"it is counted on row {entry.row}, which is not node {entry.node}"
    if entry.where is Where.ASSUMED and not entry.node:
        return "it is assumed on no node"
    return ""


# Gangs


def check_gang(
    scheduler: Scheduler, gang: GangEntry, now_s: float, members_max: int | None = None
) -> Iterator[Violation]:
    """Check one gang; members are recounted if there are at most ``members_max`` of them.

    A gang with changes that no decision has processed yet is not expected in the queues.
    """
    if problem := _miscounted(gang, members_max):
        yield Violation(Invariant.GANG_COUNTS, str(gang.key), problem)
    yield from _check_part(gang, now_s)
    if problem := _misqueued(scheduler, gang, now_s):
        yield Violation(Invariant.POD_IN_ONE_PLACE, str(gang.key), problem)
    if not has_news(scheduler, gang.key):
        yield from _check_reservations(scheduler.cluster, gang, now_s)
    if not gang.members:
        return
    first = next(iter(gang.members.values()))
    if first.gang is not gang:
        text = f"its member {first.pod.name} is not in it"
        yield Violation(Invariant.POD_IN_ONE_PLACE, str(gang.key), text)


def _miscounted(gang: GangEntry, members_max: int | None) -> str:
    if sum(gang.counts) != len(gang.members):
        return f"{sum(gang.counts)} members are counted, and there are {len(gang.members)}"
    waiting = sum(len(alike) for alike in gang.waiting.values())
    if waiting != gang.waits:
        return f"{gang.waits} are counted as waiting, and {waiting} wait"
    if members_max is not None and len(gang.members) > members_max:
        return ""
    entries = gang.members.values()
    places = Counter(entry.where for entry in entries)
    for where in Where:
        if gang.counts[where] != places[where]:
            return f"{gang.counts[where]} are counted as {where.name}, and {places[where]} are"
    evicting = sum(entry.evicting and entry.where is Where.BOUND for entry in entries)
    facts = (
        ("ours", gang.ours, sum(entry.ours for entry in entries)),
        ("alive", gang.alive, sum(entry.is_alive for entry in entries)),
        ("being evicted", gang.lifecycle.evicting, evicting),
        ("leaving", gang.leaving, sum(entry.is_leaving for entry in entries)),
    )
    for what, counted, found in facts:
        if counted != found:
            return f"{counted} are counted as {what}, and {found} are"
    recount = NO_RUNS if gang.key.is_single else Runs()
    for entry in entries:
        recount.count(entry, 1)
    return _misheard(gang) if recount.counts == gang.runs.counts else "its runs are miscounted"


def _misheard(gang: GangEntry) -> str:
    """Recount what the members without a node say of their gang; "" if the counts agree."""
    decided = frozenset(Where) - UNDECIDED - {Where.FOREIGN}
    undecided = [
        entry.pod
        for entry in gang.members.values()
        if entry.where not in decided
        and not (entry.where is Where.FOREIGN and entry.pod.terminating)
    ]
    said = (
        ("priority", gang.priorities, Counter(pod.priority for pod in undecided)),
        ("scheduler", gang.schedulers, Counter(pod.scheduler for pod in undecided)),
        ("min", gang.minima, Counter(p.membership and p.membership.min_count for p in undecided)),
    )
    for what, counted, found in said:
        if counted != found:
            return f"its members' {what} is counted as {dict(counted)}, and is {dict(found)}"
    return ""


def _check_part(gang: GangEntry, now_s: float) -> Iterator[Violation]:
    if gang.started or not 0 < gang.bound < gang.min_count or not gang.quorum_is_known:
        return
    bound = [entry for entry in gang.members.values() if entry.where is Where.BOUND]
    runs = [entry for entry in bound if not entry.pod.finished]
    if not any(_is_bound_by_us(entry) for entry in runs):
        return  # nothing runs, or another scheduler bound it
    text = f"{gang.bound} of {gang.min_count} members are bound, and it was never quorate"
    tolerated_s = policy.LATE_TOLERATED_S
    if all(entry.evicting or entry.pod.terminating for entry in runs):
        tolerated_s = policy.UNDONE_TOLERATED_S
    elif gang.attempt is not None:
        late_s = now_s - gang.attempt.deadline_s
        if late_s <= 0.0:
            return
        text += f"; the attempt's time was over {late_s:.0f} s ago"
    yield Violation(Invariant.GANG_NOT_IN_PART, str(gang.key), text, tolerated_s)


def _check_reservations(cluster: Cluster, gang: GangEntry, now_s: float) -> Iterator[Violation]:
    reservations, missing = (
        cluster.reservations.of(gang.key),
        cluster.reservations.missing(gang.key),
    )
    if not reservations:
        return
    problems = []
    if len(reservations) > missing:
        problems.append(f"{len(reservations)} are held, and {missing} members are missing")
    if not (gang.started or gang.runs.may_go_on):
        problems.append("room is held, and the gang is not started")
    if homeless := [
        reservation.node
        for reservation in reservations
        if reservation.node not in cluster.nodes.rows
    ]:
        problems.append(f"room is held on {homeless[0]}, which is no node")
    for problem in problems:
        yield Violation(Invariant.HELD_SLOTS, str(gang.key), problem)
    late_s = now_s - min(reservation.until_s for reservation in reservations)
    if late_s > 0.0:
        text = f"room is held {late_s:.0f} s after its time"
        yield Violation(Invariant.HELD_SLOTS, str(gang.key), text, policy.LATE_TOLERATED_S)


def has_news(scheduler: Scheduler, key: GangKey) -> bool:
    """Whether the gang has changes that no decision has processed yet."""
    return key in scheduler.cluster.touched or scheduler.advance.is_left(key)


def _misqueued(scheduler: Scheduler, gang: GangEntry, now_s: float) -> str:
    key, queue = gang.key, scheduler.queue
    if has_news(scheduler, key):
        return ""
    places = [
        name
        for name, keys in (
            ("ready", queue.ready),
            ("blocked", queue.blocked),
            ("backing off", queue.backing_off),
            ("searched for", queue.searching),
        )
        if key in keys
    ]
    if len(places) > 1:
        return f"it is {' and '.join(places)} at once"
    if places or not gang.waits:
        return ""
    reason = held_by(gang, scheduler.cluster, now_s)
    if reason in (Reason.NONE, Reason.BACKING_OFF):
        return f"{gang.waits} of its members wait in no queue"
    return ""
