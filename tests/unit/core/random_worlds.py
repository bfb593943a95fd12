"""Random worlds for properties: pod specs, nodes, and an API server that may answer anything.

``Play`` carries out random moves on two schedulers at once, and checks after each move what must
always hold. Its accounts are plain dictionaries that share nothing with the core.
"""

import random

import msgspec
from hypothesis import strategies as st

from quorate.core.check.verify import verify_gang
from quorate.core.cluster.gangs.gangs import Where
from quorate.core.cluster.gangs.pods import key_of
from quorate.core.model import (
    GangSpec,
    HostPort,
    Membership,
    Namespace,
    Node,
    Pod,
    PodSpec,
    Taint,
    Toleration,
)
from quorate.core.model.changes import (
    BindFailed,
    BindFailure,
    GangChanged,
    GangGone,
    NodeChanged,
    NodeGone,
    ObjectChanged,
    ObjectGone,
    PodBound,
    PodChanged,
    PodGone,
)
from quorate.core.model.journal import entry_of
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from tests.unit.core.random_terms import NAMESPACES, random_terms
from tests.unit.core.world import GPU, LABELS, TEAM, key

NODES = ("n0", "n1", "n2", "n3")
PORTS = (HostPort("TCP", "0.0.0.0", 80), HostPort("TCP", "10.0.0.1", 80), HostPort("UDP", "::", 9))
SOFT, HARD = Taint(key="t", effect="PreferNoSchedule"), Taint(key="t", effect="NoSchedule")
LABEL_SETS = ((), (("zone", "a"),), (("zone", "b"),))
POD_LABELS = ((), (("app", "db"),), (("app", "web"),), (("app", "web"), ("rev", "1")))
NAMESPACE_LABELS = ((), (("env", "x"),), (("env", "y"),))
GANGS = (key("x"), key("y"), key("l", LABELS), key("m", LABELS))
PODS = range(14)
FAILURES = tuple(BindFailure)

seeds = st.integers(0, 2**32)


def amounts_of(chance, **most):
    return tuple(sorted((name, chance.randint(0, limit)) for name, limit in most.items()))


def random_spec(chance):
    most = {"cpu": 3}
    if chance.random() < 0.3:
        most["memory"] = 3
    if chance.random() < 0.2:
        most[GPU] = 2
    return PodSpec(
        requests=amounts_of(chance, **most),
        node_selector=chance.choice([(), (), (), *LABEL_SETS]),
        tolerations=chance.choice([(), (), (Toleration(operator="Exists"),)]),
        host_ports=chance.choice([(), (), (), (), (chance.choice(PORTS),)]),
        **random_terms(chance),
    )


def random_node(chance, name):
    most = {"cpu": 9, "memory": 8, "pods": 7}
    if chance.random() < 0.5:
        most[GPU] = 4
    return Node(
        name=name,
        allocatable=amounts_of(chance, **most),
        labels=tuple(
            sorted((*chance.choice(LABEL_SETS), *chance.choice([(), *[(("host", name),)] * 4])))
        ),
        taints=chance.choice([(), (), (), (SOFT,), (HARD,)]),
        unschedulable=chance.random() < 0.15,
    )


def random_move(chance):
    """Return a name and arguments; pods that come and decisions are the most frequent."""
    pod, gang = chance.choice(PODS), chance.choice(GANGS)
    some_gang = chance.choice([*GANGS, None])
    few = chance.choice([1, 2, 2, 3])
    said = chance.choice(POD_LABELS), chance.choice([TEAM, TEAM, TEAM, "dev"])
    likes = {
        ("decide", chance.choice([0.0, 0.0, 1.0, 70.0])): 5,
        ("answer", chance.randrange(9), chance.choice(["ok", "ok", "ok", *FAILURES])): 6,
        ("member", gang, chance.randint(1, 4), random_spec(chance), said): 5,
        ("pod", pod, some_gang, random_spec(chance), few, chance.random() < 0.2, said): 3,
        ("foreign", pod, chance.choice(["n0", "n1", "n9"]), random_spec(chance), said): 1,
        ("delete", pod): 3,
        ("label", pod, said): 0.5,
        ("namespace", chance.choice(NAMESPACES), chance.choice([None, *NAMESPACE_LABELS])): 0.5,
        ("edit", pod, chance.choice(["ungate", "end", "kill"])): 1.5,
        ("resize", pod, random_spec(chance)): 0.5,
        ("relabel", pod, some_gang, few): 0.5,
        ("again", pod): 0.5,
        ("stale", pod): 1,
        (
            "object",
            GANGS[chance.randrange(2)],
            chance.randint(0, 4),
            chance.choice([0, 0, 6, 12]),
        ): 1.5,
        ("drop", GANGS[chance.randrange(2)]): 0.3,
        ("node", random_node(chance, chance.choice(NODES))): 1.5,
        ("lose_node", chance.choice(NODES)): 0.5,
    }
    return chance.choices(list(likes), list(likes.values()))[0]


@st.composite
def scripts(draw, without=()):
    """Three nodes, two gang objects, and moves; a shorter script begins like the longer one."""
    chance = random.Random(draw(seeds))
    script = [("node", random_node(chance, name)) for name in NODES[:3]]
    script += [("object", gang, 2 + chance.randrange(2), 0) for gang in GANGS[:2]]
    script += [random_move(chance) for _ in range(draw(st.integers(20, 150)))]
    return [move for move in script if move[0] not in without]


class Play:
    """Two schedulers that hear the same, and what the API server knows."""

    def __init__(self, packing="most-allocated"):
        self.policy = Policy(packing=packing)
        self.scheduler, self.twin = Scheduler(self.policy), Scheduler(self.policy)
        self.now_s = 1000.0
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        """By uid, with the node that the API server gave them."""
        self.born: dict[str, Pod] = {}
        self.specs: dict[object, GangSpec] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.under_way: dict[str, str] = {}
        """Node by uid: binds without an outcome."""
        self.relabelled: set[str] = set()
        """Of those, the pods that were moved to another gang since they were sent."""
        self.marks: dict[str, dict[str, object]] = {}
        """What our Bindings leave on the pods."""
        self.made = 0
        self.current: dict[int, str] = {}

    def tell(self, *changes):
        self.scheduler.observe(changes)
        self.twin.observe(changes)

    def run(self, script):
        for name, *arguments in script:
            getattr(self, f"do_{name}")(*arguments)

    # Moves

    def do_node(self, node):
        self.nodes[node.name] = node
        self.tell(NodeChanged(node))

    def do_lose_node(self, name):
        self.nodes.pop(name, None)
        self.tell(NodeGone(name))

    def put(self, pod):
        before = self.pods.get(pod.uid)
        if before is not None and pod.uid in self.under_way and key_of(before) != key_of(pod):
            self.relabelled.add(pod.uid)
        self.pods[pod.uid] = pod
        self.tell(PodChanged(pod))

    def do_pod(self, number, gang, spec, min_count, gated, said):
        if number in self.current:
            return
        self.made += 1
        uid = f"uid{self.made}"
        self.current[number] = uid
        pod = Pod(
            uid=uid,
            namespace=said[1] if gang is None else gang.namespace,
            name=f"p{number}",
            labels=said[0],
            scheduler="quorate",
            spec=spec,
            created_s=float(self.made),
            gates=("g",) if gated and self.made % 3 == 0 else (),
            membership=membership(gang, min_count),
        )
        self.born[uid] = pod
        self.put(pod)

    def do_member(self, gang, count, spec, said):
        """Several alike members come at once, as an owner makes them."""
        free = [number for number in PODS if number not in self.current]
        for number in free[:count]:
            self.do_pod(number, gang, spec, 2, False, said)

    def do_foreign(self, number, node, spec, said):
        if number not in self.current:
            self.do_pod(number, None, spec, 1, False, said)
            pod = self.pods[self.current[number]]
            self.put(msgspec.structs.replace(pod, node=node, phase="Running"))

    def pod_of(self, number):
        return self.pods.get(self.current.get(number, ""))

    def do_delete(self, number):
        uid = self.current.pop(number, "")
        if self.pods.pop(uid, None):
            self.tell(PodGone(uid))

    def do_edit(self, number, what):
        pod = self.pod_of(number)
        if pod is None:
            return
        if what == "ungate":
            self.put(msgspec.structs.replace(pod, gates=()))
        elif what == "end" and pod.node:
            self.put(msgspec.structs.replace(pod, phase="Succeeded"))
        elif what == "kill":
            self.put(msgspec.structs.replace(pod, terminating=True))

    def do_resize(self, number, spec):
        """In-place resize of a running pod: only its requests change."""
        pod = self.pod_of(number)
        if pod is not None and pod.node:
            new = msgspec.structs.replace(pod.spec, requests=spec.requests)
            self.put(msgspec.structs.replace(pod, spec=new))

    def do_relabel(self, number, gang, min_count):
        pod = self.pod_of(number)
        if pod is not None:
            self.put(msgspec.structs.replace(pod, membership=membership(gang, min_count)))

    def do_label(self, number, said):
        pod = self.pod_of(number)
        if pod is not None:
            self.put(msgspec.structs.replace(pod, labels=said[0]))

    def do_namespace(self, name, said):
        if said is None:
            self.namespaces.pop(name, None)
            self.tell(ObjectGone("Namespace", "", name))
        else:
            self.namespaces[name] = Namespace(name, said)
            self.tell(ObjectChanged(self.namespaces[name]))

    def do_again(self, number):
        pod = self.pod_of(number)
        if pod is not None:
            self.put(pod)

    def do_stale(self, number):
        """The watch lags behind a bind: the pod is told of without its node."""
        pod = self.pod_of(number)
        entry = self.scheduler.cluster.pods.get(pod.uid) if pod else None
        if pod is not None and entry and entry.where is Where.BOUND and not pod.finished:
            self.tell(PodChanged(msgspec.structs.replace(pod, node="")))

    def do_object(self, which, min_count, cpu):
        self.specs[which] = GangSpec(
            key=which, min_count=min_count, min_resources=(("cpu", cpu),) if cpu else ()
        )
        self.tell(GangChanged(self.specs[which]))

    def do_drop(self, which):
        self.specs.pop(which, None)
        self.tell(GangGone(which))

    def do_answer(self, index, outcome):
        if not self.under_way:
            return
        uid = sorted(self.under_way)[index % len(self.under_way)]
        node = self.under_way.pop(uid)
        pod = self.pods.get(uid)
        if pod is None:
            self.tell(BindFailed(uid, node, BindFailure.GONE))
        elif outcome == "ok":
            self.pods[uid] = msgspec.structs.replace(pod, node=node, **self.marks[uid])
            self.tell(PodBound(uid, node))
        elif outcome is BindFailure.GONE:
            del self.pods[uid]
            self.current = {n: u for n, u in self.current.items() if u != uid}
            self.tell(BindFailed(uid, node, outcome))
        elif outcome is BindFailure.ELSEWHERE:
            self.pods[uid] = msgspec.structs.replace(pod, node="n9")
            self.tell(BindFailed(uid, "n9", outcome))
        else:
            self.tell(BindFailed(uid, node, outcome))

    def do_decide(self, after_s=0.0):
        self.now_s += after_s
        plan = self.scheduler.decide(self.now_s)
        assert plan == self.twin.decide(self.now_s)
        for number, gang in enumerate(plan.gangs, start=1):
            self.check_whole(gang)
            marks = {"attempt": gang.attempt, "bound_for": entry_of(gang.key)}
            for place, bind in enumerate(gang.binds):
                assert bind.uid not in self.under_way, "planned twice"
                assert not self.pods[bind.uid].node, "planned though bound"
                assert not self.pods[bind.uid].gates
                self.under_way[bind.uid] = bind.node
                self.relabelled.discard(bind.uid)
                self.marks[bind.uid] = marks | {"started": gang.started or place >= gang.first}
            assert verify_gang(gang, self.scheduler.cluster, plan.gangs[number:]) == []
        self.check_nodes({b.node for g in plan.gangs for b in g.binds}, plan)
        for eviction in plan.evictions:
            self.evict(eviction)
        return plan

    # What must hold

    def check_whole(self, gang):
        """A gang of which nothing was there before starts with at least min members."""
        where = self.scheduler.cluster.gangs[gang.key]
        members = [u for u, p in self.pods.items() if p.membership and p.membership.key == gang.key]
        before = [u for u in members if self.pods[u].node or u in self.under_way]
        if not before and not gang.key.is_single:
            assert len(gang.binds) >= where.min_count
        if not where.started:
            assert where.bound - where.lifecycle.evicting + where.assumed >= where.min_count

    def check_nodes(self, names, plan):
        """No node is over its allocatable in what the new binds ask for."""
        new = {b.uid for g in plan.gangs for b in g.binds}
        for name in names:
            on_node = [p for u, p in self.pods.items() if self.place_of(u) == name]
            ours = [p for p in on_node if p.uid in new]
            has = dict(self.nodes[name].allocatable)
            assert len(on_node) <= has["pods"]
            for resource in {r for p in ours for r, amount in p.spec.requests if amount}:
                used = sum(dict(p.spec.requests).get(resource, 0) for p in on_node)
                assert used <= has.get(resource, 0), f"{name} is over in {resource}"
            ports = [(p.uid, port) for p in on_node for port in p.spec.host_ports]
            for uid, port in ports:
                if uid in new:
                    assert not any(port.conflicts(o) for u, o in ports if u != uid)

    def place_of(self, uid):
        pod = self.pods[uid]
        return "" if pod.finished else pod.node or self.under_way.get(uid, "")

    def evict(self, eviction):
        gang = self.scheduler.cluster.gangs[eviction.key]
        assert not gang.lifecycle.once_quorate, "a gang that was quorate is not torn down"
        assert self.pods[eviction.uid].node
        del self.pods[eviction.uid]
        self.current = {n: u for n, u in self.current.items() if u != eviction.uid}
        self.tell(PodGone(eviction.uid))

    # Coming to rest

    def come_to_rest(self):
        """Answer all, let time pass, and decide until nothing is planned any more."""
        for _ in range(60):
            while self.under_way:
                self.do_answer(0, "ok")
            self.tell(*(PodChanged(pod) for pod in self.pods.values() if pod.node))
            plan = self.do_decide(100.0)
            if not plan.gangs and not plan.evictions and plan.wake_at_s is None:
                return
        raise AssertionError("it never comes to rest")

    def changes(self):
        """Everything that is, as a new scheduler would be told it."""
        return [
            *(ObjectChanged(one) for one in self.namespaces.values()),
            *(NodeChanged(node) for node in self.nodes.values()),
            *(GangChanged(spec) for spec in self.specs.values()),
            *(PodChanged(pod) for pod in self.pods.values()),
        ]


def membership(gang, min_count):
    if gang is None:
        return None
    return Membership(gang, min_count if gang.dialect == LABELS else None)
