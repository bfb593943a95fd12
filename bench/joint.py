"""Measure the joint search: gangs of several classes, on nodes of which much is taken.

Prints how many are placed by greedy order, how many by search, how many provably do not fit, how
many searches were cut short, and the CPU time of the decisions. ``random_case`` asks for whatever
may or may not fit. ``planted_case`` places the members first, pod after pod by the filters alone,
then fills what is left: so there is a placement, and little else; a property test uses it too.
Usage: python -m bench.joint [gangs] [seed].
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import (
    HostPort,
    LabelSelector,
    Node,
    Pod,
    PodSelector,
    PodSpec,
    PodTerm,
    Requirement,
    SpreadConstraint,
)
from quorate.core.model.changes import NodeChanged, PodChanged
from quorate.core.model.policy import Policy
from quorate.core.model.steps import Steps
from quorate.core.place import gang, greedy
from quorate.core.place.greedy import Demand
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import pod_slots

HOST, RACK, ZONE = "kubernetes.io/hostname", "rack", "topology.kubernetes.io/zone"
ROLES = tuple(f"role-{number}" for number in range(8))


class Case(NamedTuple):
    """One gang and the room for it."""

    demand: Demand
    room: Room


def _selector(**wanted: str) -> PodSelector:
    labels = tuple(Requirement(key, "In", (value,)) for key, value in sorted(wanted.items()))
    return PodSelector(("team",), LabelSelector(labels))


def _add_role(cluster: Cluster, number: int, spec: PodSpec) -> None:
    labels = (("job", "j"), ("role", ROLES[number]))
    pod = Pod(f"m{number}", "team", f"m{number}", "quorate", spec, labels=labels)
    cluster.apply(PodChanged(pod))


def _add_filler(cluster: Cluster, node: str, requests: tuple[tuple[str, int], ...]) -> None:
    spec = PodSpec(requests)
    cluster.apply(PodChanged(Pod(f"b-{node}", "other", f"b-{node}", "x", spec, node=node)))


def _class_of(cluster: Cluster, number: int) -> PodClass:
    entry = cluster.pods[f"m{number}"]
    return cluster.classes.variant(entry.pod_class, cluster.neighbours.matched(entry.label_set))


def _case(cluster: Cluster, counts: Counter[int]) -> Case:
    found: Counter[PodClass] = Counter()
    for role, count in counts.items():
        found[_class_of(cluster, role)] += count
    room = Room(cluster.snapshot(), RuleCache())
    return Case(Demand(tuple((+found).items()), counts.total()), room)


# Whatever comes


def random_case(seed: int, nodes: int = 200) -> Case:
    """Return a gang of up to 64 members in up to 8 classes on partly full nodes."""
    chance = random.Random(seed)
    cluster = _partly_full(chance, nodes)
    classes = chance.randint(2, 8)
    members = chance.randint(classes, 64)
    counts = Counter(chance.randrange(classes) for _ in range(members))
    for number in counts:
        gpu = chance.choice([0, 0, 1, 4, 8])
        cpu = chance.choice([1, 1, 2, 4, 7, 8, 12]) * 1000
        spec = PodSpec((("cpu", cpu), ("gpu", gpu)), **_random_terms(chance, ROLES[number]))
        _add_role(cluster, number, spec)
    return _case(cluster, counts)


def _partly_full(chance: random.Random, nodes: int) -> Cluster:
    """Return nodes of two sizes in zones and racks."""
    cluster = Cluster(("quorate",))
    zones = chance.choice([1, 3, 3, 4, 8])
    for number in range(nodes):
        rack = number * 40 // nodes
        large = chance.random() < 0.3
        node = Node(
            f"n{number}",
            (("cpu", 32_000 if large else 8_000), ("gpu", 8 if large else 0), ("pods", 110)),
            ((HOST, f"n{number}"), (RACK, f"r{rack}"), (ZONE, f"z{rack % zones}")),
        )
        cluster.apply(NodeChanged(node))
        used = chance.choice([0, 0, 4, 7, 7, 8] if not large else [0, 8, 24, 31, 32])
        if used:
            gpu = chance.choice([0, 4, 8]) * large
            _add_filler(cluster, node.name, (("cpu", used * 1000), ("gpu", gpu)))
    return cluster


def _random_terms(chance: random.Random, role: str) -> dict[str, Any]:
    """Return what a role asks of others, as training and serving jobs do."""
    job, own = _selector(job="j"), _selector(job="j", role=role)
    terms: dict[str, Any] = {}
    if chance.random() < 0.5:
        whom, by = chance.choice([(own, HOST), (own, HOST), (job, HOST), (own, RACK)])
        terms["anti_affinity"] = (PodTerm(whom, by),)
    if chance.random() < 0.4:
        terms["affinity"] = (PodTerm(job, chance.choice([ZONE, ZONE, RACK])),)
    if chance.random() < 0.3:
        whom, by = chance.choice([(own, ZONE), (job, ZONE), (own, RACK)])
        terms["spread"] = (SpreadConstraint(chance.choice([1, 1, 2]), by, True, whom),)
    return terms


# Planted


def planted_case(
    seed: int, *, extra: int = 0, classes_max: int = 8, members: tuple[int, int] = (2, 64)
) -> Case:
    """Return a gang for which there is a placement; with ``extra`` members more, perhaps none."""
    chance = random.Random(seed)
    cluster = _empty(chance, chance.choice([12, 30, 60, 200] if members[0] < 200 else [400, 600]))
    roles = range(chance.randint(2, classes_max))
    for role in roles:
        cpu = chance.choice([1, 1, 2, 3, 4, 5, 7, 8, 12]) * 1000
        gpu, memory = chance.choice([0, 0, 1, 2, 4, 8]), chance.choice([0, 1, 8, 16, 31])
        requests = (("cpu", cpu), ("gpu", gpu), ("memory", memory))
        _add_role(cluster, role, PodSpec(requests, **_planted_terms(chance, role, len(roles))))
    room = Room(cluster.snapshot(), RuleCache())
    classes = [_class_of(cluster, role) for role in roles]
    placed = _plant(chance, room, classes, members)
    fullness = chance.choice([0, 0.5, 0.8, 0.95, 1])
    names = room.snapshot.table.resources.names
    for row, free in enumerate(room.free.tolist()):
        if chance.random() < fullness:
            left = dict(zip(names, free, strict=True))
            asked = tuple((name, left[name]) for name in ("cpu", "gpu", "memory") if left[name] > 0)
            _add_filler(cluster, f"n{row}", asked)
    for _ in range(extra if placed else 0):
        placed[chance.choice(sorted(placed))] += 1
    return _case(cluster, Counter(dict(sorted(placed.items()))))


def _empty(chance: random.Random, nodes: int) -> Cluster:
    cluster = Cluster(("quorate",))
    zones = chance.choice([1, 3, 3, 4, 8])
    racks = max(zones, nodes // chance.choice([3, 5, 10]))
    for number in range(nodes):
        rack = number * racks // nodes
        large = chance.random() < 0.3
        has = (
            ("cpu", chance.choice([32_000, 64_000]) if large else 8_000),
            ("gpu", 8 if large else 0),
            ("memory", 256 if large else chance.choice([32, 64])),
            ("pods", 110),
        )
        labels = ((HOST, f"n{number}"), (RACK, f"r{rack}"), (ZONE, f"z{rack % zones}"))
        cluster.apply(NodeChanged(Node(f"n{number}", has, labels)))
    return cluster


def _planted_terms(chance: random.Random, role: int, roles: int) -> dict[str, Any]:
    """Return rules of every kind, towards the own role, the job and another role."""
    own, job = _selector(job="j", role=ROLES[role]), _selector(job="j")
    other = _selector(job="j", role=ROLES[chance.randrange(roles)])
    terms: dict[str, Any] = {}
    if chance.random() < 0.5:
        some = [(own, HOST), (own, HOST), (job, HOST), (own, RACK), (other, HOST), (other, RACK)]
        picked = dict.fromkeys(chance.choice(some) for _ in range(chance.choice([1, 1, 2])))
        terms["anti_affinity"] = tuple(PodTerm(*one) for one in picked)
    if chance.random() < 0.4:
        by = chance.choice([ZONE, ZONE, RACK, HOST])
        terms["affinity"] = (PodTerm(chance.choice([job, job, other]), by),)
    if chance.random() < 0.4:
        counted = {}
        for _ in range(chance.choice([1, 1, 2])):
            whom, by = chance.choice([(own, ZONE), (job, ZONE), (own, RACK), (own, HOST)])
            counted[by] = whom
        terms["spread"] = tuple(
            SpreadConstraint(
                chance.choice([1, 1, 2, 3]), by, True, whom, min_domains=chance.choice([1, 1, 1, 3])
            )
            for by, whom in counted.items()
        )
    if chance.random() < 0.15:
        terms["host_ports"] = (HostPort("TCP", "0.0.0.0", chance.choice([80, 81])),)
    return terms


def _plant(
    chance: random.Random, room: Room, classes: list[PodClass], members: tuple[int, int]
) -> Counter[int]:
    """Place some members somewhere, one after the other; return how many of each role."""
    wanted = Counter(chance.randrange(len(classes)) for _ in range(chance.randint(*members)))
    placed: Counter[int] = Counter()
    keeps_together = chance.random()
    used: set[int] = set()
    while left := sorted(role for role, count in wanted.items() if placed[role] < count):
        role = chance.choice(left)
        rows = np.flatnonzero(pod_slots(classes[role], room)).tolist()
        if not rows:
            wanted[role] = placed[role]
            continue
        near = [row for row in rows if row in used]
        row = chance.choice(near if near and chance.random() < keeps_together else rows)
        used.add(row)
        room.take_at(classes[role], np.array([row]), np.ones(1, np.int64))
        placed[role] += 1
    return placed


# Figures

CASES: dict[str, Callable[[int], Case]] = {
    "random": random_case,
    "planted": planted_case,
    "planted, 2 or 3 classes": partial(planted_case, classes_max=3),
    "planted, 2 or 3 classes, 200 to 400 members": partial(
        planted_case, classes_max=3, members=(200, 400)
    ),
    "planted and one more": partial(planted_case, extra=1),
}


def main() -> None:
    given = sys.argv[1:]
    gangs, seed = (int(text) for text in (*given, *("200", "1")[len(given) :]))
    for name, make in CASES.items():
        outcomes: Counter[str] = Counter()
        seconds = []
        for number in range(seed * 1_000_000, seed * 1_000_000 + gangs):
            outcome, took_s = decide(make(number))
            outcomes[outcome] += 1
            seconds.append(took_s)
        seconds.sort()
        median, late = (seconds[int(len(seconds) * part)] * 1e3 for part in (0.5, 0.95))
        times = f"median {median:.0f}, p95 {late:.0f}, slowest {seconds[-1] * 1e3:.0f} ms"
        print(f"{name}: {gangs} gangs: {dict(sorted(outcomes.items()))}; {times}")


def decide(case: Case) -> tuple[str, float]:
    """Return what became of the gang, and the CPU time of the decision in seconds."""
    demand, room = case
    if not demand.need:
        return "empty", 0.0
    classes = greedy.largest_first(demand.classes, room)
    first = greedy.place_in_order(classes, demand, room, "most-allocated", Steps(0))
    started_s = time.process_time()
    found = gang.place_gang(demand, room, "most-allocated", Policy().search_steps_max)
    took_s = time.process_time() - started_s
    if isinstance(found, gang.DoesNotFit):
        return "cut short" if found.exhausted else "does not fit", took_s
    return "greedy" if first.placed >= demand.need else "search", took_s


if __name__ == "__main__":
    main()
