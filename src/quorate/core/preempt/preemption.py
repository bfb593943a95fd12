"""Make room for a pod that fits nowhere by deleting pods of lower priority on one node.

In: the pod, the room, the cluster. Out: the node and its victims, or why no node helps. Called by
``cycle_preemptions`` for pods of no gang under a profile of kube-scheduler's. Source of every rule:
kube-scheduler 1.36's DefaultPreemption and its evaluator. Two differences: the node where the
search starts is not random, and pods whose gang's binds are under way are never victims.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy
from quorate.core.model.reasons import RuledOut, available
from quorate.core.model.steps import GoesOnError, Steps, costs
from quorate.core.place.one_pod.nominated import NodeVerdicts, judge_nodes
from quorate.core.place.one_pod.trial import Trial
from quorate.core.room.promises import Promised, Promises
from quorate.core.room.room import Room
from quorate.core.rules.devices import dynamic_resources
from quorate.core.rules.resources import node_ports, node_resources_fit
from quorate.core.rules.table import ASKED_BY_NODE, ON_PODS

_UNHELPFUL = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NEVER = "not eligible due to preemptionPolicy=Never."
_WAITS = "not eligible due to a terminating pod on the nominated node."
_NO_CLAIMS = "no new claims to deallocate"
_STILL = "still not schedulable"
_TAKEN_BACK = "deallocation of ResourceClaim completed"
_DEVICES = dynamic_resources.RULE.name
_LOWEST_PRIORITY = -(2**31)
_LAST = "~"
"""Sorts after every timestamp: a pod without a start time counts as the youngest."""


class Candidate(NamedTuple):
    """A node that would take the pod without its ``victims``, the most important one first."""

    row: int
    victims: tuple[PodEntry, ...]
    violations: int
    """The number of victims whose disruption budgets are violated."""
    cost: tuple[int, int, int, int]


NodeResult = Candidate | tuple[str, ...]
"""The candidate, or the reasons why the node is not one."""


class StateVersion(NamedTuple):
    """The state that results refer to: a version of node attributes, and positions in two logs."""

    version: tuple[int, int]
    rows: int
    selectors: int

    @classmethod
    def now(cls, room: Room) -> StateVersion:
        """Return the present version and positions."""
        table, neighbours = room.snapshot.table, room.snapshot.neighbours
        return cls(
            room.rule_cache.version_of(room.snapshot), table.log.position, neighbours.log.position
        )


@dataclass(slots=True)
class NodeResults:
    """Results of a search by row, for one class and priority.

    A result is valid until the row or its nominations change, or the pod counts that the class's
    rules read.
    """

    by_row: dict[int, NodeResult] = field(default_factory=dict)
    earlier: set[int] = field(default_factory=set)
    """Rows that an earlier turn examined: if one is chosen, it is examined again."""
    since: tuple[int, int] = (0, 0)
    """The state when the first of these rows was examined; see ``CyclePreemptions._versions``."""
    start: int = 0
    """The node at which every turn of the search starts."""
    valid_at: StateVersion | None = None
    """None: the search has not ended, so its results are used even if some are outdated."""

    def is_valid(self, pod_class: PodClass, room: Room) -> bool:
        """Drop the rows that changed; return False if all results are invalid."""
        if self.valid_at is None:
            return True
        rows = room.snapshot.table.log.since(self.valid_at.rows)
        changed_selectors = room.snapshot.neighbours.log.since(self.valid_at.selectors)
        if rows is None or changed_selectors is None or self.valid_at.version != room.version:
            return False
        for row in rows:
            self.forget(row)
        return room.snapshot.neighbours.deciding_selectors(pod_class).isdisjoint(changed_selectors)

    def forget(self, row: int) -> None:
        """Drop the result of a row."""
        self.by_row.pop(row, None)
        self.earlier.discard(row)

    def forget_new(self) -> None:
        """Keep only the results of earlier turns."""
        self.by_row = {row: self.by_row[row] for row in self.earlier}


@dataclass(slots=True)
class VictimChoice:
    """The result: the chosen candidate, or why there is none, in kube-scheduler's words."""

    chosen: Candidate | None = None
    candidates: tuple[Candidate, ...] = ()
    """All candidates that were found."""
    message: str = ""
    keeps_nomination: bool = False
    """Whether an earlier nomination stays, although no candidate was found."""


@dataclass(slots=True)
class _Search:
    """The search for victims of one pod."""

    entry: PodEntry
    pod_class: PodClass
    room: Room
    promises: Promises
    promised: Promised
    seen: NodeVerdicts
    results: NodeResults
    steps: Steps
    until: int
    """The steps after which no further node is examined in this turn."""
    reasons: Counter[str] = field(default_factory=Counter)
    has_learnt: bool = False
    """Whether a node was examined."""


def preempt(
    entry: PodEntry,
    pod_class: PodClass,
    room: Room,
    promises: Promises,
    promised: Promised,
    results: NodeResults,
    avoided: Collection[int] = (),
) -> VictimChoice:
    """Return the node to clear for the pod, and its victims. Deletes nothing.

    ``results`` has the results so far: its rows are not examined again, new results are added, and
    it names the node to start at. ``avoided`` rows are not candidates. Raises GoesOnError if the
    turn ends first: call again with the same ``results`` to continue.
    """
    cluster = promises.cluster
    if not room.snapshot.nodes_alive:
        return VictimChoice()  # of no nodes kube-scheduler says nothing about preemption
    seen = judge_nodes(pod_class, room, cluster, promised)
    seen.resolvable[list(avoided)] = False
    if seen.unresolvable_by not in ("", _DEVICES):
        # DynamicResources' PostFilter fails on its own state.
        return VictimChoice(message="not found")
    prefix = f"{_of_claims(entry, seen, room, cluster)}, preemption: "
    if entry.pod.never_preempts:
        return VictimChoice(message=prefix + _NEVER, keeps_nomination=True)
    if _waits_for_victims(entry, promises, seen):
        return VictimChoice(message=prefix + _WAITS, keeps_nomination=True)
    if not set(seen.rules) <= ASKED_BY_NODE | ON_PODS:  # other rules read pods of other nodes
        results.forget_new()
    steps = room.steps or Steps(sys.maxsize)
    until = steps.taken + max(steps.left, policy.SEARCH_STEPS_MIN, 1)
    search = _Search(entry, pod_class, room, promises, promised, seen, results, steps, until)
    found = _candidates(search)
    while (chosen := _best(found)) is not None and chosen.row in results.earlier:
        _learn(chosen.row, search)
        found = _candidates(search)
    message = "" if found else prefix + _no_candidates(search)
    return VictimChoice(chosen, tuple(found), message)


def _of_claims(entry: PodEntry, seen: NodeVerdicts, room: Room, cluster: Cluster) -> str:
    """Return the message of DynamicResources' PostFilter.

    It does not see claims that PreFilter rejects. Allocations that keep the pod from a node are
    deallocated (``device_claim_writes.take_backs``) if they are reserved for no other pod.
    """
    uses = entry.pod.device_claims
    if seen.unresolvable_by or _DEVICES not in seen.rules:
        return _NO_CLAIMS
    place = seen.rules.index(_DEVICES)
    verdict = seen.verdicts[place]
    refused = room.snapshot.alive.copy()
    for earlier in seen.verdicts[:place]:
        refused &= earlier.codes == 0
    refused &= verdict.codes == verdict.refusals.index(dynamic_resources.NOT_AVAILABLE) + 1
    for use in uses:
        claim = cluster.devices.claims.get((entry.pod.namespace, use.claim or ""))
        if claim is None or claim.allocation is None:
            continue
        reached = dynamic_resources.reaches(claim.allocation.nodes, room)
        if (refused & ~reached).any() and set(claim.reserved_for) <= {entry.pod.uid}:
            return _TAKEN_BACK
    return _STILL


def _waits_for_victims(entry: PodEntry, promises: Promises, seen: NodeVerdicts) -> bool:
    """Whether victims of this pod are being deleted on a node that may still take it."""
    node = promises.nominated.node_of(entry.pod.uid)
    row = promises.cluster.nodes.rows.get(node, -1)
    if row < 0 or not seen.resolvable[row]:
        return False
    return any(
        other.pod.priority < entry.pod.priority and promises.is_victim(other)
        for other in promises.cluster.pods_on(node)
    )


def _no_candidates(search: _Search) -> str:
    nodes, counts = search.room.snapshot.nodes_alive, search.reasons
    counts[_UNHELPFUL] += nodes - int(search.seen.resolvable.sum())
    ruled_out = tuple(RuledOut(text, count) for text, count in counts.items() if count)
    return available(nodes, ruled_out)


# Candidates


def _candidates(search: _Search) -> list[Candidate]:
    """Return enough candidates, those without violated budgets first."""
    search.reasons.clear()
    possible = np.flatnonzero(search.seen.resolvable)
    if not len(possible):
        return []
    wanted = max(len(possible) // 10, policy.PREEMPTION_CANDIDATES_FEW)
    wanted = min(wanted, len(possible))
    found: list[Candidate] = []
    refused: Counter[tuple[str, ...]] = Counter()
    rows = _worth_a_trial(np.roll(possible, -(search.results.start % len(possible))), search)
    by_row = search.results.by_row
    for row in rows.tolist():
        candidate = by_row[row] if row in by_row else _learn(row, search)
        if not isinstance(candidate, Candidate):
            refused[candidate] += 1
            continue
        found.append(candidate)
        if len(found) >= wanted and any(not one.violations for one in found):
            break
    search.steps.take((len(found) + refused.total()) // costs.KNOWN_NODES_PER_STEP)
    for texts, nodes in refused.items():
        search.reasons.update(dict.fromkeys(texts, nodes))
    return sorted(found, key=lambda one: one.violations > 0)


def _learn(row: int, search: _Search) -> NodeResult:
    """Examine a node, and store the result: one in each turn, whatever else took its steps."""
    if search.has_learnt and search.steps.taken >= search.until:
        raise GoesOnError
    search.has_learnt = True
    answer = search.results.by_row[row] = _on_node(row, search)
    search.results.earlier.discard(row)
    return answer


def _worth_a_trial(rows: Ints, search: _Search) -> Ints:
    """Return the rows, in order, where pods of lower priority use at least what is missing."""
    bound = search.promises.cluster.precedence.bound
    priority = search.entry.pod.priority
    if bound is None:
        return rows[:0]
    has_victims = bound.has_below(priority, rows)
    search.reasons[_NO_VICTIMS] += int((~has_victims).sum())
    rows = rows[has_victims]
    rules = search.seen.rules
    if node_ports.RULE.name in rules or node_resources_fit.RULE.name not in rules:
        return rows  # another rule may be the first to refuse
    free = search.room.free[rows]
    free = free + bound.below(priority, rows, free.shape[1])
    is_short = np.zeros(len(rows), np.bool_)
    exact = np.isin(rows, list(search.promised))
    names = search.room.snapshot.table.resources.names
    for message, lacks in node_resources_fit.lacking(search.pod_class, free, names).items():
        is_short |= lacks & ~exact
        search.reasons[message] += int((lacks & ~exact).sum())
    return rows[~is_short]


def _on_node(row: int, search: _Search) -> NodeResult:
    """Return the fewest, least important pods whose deletion lets the pod in, or why none do."""
    promises, priority = search.promises, search.entry.pod.priority
    cluster = promises.cluster
    name = search.room.snapshot.node(row).name
    there = cluster.pods_on(name)
    search.steps.take(1 + len(there) // costs.VICTIM_PODS_PER_STEP)
    possible = [one for one in there if one.pod.priority < priority and promises.may_be_victim(one)]
    if not possible:
        return (_NO_VICTIMS,)
    trial = Trial(
        search.pod_class,
        row,
        search.room,
        cluster,
        search.seen.rules,
        search.promised.get(row, ()),
    )
    for one in possible:
        trial.remove(one)
    refused = trial.refused()
    if refused is not None:
        return refused.texts
    possible.sort(key=importance)
    violating, others = cluster.precedence.budgets.split(possible)
    victims = _not_reprieved(violating, trial)
    violations = len(victims)
    victims += _not_reprieved(others, trial)
    victims.sort(key=importance)
    return Candidate(row, tuple(victims), violations, _cost(victims, violations)) if victims else ()


def _not_reprieved(pods: list[PodEntry], trial: Trial) -> list[PodEntry]:
    """Put back each pod that leaves the preemptor room; return the others."""
    victims = []
    for one in pods:
        trial.add(one)
        if trial.refused() is not None:
            trial.remove(one)
            victims.append(one)
    return victims


def importance(entry: PodEntry) -> tuple[int, str, float, str]:
    """Return the sort key of pods, most important first: higher priority, then earlier start."""
    pod = entry.pod
    return -pod.priority, pod.start_time or _LAST, pod.created_s, pod.uid


# The choice


def _best(candidates: list[Candidate]) -> Candidate | None:
    """Return the cheapest candidate by kube-scheduler's criteria; the first of equals."""
    least = min((one.cost for one in candidates), default=None)
    cheapest = [one for one in candidates if one.cost == least]
    return max(cheapest, key=_oldest_start, default=None)


def _cost(victims: list[PodEntry], violations: int) -> tuple[int, int, int, int]:
    """Return violated budgets, the highest priority, the sum of (positive) priorities, pods."""
    priorities = [victim.pod.priority for victim in victims]
    total = sum(priority - _LOWEST_PRIORITY for priority in priorities)
    return violations, max(priorities), total, len(priorities)


def _oldest_start(one: Candidate) -> str:
    """Return the earliest start among the most important victims: a later one is cheaper."""
    highest = one.victims[0].pod.priority
    return min(v.pod.start_time or _LAST for v in one.victims if v.pod.priority == highest)
