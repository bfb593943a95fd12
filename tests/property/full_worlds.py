"""Random worlds of full nodes beside roomy ones: gangs wait for room, or for topology rules.

Nodes are relabelled, tainted, cordoned, resized, lost. Pods of two profiles, with priorities, that
preempt and are preempted. In: a chance. Out: a ``FullWorld`` that plays, and comes to rest.
"""

import random

import msgspec

from quorate.core.cluster.gangs.gangs import Where
from quorate.core.model import (
    GangSpec,
    HostPort,
    LabelSelector,
    Membership,
    Node,
    Owner,
    Pod,
    PodSpec,
    Requirement,
    SpreadConstraint,
    Taint,
    Toleration,
)
from quorate.core.model.changes import (
    BindFailed,
    BindFailure,
    GangChanged,
    NodeChanged,
    NodeGone,
    ObjectChanged,
    ObjectGone,
    OwnerChanged,
    PodBound,
    PodChanged,
    PodGone,
)
from quorate.core.model.policy import Policy
from quorate.core.model.profile import Profile
from quorate.core.model.selecting_objects import Service
from quorate.core.scheduler import Scheduler
from tests.property.seeds import SEED, times
from tests.unit.core.random_terms import random_terms
from tests.unit.core.terms import apart, near, pods, spread
from tests.unit.core.world import LABELS, TEAM, key

KUBE = "default-scheduler"
ZONES = ("a", "b", "c")
APPS = ("web", "db")
HARD = Taint(key="t", effect="NoSchedule")
DEFAULT_SPREAD = (SpreadConstraint(1, "zone", hard=True, selector=pods(nobody=True)),)
PROFILES = (
    ("quorate", None),
    (KUBE, Profile()),
    ("spread-hard", Profile(default_spread=DEFAULT_SPREAD)),
)


def fresh(count):
    """Yield ``times`` so many chances."""
    for seed in range(SEED, SEED + times(count)):
        yield random.Random(seed)


class FullWorld:
    """One scheduler, and an API server that answers."""

    def __init__(self, chance, *, preempts=True):
        self.chance = chance
        self.preempts = preempts
        profiles = tuple((name, one) for name, one in PROFILES if one is not None)
        names = tuple(name for name, _ in PROFILES)
        self.policy = Policy(scheduler_names=names, profiles=profiles, hold_s=40.0, avoid_s=30.0)
        self.scheduler = Scheduler(self.policy)
        self.now_s = 1000.0
        self.nodes, self.pods, self.specs, self.objects = {}, {}, {}, {}
        self.under_way = {}
        self.made = 0
        self.priority = {}
        for index in range(chance.randint(2, 6)):
            self.do_node(f"n{index}")
        for index in range(len(self.nodes)):
            for _ in range(chance.randint(0, 2)):
                self.do_fill(f"n{index}")

    def tell(self, *changes):
        self.scheduler.observe(changes)

    def put(self, pod):
        self.pods[pod.uid] = pod
        self.tell(PodChanged(pod))

    # Moves

    def change(self):
        """Let one thing happen that may move a topology rule, or anything else."""
        moves = [self.move_zone, self.move_taint, self.move_node, self.move_end, self.move]
        self.chance.choice(moves)()

    def move(self):
        """Let something happen."""
        names = [name for name in dir(self) if name.startswith("move_")]
        getattr(self, self.chance.choice(names))()

    def play(self, moves):
        for _ in range(moves):
            self.move()
            if self.chance.random() < 0.6:
                self.decide(self.chance.choice([0.0, 0.0, 1.0, 35.0]))
            while self.under_way and self.chance.random() < 0.8:
                self.answer()

    def some_node(self):
        return self.chance.choice(sorted(self.nodes)) if self.nodes else "n0"

    def put_node(self, name, **fields):
        if name in self.nodes:
            self.nodes[name] = msgspec.structs.replace(self.nodes[name], **fields)
            self.tell(NodeChanged(self.nodes[name]))

    def do_node(self, name):
        """A node comes: a roomy one, or a small one that is full at once."""
        chance = self.chance
        is_small = chance.random() < 0.5
        amounts = (("cpu", 1 if is_small else chance.randint(3, 8)), ("pods", chance.randint(2, 9)))
        labels = (("zone", chance.choice(ZONES)),) if chance.random() < 0.9 else ()
        self.nodes[name] = Node(name, amounts, tuple(sorted((*labels, ("host", name)))))
        self.tell(NodeChanged(self.nodes[name]))
        if is_small:
            self.do_fill(name, 1)

    def do_fill(self, node, cpu=None):
        """Another scheduler's pod takes room, if there is any: no node is ever over."""
        on_node = [p for p in self.pods.values() if self.place_of(p) == node]
        has = dict(self.nodes[node].allocatable)
        used = sum(dict(p.spec.requests).get("cpu", 0) for p in on_node)
        cpu = self.chance.randint(0, 2) if cpu is None else cpu
        if used + cpu <= has["cpu"] and len(on_node) < has["pods"]:
            terms = self.terms() if self.chance.random() < 0.3 else {}
            self.make(None, PodSpec(requests=(("cpu", cpu),), **terms), "other", node=node)

    def terms(self):
        """Return fields of a spec that look at other pods, by zone more often than not."""
        chance = self.chance
        web, db = pods(app="web"), pods(app="db")
        one = chance.choice([web, db])
        skew = chance.choice([1, 1, 2])
        return chance.choice(
            [
                random_terms(chance),
                spread(one, skew=skew, honor_taints=chance.random() < 0.5),
                spread(one, skew=skew, min_domains=chance.choice([1, 2, 3])),
                near(one),
                near(web) | apart(db, by="zone"),
                apart(one, by="zone"),
                apart(one, by="host") | spread(one),
            ]
        )

    def place_of(self, pod):
        return "" if pod.finished else pod.node or self.under_way.get(pod.uid, "")

    def make(self, gang, spec, scheduler, *, node="", priority=0, labels=None, few=None):
        self.made += 1
        chance = self.chance
        if labels is None:
            labels = chance.choice([(), *[(("app", app),) for app in APPS]])
        self.put(
            Pod(
                uid=f"u{self.made}",
                namespace=TEAM,
                name=f"p{self.made}",
                scheduler=scheduler,
                spec=spec,
                created_s=float(self.made),
                node=node,
                phase="Running" if node else "Pending",
                priority=priority,
                labels=labels,
                membership=Membership(gang, few) if gang else None,
                owner=Owner("v1", "Job", gang.name) if gang else None,
                never_preempts=chance.random() < 0.1,
            )
        )

    def spec(self):
        chance = self.chance
        return PodSpec(
            requests=(("cpu", chance.choice([0, 1, 1, 2])),),
            node_selector=chance.choice([(), (), (), (("zone", chance.choice(ZONES)),)]),
            tolerations=chance.choice([(), (), (Toleration(operator="Exists"),)]),
            host_ports=chance.choice([(), (), (), (HostPort("TCP", "0.0.0.0", 80),)]),
            **(self.terms() if chance.random() < 0.7 else {}),
        )

    def move_gang(self):
        """A whole gang comes, of one or two classes."""
        chance = self.chance
        self.made += 1
        if chance.random() < 0.5:
            gang, count = key(f"g{self.made}", LABELS), chance.randint(1, 4)
            few = chance.randint(1, count)
        else:
            gang, count, few = key(f"o{self.made}"), chance.randint(1, 4), None
            asked = chance.choice([(), (), (("cpu", chance.randint(1, 9)),)])
            self.specs[gang] = GangSpec(gang, chance.randint(1, count), min_resources=asked)
            self.tell(GangChanged(self.specs[gang]))
        priority = self.priority[gang] = chance.choice([0, 0, 0, 5])
        specs = [self.spec() for _ in range(chance.choice([1, 1, 2]))]
        said = chance.choice([(), *[(("app", app),) for app in APPS]])
        for _ in range(count):
            spec = chance.choice(specs)
            self.make(gang, spec, "quorate", priority=priority, labels=said, few=few)

    move_gang_again = move_gang

    def move_single(self):
        chance = self.chance
        scheduler = chance.choice([name for name, _ in PROFILES])
        priority = chance.choice([0, 0, 1, 10]) if self.preempts else 0
        spec = self.spec()
        for _ in range(chance.choice([1, 1, 3])):
            self.make(None, spec, scheduler, priority=priority)

    def move_fill(self):
        if self.nodes:
            self.do_fill(self.some_node())

    move_fill_more = move_fill

    def move_end(self):
        """A pod that has a node goes."""
        bound = [pod for pod in self.pods.values() if pod.node]
        if bound:
            pod = self.chance.choice(bound)
            how = self.chance.choice(["gone", "gone", "ends", "terminates"])
            if how == "gone":
                del self.pods[pod.uid]
                self.tell(PodGone(pod.uid))
            elif how == "ends":
                self.put(msgspec.structs.replace(pod, phase="Succeeded"))
            else:
                self.put(msgspec.structs.replace(pod, terminating=True))

    def move_give_up(self):
        """A pod that waits goes."""
        waiting = [p for p in self.pods.values() if not p.node and p.uid not in self.under_way]
        if waiting:
            pod = self.chance.choice(waiting)
            del self.pods[pod.uid]
            self.tell(PodGone(pod.uid))

    def move_label(self):
        running = [pod for pod in self.pods.values() if pod.node]
        if running:
            said = self.chance.choice([(), *[(("app", app),) for app in APPS]])
            self.put(msgspec.structs.replace(self.chance.choice(running), labels=said))

    def move_zone(self):
        """A node is relabelled into another zone, or into none."""
        name = self.some_node()
        zone = self.chance.choice([*ZONES, None])
        labels = ((("zone", zone),) if zone else ()) + (("host", name),)
        self.put_node(name, labels=tuple(sorted(labels)))

    move_zone_again = move_zone

    def move_taint(self):
        self.put_node(self.some_node(), taints=self.chance.choice([(), (HARD,)]))

    def move_cordon(self):
        self.put_node(self.some_node(), unschedulable=self.chance.random() < 0.5)

    def move_resize(self):
        chance = self.chance
        sizes = (("cpu", chance.randint(1, 6)), ("pods", chance.randint(2, 9)))
        self.put_node(self.some_node(), allocatable=sizes)

    def move_node(self):
        name = f"n{self.chance.randrange(7)}"
        if name in self.nodes:
            del self.nodes[name]
            self.tell(NodeGone(name))
            if self.chance.random() < 0.5:
                for pod in [pod for pod in self.pods.values() if pod.node == name]:
                    del self.pods[pod.uid]
                    self.tell(PodGone(pod.uid))
        else:
            self.do_node(name)

    def move_service(self):
        name = self.chance.choice(APPS)
        if name in self.objects:
            del self.objects[name]
            self.tell(ObjectGone("Service", TEAM, name))
        else:
            selects = LabelSelector((Requirement("app", "In", (name,)),))
            self.objects[name] = Service(TEAM, name, selects)
            self.tell(ObjectChanged(self.objects[name]))

    def move_min(self):
        if self.specs:
            which = self.chance.choice(sorted(self.specs))
            fewer = msgspec.structs.replace(self.specs[which], min_count=self.chance.randint(1, 4))
            self.specs[which] = fewer
            self.tell(GangChanged(fewer))

    def move_owner(self):
        which = self.chance.choice([*sorted(self.priority), key("nobody")])
        makes = self.chance.choice([None, 0, 2, 4])
        self.tell(OwnerChanged(TEAM, Owner("v1", "Job", which.name), makes))

    # The API server

    def answer(self, *, good=False):
        uid = self.chance.choice(sorted(self.under_way))
        node = self.under_way.pop(uid)
        pod = self.pods.get(uid)
        if pod is None:
            self.tell(BindFailed(uid, node, BindFailure.GONE))
        elif good or self.chance.random() < 0.9:
            self.pods[uid] = msgspec.structs.replace(pod, node=node, phase="Running")
            self.tell(PodBound(uid, node))
        else:
            self.tell(BindFailed(uid, node, BindFailure.REFUSED))

    def decide(self, after_s=0.0):
        self.now_s += after_s
        plan, problems = self.scheduler.verified(self.scheduler.decide(self.now_s))
        assert not problems, problems
        for gang in plan.gangs:
            for bind in gang.binds:
                assert bind.uid not in self.under_way
                assert not self.pods[bind.uid].node
                self.under_way[bind.uid] = bind.node
        for one in plan.evictions:
            if self.pods.pop(one.uid, None):
                self.tell(PodGone(one.uid))
        for one in plan.preemptions:
            self.nominate(one.uid, one.node)
            for _, name in one.displaced:
                self.nominate(f"u{name[1:]}", "")
            for victim in one.victims:
                if self.pods.pop(victim.uid, None):
                    self.tell(PodGone(victim.uid))
        return plan

    def nominate(self, uid, node):
        if uid in self.pods:
            self.put(msgspec.structs.replace(self.pods[uid], nominated=node))

    def come_to_rest(self):
        for _ in range(200):
            while self.under_way:
                self.answer(good=True)
            for pod in [pod for pod in self.pods.values() if pod.terminating]:
                del self.pods[pod.uid]
                self.tell(PodGone(pod.uid))
            plan = self.decide(100.0)
            if plan.wake_at_s is None and not (plan.gangs or plan.preemptions or plan.evictions):
                return
        raise AssertionError("it never comes to rest")

    def successor(self):
        """Return a new scheduler that was told all that is."""
        found = Scheduler(self.policy, identity="successor")
        found.observe(ObjectChanged(one) for one in self.objects.values())
        found.observe(NodeChanged(node) for node in self.nodes.values())
        found.observe(GangChanged(spec) for spec in self.specs.values())
        found.observe(PodChanged(pod) for pod in self.pods.values())
        return found

    def waiting(self):
        gangs = self.scheduler.cluster.gangs.values()
        return [g for g in gangs if any(e.where is Where.WAITING for e in g.members.values())]
