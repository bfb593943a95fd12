"""Kubelets refuse members at any time: in the end a gang is whole, or it holds nothing.

Another scheduler fills the nodes, of which ours hears late. A pod whose node is full by the time
its kubelet sees it is refused, and its owner makes another. One leader, and nobody edits min: so
there is always a right answer, which random worlds with more in them cannot know.
"""

import random
from collections import Counter

import pytest

from quorate.core.model.changes import BindFailed
from tests.property.seeds import SEED, times
from tests.property.worlds.behind.commit import Commit
from tests.property.worlds.behind.server import Server
from tests.unit.core.world import World

SIZE, GANGS, NODES, CPU = 5, 3, 3, 6
FOREIGN = NODES * CPU - SIZE
"""So many foreign pods leave room for one of the gangs. Each pod wants one cpu."""
TIMEOUT_S = 5.0
ROUNDS = times(600)


class Contest:
    """Ours and another scheduler on the same nodes, with kubelets that refuse."""

    def __init__(self, chance: random.Random):
        self.chance = chance
        self.world = World(avoid_s=TIMEOUT_S)
        self.heard = []
        """Answers to binds that the core has not been told yet."""
        self.hear = self.heard.append
        self.server = Server(self.world.observe, lags=True)
        self.commit = Commit(self)
        self.admitted, self.refused = set(), 0
        self.ends = chance.choice((0.05, 0.2, 1.0))
        """How often a job ends when it may: it then makes all its pods anew."""
        for index in range(NODES):
            self.world.node(f"n{index}", cpu=CPU)
        self.gangs = [
            self.world.object(f"job-{index}", SIZE, timeout_s=TIMEOUT_S) for index in range(GANGS)
        ]

    def ask(self, name, *args):
        """Ask the core, which knows by then of each bind that failed, as in ``shell.app``."""
        while any(isinstance(change, BindFailed) for change in self.heard):
            self.answers_come()
        return getattr(self.world.scheduler, name)(*args)

    def make(self, **fields):
        """Make a pod; the watch tells of it later."""
        name = f"pod-{self.server.number()}"
        pod = self.world.make(name, **fields)
        self.server.put_pod(pod)

    # What may happen, in any order

    def owners_make(self):
        for gang in self.gangs:
            for _ in range(SIZE - len(self.live(gang))):
                self.make(gang=gang)

    def a_job_ends(self):
        if self.chance.random() < self.ends:
            for pod in self.live(self.chance.choice(self.gangs)):
                self.server.edit_pod(pod.uid, terminating=True)

    def foreign_come(self):
        """kube-scheduler binds a pod where there is room now."""
        free = [f"n{index}" for index in range(NODES) if self.used[f"n{index}"] < CPU]
        there = sum(pod.scheduler != "quorate" for pod in self.server.pods.values())
        if free and there < FOREIGN:
            self.make(scheduler="default-scheduler", node=self.chance.choice(free))

    def foreign_go(self):
        there = [p for p in self.server.pods.values() if p.scheduler != "quorate"]
        if there:
            self.server.remove_pod(self.chance.choice(there).uid)

    def kubelets_look(self):
        """A kubelet admits or refuses one pod that was bound to it."""
        new = [p for p in self.server.pods.values() if p.node and self.is_new(p)]
        if not new:
            return
        pod = self.chance.choice(new)
        there = (self.server.pods.get(uid) for uid in self.admitted)
        if sum(one is not None and one.node == pod.node for one in there) < CPU:
            self.admitted.add(pod.uid)
            self.server.edit_pod(pod.uid, phase="Running")
        else:
            self.refused += 1
            self.server.edit_pod(pod.uid, phase="Failed", refusal="OutOfcpu")

    def kubelets_end(self):
        for pod in list(self.server.pods.values()):
            if pod.terminating:
                self.admitted.discard(pod.uid)
                self.server.remove_pod(pod.uid)

    def binds_go(self):
        if self.commit.jobs:
            self.commit.answer(self.chance.randrange(8), "ok", self.chance.random() < 0.5)

    def evictions_go(self):
        if self.commit.tasks:
            self.commit.work(self.chance, faults=False)

    def watch_tells(self):
        self.server.flush(self.chance.randrange(1, 4))

    def answers_come(self):
        count = self.chance.randrange(1, 4)
        heard, self.heard[:count] = self.heard[:count], []
        self.world.observe(*heard)

    def decide(self):
        self.commit.carry_out(self.world.decide(self.chance.choice((0.0, 0.0, 0.5))))

    # What is true

    def is_new(self, pod):
        return not (pod.refusal or pod.terminating or pod.uid in self.admitted)

    def live(self, gang):
        found = [p for p in self.server.pods.values() if p.membership and not p.refusal]
        return [p for p in found if p.membership.key == gang and not p.terminating]

    def bound(self):
        """Return how many members of each gang have a node."""
        return {str(gang): sum(bool(p.node) for p in self.live(gang)) for gang in self.gangs}

    @property
    def used(self):
        return Counter(p.node for p in self.server.pods.values() if p.node and not p.refusal)

    def play(self, moves: int):
        """Let so much happen; some of it is slow in this round, and some is quick."""
        happens = [
            self.owners_make,
            self.a_job_ends,
            self.foreign_come,
            self.foreign_go,
            self.kubelets_look,
            self.kubelets_end,
            self.binds_go,
            self.evictions_go,
            self.watch_tells,
            self.answers_come,
            self.decide,
        ]
        speeds = [self.chance.choice((0.1, 1.0, 3.0)) for _ in happens]
        for happen in self.chance.choices(happens, speeds, k=moves):
            happen()

    def come_to_rest(self):
        """Let everything happen that happens by itself, for some attempts' time."""
        for _ in range(100):
            self.owners_make()
            self.decide()
            while self.commit.jobs:
                self.binds_go()
            while self.commit.tasks:
                self.evictions_go()
            while any(p.node and self.is_new(p) for p in self.server.pods.values()):
                self.kubelets_look()
            self.kubelets_end()
            self.server.flush()
            while self.heard:
                self.answers_come()
            self.world.now_s += TIMEOUT_S / 4


@pytest.mark.parametrize("part", range(4))
def test_a_gang_is_whole_or_holds_nothing_after_any_refusals(part):
    refused = 0
    for index in range(part, ROUNDS, 4):
        chance = random.Random(f"{SEED} {index}")
        contest = Contest(chance)
        contest.play(chance.randrange(100, 1000))
        contest.come_to_rest()
        bound = contest.bound()
        assert set(bound.values()) <= {0, SIZE}, f"QUORATE_SEED={SEED}, round {index}: {bound}"
        assert sum(bound.values()) >= SIZE, f"QUORATE_SEED={SEED}, round {index}: {bound}"
        refused += contest.refused
    assert refused, "kubelets had nothing to refuse"
