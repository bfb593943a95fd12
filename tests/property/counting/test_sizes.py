"""Whatever came and went: counts are right, sizes are those of what is there, masks are true."""

import random

import numpy as np
import pytest

from quorate.core.check.verify_nodes import node_problems
from quorate.core.cluster.nodes.encoding import FIRST_RESOURCES
from quorate.core.model import (
    GangSpec,
    HostPort,
    Membership,
    Node,
    Pod,
    PodSpec,
    Requirement,
    SelectorTerm,
    Taint,
    Toleration,
    policy,
)
from quorate.core.model.changes import (
    GangChanged,
    NodeChanged,
    NodeGone,
    PodBound,
    PodChanged,
    PodGone,
)
from quorate.core.model.policy import Policy
from quorate.core.model.profile import Profile
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import pod_slots
from quorate.core.rules.masks import mask_of, mask_on
from quorate.core.scheduler import Scheduler
from tests.property.seeds import SEED
from tests.unit.core.random_terms import random_terms
from tests.unit.core.world import TEAM, key

WORLDS = 60
NAMES = [f"example.com/r{number}" for number in range(7)]
KEYS = ("zone", "rack", "host", "disk")
BOUNDS = {
    "COLUMNS_UNUSED_MAX": (0, 1, 3),
    "VALUES_UNUSED_MAX": (0, 1, 4),
    "LABEL_COLUMNS_KEPT_MAX": (1, 2, 256),
    "CLASS_VARIANTS_KEPT_MAX": (1, 3, 16_384),
    "MASKS_KEPT_BYTES_MAX": (0, 4_000, 2**26),
    "LOG_KEPT_MAX": (1, 5, 20_000),
}


def random_profile(chance) -> Profile:
    return Profile(packing=chance.choice(["least-allocated", "most-allocated"]))


def random_term(chance) -> SelectorTerm:
    operator = chance.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    values = (str(chance.randrange(4)),) if operator not in ("Exists", "DoesNotExist") else ()
    fields = ()
    if chance.random() < 0.2:
        fields = (Requirement("metadata.name", chance.choice(["In", "NotIn"]), ("n1",)),)
    return SelectorTerm((Requirement(chance.choice(KEYS), operator, values),), fields)


def random_spec(chance, *, has_terms: bool) -> PodSpec:
    names = chance.sample(NAMES, chance.choice([0, 0, 1, 2]))
    asked = {"cpu": chance.randrange(4), **{name: chance.randrange(3) for name in names}}
    return PodSpec(
        requests=tuple(sorted(asked.items())),
        node_selector=((chance.choice(KEYS), str(chance.randrange(4))),) * chance.choice([0, 0, 1]),
        required_terms=chance.choice([None, None, (random_term(chance),)]),
        tolerations=chance.choice([(), (), (Toleration("t", "Exists"),)]),
        host_ports=chance.choice([(), (), (), (HostPort("TCP", "", 80),)]),
        node_features=chance.choice([(), (), (), ("f",)]),
        **(random_terms(chance) if has_terms else {}),
    )


def random_node(chance, name) -> Node:
    listed = chance.sample(NAMES, chance.choice([0, 0, 1, 2, 5]))
    sizes = {"cpu": 9, "pods": 9, **{one: chance.randrange(6) for one in listed}}
    keys = chance.sample(KEYS, chance.randrange(4))
    return Node(
        name=name,
        allocatable=tuple(sorted(sizes.items())),
        labels=tuple(sorted((one, str(chance.randrange(50))) for one in keys)),
        taints=(
            Taint("t", chance.choice(["NoSchedule", "PreferNoSchedule"]), str(chance.random())),
        )
        * chance.choice([0, 0, 1]),
        unschedulable=chance.random() < 0.1,
        declared_features=chance.choice([(), ("f",)]),
    )


class Coming:
    """A scheduler to which nodes, pods and names come and go; what is there, in plain dicts."""

    def __init__(self, chance):
        self.chance = chance
        profiles = (("kube", random_profile(chance)),) if chance.random() < 0.5 else ()
        self.policy = Policy(scheduler_names=("quorate", "kube"), profiles=profiles)
        self.scheduler = Scheduler(self.policy)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.now_s, self.made = 0.0, 0

    def spec(self) -> PodSpec:
        """Where pods of no gang may preempt, none has rules about other pods."""
        return random_spec(self.chance, has_terms=not self.policy.profiles)

    def tell(self, *changes):
        self.scheduler.observe(changes)

    def step(self):
        moves = {
            self.put_node: 4,
            self.lose_node: 1,
            self.put_pod: 5,
            self.edit_pod: 1,
            self.lose_pod: 3,
            self.put_gang: 1,
            self.decide: 2,
        }
        (move,) = self.chance.choices(list(moves), list(moves.values()))
        move()

    def put_node(self):
        name = f"n{self.chance.randrange(9)}"
        self.nodes[name] = random_node(self.chance, name)
        self.tell(NodeChanged(self.nodes[name]))

    def lose_node(self):
        if self.nodes:
            name = self.chance.choice(sorted(self.nodes))
            del self.nodes[name]
            self.tell(NodeGone(name))

    def put_pod(self, gang=None):
        self.made += 1
        ours = gang is not None or self.chance.random() < 0.4
        node = "" if ours else f"n{self.chance.randrange(10)}"
        pod = Pod(
            uid=f"u{self.made}",
            namespace=TEAM,
            name=f"p{self.made}",
            scheduler=self.chance.choice(["quorate", "kube"]) if gang is None else "quorate",
            spec=self.spec(),
            node=node,
            phase="Running" if node else "Pending",
            priority=self.chance.randrange(3) if gang is None else 0,
            membership=Membership(gang) if gang is not None else None,
            labels=self.chance.choice([(), (("app", "db"),)]),
        )
        self.pods[pod.uid] = pod
        self.tell(PodChanged(pod))

    def put_gang(self):
        gang = key(f"g{self.made}")
        self.tell(GangChanged(GangSpec(gang, 2)))
        for _ in range(2):
            self.put_pod(gang)

    def _some_pod(self) -> Pod | None:
        return self.pods[self.chance.choice(sorted(self.pods))] if self.pods else None

    def edit_pod(self):
        pod = self._some_pod()
        if pod is not None:
            fields = {"spec": self.spec()}
            if pod.node:
                fields = self.chance.choice([fields, {"phase": "Failed"}, {"terminating": True}])
            self._change(pod, **fields)

    def _change(self, pod, **fields):
        values = {name: getattr(pod, name) for name in pod.__struct_fields__} | fields
        self.pods[pod.uid] = Pod(**values)
        self.tell(PodChanged(self.pods[pod.uid]))

    def lose_pod(self):
        pod = self._some_pod()
        if pod is not None:
            del self.pods[pod.uid]
            self.tell(PodGone(pod.uid))

    def decide(self):
        self.now_s += self.chance.choice([1.0, 400.0])
        plan, problems = self.scheduler.verified(self.scheduler.decide(self.now_s))
        assert problems == []
        for bind in (bind for gang in plan.gangs for bind in gang.binds):
            self.tell(PodBound(bind.uid, bind.node))
            self._change(self.pods[bind.uid], node=bind.node, phase="Running")

    def fresh(self) -> Scheduler:
        """A scheduler that was told only of what is there now."""
        found = Scheduler(self.policy)
        found.observe(NodeChanged(one) for one in self.nodes.values())
        found.observe(PodChanged(one) for one in self.pods.values())
        return found


def used(scheduler) -> dict[tuple[str, str], int]:
    table = scheduler.cluster.nodes
    return {
        (name, resource): int(table.used(row)[column])
        for name, row in table.rows.items()
        for resource, column in table.resources.columns.items()
    }


def below(scheduler) -> dict[tuple[str, str], int]:
    """What pods of lower priority than 2 take, where some profile preempts."""
    cluster = scheduler.cluster
    bound, width = cluster.precedence.bound, len(cluster.resources.names)
    return {
        (name, resource): int(bound.below(2, np.array([row]), width)[0, column])
        for name, row in cluster.nodes.rows.items()
        for resource, column in cluster.resources.columns.items()
        if bound is not None
    }


def check_counts(play):
    told = {}
    for pod in play.pods.values():
        if pod.node in play.nodes and not pod.finished:
            for name, amount in (*pod.spec.requests, ("pods", 1)):
                told[pod.node, name] = told.get((pod.node, name), 0) + amount
    found = used(play.scheduler)
    assert found == {one: told.get(one, 0) for one in found}
    fresh = play.fresh()
    assert found == used(fresh)
    assert below(play.scheduler) == below(fresh)
    check_slots(play.scheduler, fresh)


def check_slots(one, other):
    """Both say the same of each pod's class on each node."""
    rooms = [Room(each.cluster.snapshot(), RuleCache()) for each in (one, other)]
    for uid in one.cluster.pods:
        classes = [each.cluster.pods[uid].pod_class for each in (one, other)]
        counts = [pod_slots(its, room) for room, its in zip(rooms, classes, strict=True)]
        by_node = [
            {name: int(n[row]) for name, row in each.cluster.nodes.rows.items()}
            for each, n in zip((one, other), counts, strict=True)
        ]
        assert by_node[0] == by_node[1], classes[0].spec


def check_sizes(play):
    cluster = play.scheduler.cluster
    table, resources, classes = cluster.nodes, cluster.resources, cluster.classes
    listed = {name for node in play.nodes.values() for name, _ in node.allocatable}
    assert resources.columns.keys() == listed | set(FIRST_RESOURCES)
    unused = len(resources.names) - len(resources.columns)
    assert unused <= len(resources.columns) + policy.COLUMNS_UNUSED_MAX
    assert table.free.shape == table.allocatable.shape
    assert len(resources.names) <= table.free.shape[1] <= max(4 * len(resources.names), 8)
    free_ones = [column for column, name in enumerate(resources.names) if not name]
    assert not table.free[:, free_ones].any()
    assert not table.free[:, len(resources.names) :].any()
    borne = {one for node in play.nodes.values() for one, _ in node.labels}
    assert len(table.labels) <= policy.LABEL_COLUMNS_KEPT_MAX
    assert set(table.labels) <= borne
    assert table._label_keys.keys() == borne
    for column in (table.taints, table.features, *table.labels.values()):
        in_use = len({code for code in column.codes.tolist() if code >= 0})
        assert len(column.values) <= 2 * in_use + policy.VALUES_UNUSED_MAX
        assert column._in_use == in_use
    held = {
        reservation.pod_class.base
        for reservation in (*cluster.reservations, *cluster.reservations._lent.values())
    }
    assert classes.by_id.keys() == held | {one.pod_class.base for one in cluster.pods.values()}
    assert {one.id for one in classes._by_spec.values()} == classes.by_id.keys()
    assert len(classes._by_selectors) <= policy.CLASS_VARIANTS_KEPT_MAX
    assert {variant[0] for variant in classes._by_selectors} == classes._variants_of.keys()
    assert classes._variants_of.keys() <= classes.by_id.keys()
    specs = {one.spec for one in classes.by_id.values()}
    asked = {name for spec in specs for name, amount in spec.requests if amount}
    assert classes._asking.keys() == asked - set(FIRST_RESOURCES)
    masks = play.scheduler.planner._rule_cache
    assert len(masks) == 1 or masks.bytes_kept <= policy.MASKS_KEPT_BYTES_MAX
    assert all(table.ports.values())


def check_masks(play):
    """By the rules that verification has of its own."""
    cluster = play.scheduler.cluster
    room = play.scheduler.planner.room()
    for pod_class in cluster.classes.by_id.values():
        spec, mask = pod_class.spec, mask_of(pod_class, room)
        for name, row in cluster.nodes.rows.items():
            node = play.nodes[name]
            passes = not node_problems(spec, node)
            assert mask[row] == passes
        assert mask.sum() == mask[list(cluster.nodes.rows.values())].sum()
        rows = list(range(len(mask)))
        for answers in (room.rule_cache, RuleCache()):
            other = Room(room.snapshot, answers)
            assert mask_on(pod_class, other, rows[:3]).tolist() == mask[:3].tolist()
            assert mask_on(pod_class, other, rows).tolist() == mask.tolist()


@pytest.mark.parametrize("bounds", ["drawn", "as they are"])
def test_after_things_came_and_went_all_is_as_if_they_had_not(monkeypatch, bounds):
    for number in range(WORLDS):
        chance = random.Random(SEED + number)
        for name, values in BOUNDS.items() if bounds == "drawn" else ():
            monkeypatch.setattr(policy, name, chance.choice(values))
        play = Coming(chance)
        for step in range(chance.randrange(20, 90)):
            play.step()
            if step % 7 == 0:
                check_masks(play)
                check_sizes(play)
        check_counts(play)
        check_masks(play)
        check_sizes(play)


def test_nothing_is_left_of_what_is_gone():
    play = Coming(random.Random(SEED))
    for _ in range(200):
        play.step()
    for uid in list(play.pods):
        play.tell(PodGone(uid))
    for name in list(play.nodes):
        play.tell(NodeGone(name))
    play.scheduler.decide(play.now_s + 1000.0)
    cluster = play.scheduler.cluster
    assert cluster.resources.names == list(FIRST_RESOURCES)
    assert not cluster.nodes.free.any()
    assert not cluster.nodes.allocatable.any()
    empty = (cluster.classes.by_id, cluster.classes._held, cluster.classes._by_selectors)
    for one in (*empty, cluster.nodes.labels, cluster.nodes._label_keys, cluster.nodes.ports):
        assert len(one) == 0
