"""The core's answer to a case of the oracle: verdicts of filters, and the sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import Where
from quorate.core.model.changes import AnyChange
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.place.members import members_of
from quorate.core.place.one_pod.nominated import judge_nodes
from quorate.core.preempt.preemption import NodeResults, VictimChoice, preempt
from quorate.core.room.promises import Promises
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import verdicts
from quorate.core.rules.rule import Rule
from quorate.core.rules.table import FILTERS
from quorate.core.rules.verdict import Verdict
from quorate.core.words.diagnosis import nodes_ruled_out
from quorate.dialects.base import Malformed
from quorate.shell.watch.objects import watched_kinds

Case = Mapping[str, Any]
SCHEDULER = "default-scheduler"


class Clearing(msgspec.Struct):
    """What preemption would do on a node: delete these (``namespace/name``), against budgets."""

    victims: list[str]
    violations: int


class Preempting(msgspec.Struct):
    """The node that preemption would clear ("": none), and what it could clear.

    ``said`` is why it clears none, as kube-scheduler's PostFilter says it.
    """

    node: str
    candidates: dict[str, Clearing]
    said: str


class Answer(msgspec.Struct):
    """What the core says.

    ``filters`` holds for each node and rule ``(code, reasons)`` where the node does not pass.
    """

    filters: dict[str, dict[str, tuple[str, tuple[str, ...]]]]
    feasible: list[str]
    message: str
    preemption: Preempting | None = None
    held: str = ""
    """Why the pod is not looked at by filters at all."""


def answer(case: Case, rules: Iterable[Rule] = FILTERS) -> Answer:
    """Put the case's objects through the production decoders into a core, and ask its rules."""
    cluster = Cluster([SCHEDULER], {SCHEDULER: KUBE_SCHEDULER})
    for change in changes_of(case):
        cluster.apply(change)
    pending = case["pod"]["metadata"]
    entry = next(
        e
        for e in cluster.pods.values()
        if (e.pod.namespace, e.pod.name) == (pending["namespace"], pending["name"])
    )
    if entry.where is not Where.WAITING:
        return Answer({}, [], "", held=entry.pod.defect or entry.where.name)
    assert entry.gang is not None, "a pod of ours is in a gang"
    (pod_class,) = members_of(entry.gang, cluster)
    room = Room(cluster.snapshot(), RuleCache())
    judged = list(verdicts(pod_class, room, rules))
    rows = cluster.nodes.rows
    filters: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {name: {} for name in rows}
    for rule, verdict in judged:
        for name, row in rows.items():
            if verdict.codes[row]:
                filters[name][rule] = _of_node(verdict, row)
    promises = Promises.of(cluster)
    promised = promises.to_others(entry.pod.priority, entry)
    feasible = judge_nodes(pod_class, room, cluster, promised).feasible
    found = Answer(
        filters=filters,
        feasible=sorted(name for name, row in rows.items() if feasible[row]),
        message="",
    )
    if found.feasible or not rows:
        return found
    outcome = preempt(entry, pod_class, room, promises, promised, NodeResults())
    found.preemption = _preempting(outcome, room)
    said = f" {outcome.message}" if outcome.message else ""
    found.message = nodes_ruled_out(pod_class, room, cluster, promised) + said
    return found


def _preempting(outcome: VictimChoice, room: Room) -> Preempting:
    return Preempting(
        node=room.snapshot.node(outcome.chosen.row).name if outcome.chosen else "",
        candidates={
            room.snapshot.node(one.row).name: Clearing(
                [f"{v.pod.namespace}/{v.pod.name}" for v in one.victims],
                one.violations,
            )
            for one in outcome.candidates
        },
        said=outcome.message,
    )


def changes_of(case: Case) -> list[AnyChange]:
    """Return the changes that the watchers would make of the case's objects."""
    decoders = {}
    for kind in watched_kinds(frozenset([SCHEDULER])).values():
        decoders[kind.resource.kind] = kind.changed
    changes = []
    waiting = [
        one["pod"] | {"status": {"nominatedNodeName": one["node"]}}
        for one in case.get("nominated", ())
    ]
    pods = [one | {"kind": "Pod"} for one in (*case.get("pods", ()), *waiting, case["pod"])]
    nodes = [one | {"kind": "Node"} for one in case["nodes"]]
    for one in (*case.get("objects", ()), *nodes, *pods):
        decode = decoders.get(one["kind"])
        if decode is None:
            continue
        try:
            changes.append(decode(json.dumps(_with_identity(one)).encode()))
        except Malformed as error:
            raise AssertionError(f"a case with an object that cannot be read: {error}") from error
    return changes


def _with_identity(one: Case) -> Case:
    meta = one["metadata"]
    where = f"{meta.get('namespace', '')}/{meta['name']}"
    return {**one, "metadata": {"uid": where, "creationTimestamp": None, **meta}}


def _of_node(verdict: Verdict, row: int) -> tuple[str, tuple[str, ...]]:
    refusal = verdict.refusals[verdict.codes[row] - 1]
    code = "Unschedulable" if refusal.resolvable else "UnschedulableAndUnresolvable"
    if verdict.several:
        return code, tuple(sorted(text for text, nodes in verdict.several if nodes[row]))
    return code, (refusal.message,)
