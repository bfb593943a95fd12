"""Measure the joint search: random gangs of up to 64 members in up to 8 classes on 200 nodes.

Prints how many are placed by greedy order, how many by search, how many provably do not fit, how
many searches were cut short, and the slowest decision. Usage: python -m bench.joint [gangs] [seed].
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from typing import Any

from quorate.core.changes import NodeChanged, PodChanged
from quorate.core.model import (
    LabelSelector,
    Node,
    Pod,
    PodSelector,
    PodShape,
    PodTerm,
    Requirement,
    SpreadConstraint,
)
from quorate.core.plan import gang
from quorate.core.plan.filters import AttributeMasks
from quorate.core.plan.room import Room
from quorate.core.policy import Policy
from quorate.core.state.cluster import Cluster

HOST, RACK, ZONE = "kubernetes.io/hostname", "rack", "topology.kubernetes.io/zone"
ROLES = tuple(f"role-{number}" for number in range(8))


def selector(**wanted: str) -> PodSelector:
    """Return a selector of pods by labels, in the gang's namespace."""
    labels = tuple(Requirement(key, "In", (value,)) for key, value in sorted(wanted.items()))
    return PodSelector(("team",), LabelSelector(labels))


def cluster_of(chance: random.Random, nodes: int) -> Cluster:
    """Return nodes of two sizes in zones and racks, each partly full."""
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
            shape = PodShape((("cpu", used * 1000), ("gpu", chance.choice([0, 4, 8]) * large)))
            busy = Pod(f"busy-{number}", "other", f"busy-{number}", "x", shape, node=node.name)
            cluster.apply(PodChanged(busy))
    return cluster


def role_terms(chance: random.Random, role: str) -> dict[str, Any]:
    """Return what a role asks of others, as training and serving jobs do."""
    job, own = selector(job="j"), selector(job="j", role=role)
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


def case(seed: int, nodes: int = 200) -> tuple[gang.Demand, Room]:
    """Return one gang and the room for it."""
    chance = random.Random(seed)
    cluster = cluster_of(chance, nodes)
    classes = chance.randint(2, 8)
    members = chance.randint(classes, 64)
    counts = Counter(chance.randrange(classes) for _ in range(members))
    for number in counts:
        gpu = chance.choice([0, 0, 1, 4, 8])
        cpu = chance.choice([1, 1, 2, 4, 7, 8, 12]) * 1000
        shape = PodShape((("cpu", cpu), ("gpu", gpu)), **role_terms(chance, ROLES[number]))
        labels = (("job", "j"), ("role", ROLES[number]))
        pod = Pod(f"m{number}", "team", f"m{number}", "quorate", shape, labels=labels)
        cluster.apply(PodChanged(pod))
    found = {}
    for number, count in counts.items():
        entry = cluster.pods[f"m{number}"]
        matched = cluster.neighbours.matched(entry.label_set)
        found[cluster.classes.matching(entry.pod_class, matched)] = count
    demand = gang.Demand(tuple(found.items()), members)
    return demand, Room(cluster.snapshot(), AttributeMasks())


def main() -> None:
    gangs, seed = (int(text) for text in (*sys.argv[1:], "200", "1")[:2])
    outcomes: Counter[str] = Counter()
    slowest_s = 0.0
    steps_max = Policy().search_steps_max
    for number in range(seed * 1_000_000, seed * 1_000_000 + gangs):
        demand, room = case(number)
        greedy = gang._greedy(gang._largest_first(demand.classes, room), room, "most-allocated")
        started_s = time.process_time()
        found = gang.place_gang(demand, room, "most-allocated", steps_max)
        slowest_s = max(slowest_s, time.process_time() - started_s)
        if isinstance(found, gang.DoesNotFit):
            outcomes["cut short" if found.exhausted else "does not fit"] += 1
        else:
            outcomes["greedy" if greedy.placed >= demand.need else "search"] += 1
    print(f"{gangs} gangs: {dict(sorted(outcomes.items()))}; slowest {slowest_s * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
