"""Property: a foreign binding is allowed exactly when it fits beside all that is known there.

The account is a plain sum over pods; it shares nothing with the core's arrays.
"""

import random

from quorate.core.check.guard import Binding, Guard, GuardAnswer
from quorate.core.cluster.gangs.gangs import Where
from quorate.core.model import Membership, Node, Pod, PodSpec, policy
from quorate.core.model.changes import NodeChanged, PodBound, PodChanged, PodGone
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from tests.property.seeds import SEED
from tests.unit.core.world import LABELS, TEAM, key

NODES = ("n0", "n1", "n2")
KINDS = ("foreign", "gang", "decide", "ask", "deliver", "show", "lapse", "end", "outcome")
WEIGHTS = (4, 1, 2, 8, 3, 3, 1, 1, 3)


def amounts_of(chance, **most):
    return tuple(sorted((name, chance.randint(0, limit)) for name, limit in most.items()))


class Account:
    """A scheduler with a guard, and who holds room on which node by a plain account."""

    def __init__(self, seed):
        self.seed = seed
        self.chance = chance = random.Random(seed)
        self.scheduler = Scheduler(Policy())
        self.guard = Guard(self.scheduler.cluster)
        self.now_s = 0.0
        self.nodes = {
            name: {**dict(amounts_of(chance, cpu=9, memory=8)), "pods": chance.randint(1, 7)}
            for name in NODES
        }
        self.pods: dict[str, Pod] = {}
        self.on: dict[str, str] = {}
        """Bound, or in a plan of ours."""
        self.planned: dict[str, str] = {}
        self.admitted: dict[str, tuple[str, float]] = {}
        self.answers = {answer: 0 for answer in GuardAnswer}
        for name, amounts in self.nodes.items():
            self.tell(NodeChanged(Node(name=name, allocatable=tuple(sorted(amounts.items())))))

    def tell(self, *changes):
        self.guard.observe(changes)
        self.scheduler.observe(changes)

    def put(self, **fields):
        uid = f"u{len(self.pods)}"
        spec = PodSpec(requests=amounts_of(self.chance, cpu=4, memory=3))
        pod = Pod(uid=uid, namespace=TEAM, name=f"p-{uid}", spec=spec, **fields)
        self.pods[uid] = pod
        self.tell(PodChanged(pod))

    def some(self, uids):
        return self.chance.choice(sorted(uids)) if uids else None

    # Moves

    def foreign(self):
        self.put(scheduler="other")

    def gang(self):
        name = f"g{len(self.pods)}"
        for _ in range(2):
            self.put(scheduler="quorate", membership=Membership(key(name, LABELS), 2))

    def decide(self):
        for gang in self.scheduler.decide(1000.0 + self.now_s).gangs:
            for bind in gang.binds:
                self.on[bind.uid] = self.planned[bind.uid] = bind.node
                self.admitted.pop(bind.uid, None)

    def outcome(self):
        uid = self.some(self.planned)
        if uid is not None:
            self.tell(PodBound(uid, self.planned.pop(uid)))

    def deliver(self):
        """The core hears what the guard has to say, sooner or later."""
        self.tell(*self.guard.take_changes())

    def lapse(self):
        self.now_s += self.chance.choice([0.5, policy.ADMITTED_S])
        self.guard.expire(self.now_s)
        self.deliver()

    def end(self):
        uid = self.some(self.pods)
        if uid is not None:
            for book in (self.pods, self.on, self.planned, self.admitted):
                book.pop(uid, None)
            self.pods[f"gone-{uid}"] = None  # so that uids are not used again
            self.tell(PodGone(uid))

    def show(self):
        """The watch shows a binding that was allowed."""
        uid = self.some({uid for uid in self.admitted if uid not in self.on})
        if uid is not None:
            node, _ = self.admitted.pop(uid)
            self.on[uid] = node
            pod = self.pods[uid]
            fields = {name: getattr(pod, name) for name in pod.__struct_fields__}
            self.tell(PodChanged(Pod(**{**fields, "node": node})))

    def ask(self):
        uid = self.some({uid for uid, pod in self.pods.items() if pod is not None})
        if uid is None:
            return
        pod, node = self.pods[uid], self.chance.choice(NODES)
        if uid in self.planned and self.chance.random() < 0.7:
            node = self.planned[uid]
        if uid in self.admitted:
            self.deliver()
        expected = self.expected(uid, node)
        spelled = self.chance.choice([uid, ""])
        decision = self.guard.judge(Binding(TEAM, pod.name, spelled, node), self.now_s)
        assert decision.allowed == expected, (self.seed, decision, uid, node)
        assert bool(decision.message) != decision.allowed
        self.answers[decision.answer] += 1
        if decision.allowed and uid not in self.on:
            again = uid in self.admitted
            self.admitted[uid] = node, self.now_s + policy.ADMITTED_S
            if again:  # else the core has it on the node where it was to go before
                self.deliver()

    def expected(self, uid, node):
        if uid in self.planned and self.planned[uid] != node:
            return False
        if uid in self.on and uid not in self.planned:
            return True  # the API server's to refuse
        holders = {one for one, where in self.on.items() if where == node}
        holders |= {
            one
            for one, (where, until_s) in self.admitted.items()
            if where == node and until_s > self.now_s and one not in self.on
        }
        wanted = {**dict(self.pods[uid].spec.requests), "pods": 1}
        used = dict.fromkeys(wanted, 0)
        for one in holders | {uid}:
            for name, amount in {**dict(self.pods[one].spec.requests), "pods": 1}.items():
                used[name] = used.get(name, 0) + amount
        has = self.nodes[node]
        return all(used[name] <= has[name] for name, amount in wanted.items() if amount)


def test_a_binding_is_allowed_exactly_when_it_fits():
    total = dict.fromkeys(GuardAnswer, 0)
    for seed in range(SEED, SEED + 200):
        account = Account(seed)
        for _ in range(80):
            getattr(account, account.chance.choices(KINDS, WEIGHTS)[0])()
        cluster = account.scheduler.cluster
        assumed = {uid for uid, entry in cluster.pods.items() if entry.where is Where.ASSUMED}
        assert assumed == set(account.planned), seed
        for answer, times in account.answers.items():
            total[answer] += times
    print(total)
    assert total[GuardAnswer.ALLOWED] > 1000
    assert total[GuardAnswer.DENIED] > 1000
