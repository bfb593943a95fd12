"""Planning against slow and plain references: filters, fit by brute force, and the packing."""

import random
import re
from itertools import product

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import (
    GangSpec,
    Membership,
    Node,
    Pod,
    PodSpec,
    PreferredTerm,
    Requirement,
    SelectorTerm,
    Taint,
    Toleration,
)
from quorate.core.model.changes import GangChanged, NodeChanged, PodChanged
from quorate.core.model.policy import Policy
from quorate.core.place.packing.fill import fill
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import pod_slots
from quorate.core.rules.masks import mask_of
from quorate.core.rules.scoring import standing_score
from quorate.core.scheduler import Scheduler
from tests.property.seeds import drawn, seeds
from tests.property.worlds.shapes import Taste, random_node, random_spec
from tests.unit.core.world import TEAM, key

TASTE = Taste(cpu=(0, 1, 2, 3), selector=0.4, tolerates=0.35, ports=0.2, gpu=0.2, memory=0.3)
packings = st.sampled_from(["most-allocated", "least-allocated"])
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
ODD_NUMBERS = ("+1", "-2", "002", "1_0", "\uff11", str(2**63))
"""Python's ``int`` reads them all; Go's ParseInt the first three."""
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

# The reference: one pod, one node, plain Python, as kube-scheduler 1.36 decides.


def tolerated(taint, tolerations):
    for t in tolerations:
        effect_ok = not t.effect or t.effect == taint.effect
        key_ok = not t.key or t.key == taint.key
        value_ok = t.operator == "Exists" or (
            t.operator in ("", "Equal") and t.value == taint.value
        )
        if effect_ok and key_ok and value_ok:
            return True
    return False


def number(text):
    if re.fullmatch("[-+]?[0-9]+", text) is None or not -(2**63) <= int(text) < 2**63:
        return None
    return int(text)


def holds(requirement, labels):
    has, value = requirement.key in labels, labels.get(requirement.key, "")
    if requirement.operator == "In":
        return has and value in requirement.values
    if requirement.operator == "NotIn":
        return not has or value not in requirement.values
    if requirement.operator == "Exists":
        return has
    if requirement.operator == "DoesNotExist":
        return not has
    if requirement.operator in ("Gt", "Lt") and has and len(requirement.values) == 1:
        mine, bound = number(value), number(requirement.values[0])
        if mine is None or bound is None:
            return False
        return mine > bound if requirement.operator == "Gt" else mine < bound
    return False


def field_holds(requirement, name):
    if requirement.key != "metadata.name" or len(requirement.values) != 1:
        return False
    if requirement.operator == "In":
        return name == requirement.values[0]
    return requirement.operator == "NotIn" and name != requirement.values[0]


def term_holds(term, node):
    if not term.expressions and not term.fields:
        return False
    return all(holds(r, dict(node.labels)) for r in term.expressions) and all(
        field_holds(r, node.name) for r in term.fields
    )


def attributes_allow(spec, node):
    if node.unschedulable and not tolerated(CORDON, spec.tolerations):
        return False
    hard = [t for t in node.taints if t.effect in ("NoSchedule", "NoExecute")]
    if not all(tolerated(t, spec.tolerations) for t in hard):
        return False
    labels = dict(node.labels)
    if any(labels.get(name) != value for name, value in spec.node_selector):
        return False
    terms = spec.required_terms
    return terms is None or any(term_holds(term, node) for term in terms)


def allows(spec, node, others):
    """Whether the node takes one more pod beside the ``others`` (specs)."""
    if not attributes_allow(spec, node):
        return False
    has = dict(node.allocatable)
    if len(others) + 1 > has.get("pods", 0):
        return False
    for resource, amount in spec.requests:
        used = sum(dict(other.requests).get(resource, 0) for other in others)
        if amount and amount > has.get(resource, 0) - used:
            return False
    taken = [port for other in others for port in other.host_ports]
    return not any(mine.conflicts(port) for mine in spec.host_ports for port in taken)


# Worlds


def odd_requirement(chance, names=("zone", "gen", "none")):
    values = ("a", "b", "1", "2", "x", "", *ODD_NUMBERS)
    return Requirement(
        chance.choice(names),
        chance.choice(OPERATORS),
        tuple(chance.choices(values, k=chance.randrange(3))),
    )


def odd_term(chance):
    names = [f"n{chance.randrange(6)}" for _ in range(chance.choice([1, 1, 1, 0, 2]))]
    field = Requirement("metadata.name", chance.choice(["In", "NotIn", "Exists"]), tuple(names))
    return SelectorTerm(
        tuple(odd_requirement(chance) for _ in range(chance.randrange(3))),
        (field,) if chance.random() < 0.3 else (),
    )


def odd_toleration(chance):
    return Toleration(
        key=chance.choice(["", "t", "u"]),
        operator=chance.choice(["Exists", "Equal", "", "Gt"]),
        value=chance.choice(["", "v"]),
        effect=chance.choice(["", *EFFECTS]),
    )


def plain_spec(chance):
    """A spec that looks at no other pod: test_joint_placement.py has those."""
    nobody = {"affinity": (), "anti_affinity": (), "preferred_affinity": (), "spread": ()}
    return msgspec.structs.replace(random_spec(chance, TASTE), **nobody)


def odd_spec(chance):
    plain = random_spec(chance, TASTE)
    terms = tuple(odd_term(chance) for _ in range(chance.randrange(3)))
    preferred = tuple(
        PreferredTerm(chance.randint(1, 100), odd_term(chance)) for _ in range(chance.randrange(3))
    )
    return PodSpec(
        requests=plain.requests,
        node_selector=plain.node_selector,
        required_terms=terms if chance.random() < 0.5 else None,
        preferred_terms=preferred,
        tolerations=tuple(odd_toleration(chance) for _ in range(chance.randrange(3))),
        host_ports=plain.host_ports,
    )


def odd_node(chance, name):
    node = random_node(chance, name, TASTE)
    labels = {"zone": chance.choice("ab"), "gen": chance.choice(["1", "2", "x", *ODD_NUMBERS])}
    taints = [
        Taint(
            key=chance.choice("tu"), effect=chance.choice(EFFECTS), value=chance.choice(["", "v"])
        )
        for _ in range(chance.choice([0, 0, 1, 2]))
    ]
    kept = sorted(name for name in labels if chance.random() < 0.7)
    return Node(
        name=name,
        allocatable=node.allocatable,
        labels=tuple((name, labels[name]) for name in kept),
        taints=tuple(taints),
        unschedulable=node.unschedulable,
    )


def running(uid, node, spec):
    return Pod(
        uid=uid,
        namespace=TEAM,
        name=uid,
        scheduler="other",
        spec=spec,
        node=node,
        phase="Running",
    )


def odd_cluster(chance, count=6):
    """Nodes, and on each the specs that run there, which may be more than fit."""
    nodes = [odd_node(chance, f"n{index}") for index in range(count)]
    others = {n.name: [odd_spec(chance) for _ in range(chance.choice([0, 0, 1, 2]))] for n in nodes}
    return nodes, others


def told(cluster, nodes, others):
    for node in nodes:
        cluster.apply(NodeChanged(node))
    for name, specs in others.items():
        for index, spec in enumerate(specs):
            cluster.apply(PodChanged(running(f"{name}-{index}", name, spec)))


@drawn(400)
@given(seeds)
def test_filters_agree_with_one_pod_and_one_node_at_a_time(seed):
    chance = random.Random(seed)
    nodes, others = odd_cluster(chance)
    cluster = Cluster(("quorate",))
    told(cluster, nodes, others)
    masks = RuleCache()
    for spec in (odd_spec(chance) for _ in range(4)):
        pod_class = cluster.classes.of(spec)
        room = Room(cluster.snapshot(), masks)
        slots = pod_slots(pod_class, room)
        for node in nodes:
            row = cluster.nodes.rows[node.name]
            expected = 0
            while allows(spec, node, [*others[node.name], *[spec] * expected]):
                expected += 1
            assert int(slots[row]) == expected, node
            assert bool(mask_of(pod_class, room)[row]) == attributes_allow(spec, node)
        changed = odd_node(chance, "n0")
        nodes[0] = changed
        cluster.apply(NodeChanged(changed))


def fits_by_brute_force(nodes, others, specs, min_count):
    """Whether some choice of a node (or none) for each pod places at least ``min_count``."""

    def place(index, placed):
        if placed >= min_count:
            return True
        if placed + len(specs) - index < min_count:
            return False
        for node in nodes:
            if allows(specs[index], node, on[node.name]):
                on[node.name].append(specs[index])
                if place(index + 1, placed + 1):
                    return True
                on[node.name].pop()
        return place(index + 1, placed)

    on = {name: list(specs_there) for name, specs_there in others.items()}
    return place(0, 0)


def placed_of(nodes, others, specs, min_count, packing):
    scheduler = Scheduler(Policy(packing=packing))
    told(scheduler.cluster, nodes, others)
    gang = key("job")
    scheduler.observe([GangChanged(GangSpec(key=gang, min_count=min_count))])
    scheduler.observe(
        PodChanged(
            Pod(
                uid=f"p{index}",
                namespace=TEAM,
                name=f"p{index}",
                scheduler="quorate",
                spec=spec,
                membership=Membership(gang),
            )
        )
        for index, spec in enumerate(specs)
    )
    plan, problems = scheduler.verified(scheduler.decide(0.0))
    assert problems == []
    return [bind for gang_binds in plan.gangs for bind in gang_binds.binds]


@drawn(500)
@given(seeds, st.integers(1, 6), st.integers(1, 4), st.integers(1, 6), packings)
def test_a_gang_is_placed_exactly_when_it_fits(seed, pods, count, classes, packing):
    chance = random.Random(seed)
    nodes = [random_node(chance, f"n{index}", TASTE) for index in range(count)]
    others = {n.name: [plain_spec(chance) for _ in range(chance.choice([0, 0, 1]))] for n in nodes}
    kinds = [plain_spec(chance) for _ in range(classes)]
    specs = [chance.choice(kinds) for _ in range(pods)]
    min_count = chance.randint(1, pods)
    binds = placed_of(nodes, others, specs, min_count, packing)
    fits = fits_by_brute_force(nodes, others, specs, min_count)
    assert bool(binds) == fits
    assert not binds or len(binds) >= min_count


@drawn(300)
@given(seeds, st.integers(4, 8), st.integers(2, 4), packings)
def test_a_gang_that_was_made_to_fit_tightly_is_placed(seed, pods, count, packing):
    """The nodes are exactly as large as one assignment of the pods needs."""
    chance = random.Random(seed)
    specs = [
        PodSpec(requests=(("cpu", chance.randint(1, 9)), ("memory", chance.randint(0, 9))))
        for _ in range(pods)
    ]
    sizes = [{"cpu": 0, "memory": 0, "pods": 10} for _ in range(count)]
    for spec in specs:
        there = chance.choice(sizes)
        for resource, amount in spec.requests:
            there[resource] += amount
    nodes = [
        Node(name=f"n{index}", allocatable=tuple(size.items())) for index, size in enumerate(sizes)
    ]
    others = {node.name: [] for node in nodes}
    assert len(placed_of(nodes, others, specs, pods, packing)) == pods


# The packing


def score_of(room, pod_class, row, pods, attributes, packing):
    """The score of a node with so many pods of the class on it, in plain Python."""
    spec, names = pod_class.spec, room.snapshot.table.resources.names
    own = [r for r, amount in spec.requests if amount and r not in ("cpu", "memory")]
    parts = []
    for resource in ["cpu", "memory", *own]:
        column = names.index(resource)
        size = int(room.snapshot.allocatable[row, column])
        if size:
            used = size - int(room.free[row, column]) + pods * dict(spec.requests).get(resource, 0)
            parts.append(min(1.0, max(0.0, used / size)))
    full = 100.0 * sum(parts) / max(1, len(parts))
    return float(attributes[row]) + (full if packing == "most-allocated" else -full)


def filled(seed, count, packing):
    chance = random.Random(seed)
    cluster = Cluster(("quorate",))
    told(cluster, *odd_cluster(chance, count=8))
    pod_class = cluster.classes.of(odd_spec(chance))
    room = Room(cluster.snapshot(), RuleCache())
    slots = pod_slots(pod_class, room)
    attributes = standing_score(pod_class, room, slots > 0)
    got = fill(pod_class, count, slots, room, packing)

    def score(row, pods):
        return score_of(room, pod_class, row, pods, attributes, packing)

    return slots, got, score


@drawn(400)
@given(seeds, st.integers(1, 20), packings)
def test_pods_go_where_one_after_the_other_would_go(seed, count, packing):
    """Up to ties: each pod in turn takes the node with the best score among those with a slot."""
    slots, got, score = filled(seed, count, packing)
    assert int(got.sum()) == min(count, int(slots.sum()))
    assert np.all(got <= slots)
    left, placed = got.copy(), np.zeros_like(got)
    for _ in range(int(got.sum())):
        open_rows = np.flatnonzero(slots - placed > 0)
        best = max(score(row, placed[row] + 1) for row in open_rows)
        ties = [r for r in open_rows if left[r] and score(r, placed[r] + 1) >= best - 1e-6]
        assert ties, "the best node was passed by"
        placed[ties[0]] += 1
        left[ties[0]] -= 1


@pytest.mark.parametrize("packing", ["most-allocated", "least-allocated"])
@pytest.mark.parametrize(("pods", "count"), list(product([1, 7, 40], [1, 9, 60])))
def test_alike_nodes_are_filled_or_evened_out(packing, pods, count):
    cluster = Cluster(("quorate",))
    for index in range(9):
        cluster.apply(
            NodeChanged(Node(name=f"n{index}", allocatable=(("cpu", pods), ("pods", 99))))
        )
    pod_class = cluster.classes.of(PodSpec(requests=(("cpu", 1),)))
    room = Room(cluster.snapshot(), RuleCache())
    got = fill(pod_class, count, pod_slots(pod_class, room), room, packing)
    placed = min(count, 9 * pods)
    assert int(got.sum()) == placed
    if packing == "most-allocated":
        assert np.count_nonzero(got) == -(-placed // pods)
    else:
        assert int(got.max() - got.min()) <= 1
