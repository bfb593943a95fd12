"""One world: the API server, the scheduler behind its door, the shell's writes, the accounts."""

from __future__ import annotations

import random
from collections import Counter

from quorate.core.invariants import Invariant
from quorate.core.model.changes import JournalFound
from quorate.core.model.journal import Journal
from quorate.core.scheduler import Scheduler
from tests.invariants import check_all
from tests.property.worlds import bounds
from tests.property.worlds.behind import claims, rest
from tests.property.worlds.behind.accounts import Accounts, key_of
from tests.property.worlds.behind.commit import Commit
from tests.property.worlds.behind.server import Server
from tests.property.worlds.findings import FindingError, expect, without_names
from tests.property.worlds.moves import devices, nodes, others, pods, storage

MOVES = pods.MOVES | nodes.MOVES | storage.MOVES | devices.MOVES | others.MOVES


class World:
    """Plays moves. Time is ``now_s``, epoch seconds."""

    scheduler_class = Scheduler

    def __init__(self, setting):
        self.setting = setting
        self.now_s = 1000.0
        self.server = Server(self.hear, setting.lags)
        self.accounts = Accounts(setting.policy.scheduler_names)
        self.commit = Commit(self)
        self.late = []
        """Binds that were sent by a leader that is gone, and have not arrived."""
        self.promised = {}
        """Nodes to which we nominated pods, by uid."""
        self.leaders = 0
        self.journal = None
        """What the last leader wrote into its lease."""
        self.tolerated = {}
        """When something that may be so for a while was first found."""
        self.log = None
        """What was told and decided, if somebody wants to see it."""
        self.calls = self._call
        self.scheduler = self.twin = None
        self._lead()

    def play(self, script):
        """Play moves: pairs of a name and a seed."""
        for _ in self.each(script):
            pass

    def each(self, script):
        """Play moves one by one; yield after each."""
        with bounds.set_to(self.setting.bounds):
            for name, seed in script:
                if self.log is not None:
                    self.log.append(("move", name))
                MOVES[name](self, random.Random(seed))
                yield

    # The door

    @staticmethod
    def _call(scheduler, name, *arguments):
        return getattr(scheduler, name)(*arguments)

    def ask(self, name, *arguments):
        """Call a method of the scheduler: all calls of a world pass here."""
        answer = self.calls(self.scheduler, name, *arguments)
        self.check_defects(self.scheduler)
        return answer

    def ask_twin(self, question):
        """Ask the twin what is asked besides: with small caches answers push one another out."""
        if self.twin is not None and self.setting.bounds:
            question(self.twin)

    def check_defects(self, scheduler):
        """The core contains its defects; but where some are planted, each is a finding."""
        if not self.setting.expects_defects:
            check_defects(scheduler)

    def hear(self, *changes):
        """Tell the scheduler, and the accounts."""
        if self.log is not None:
            self.log += [("observe", change) for change in changes]
        for change in changes:
            self.accounts.observe(change)
        self.ask("observe", changes)
        if self.twin is not None:
            self.twin.observe(changes)

    def rebuild(self):
        """Let the scheduler build its state anew, as after a defect."""
        self.ask("_rebuild")
        if self.twin is not None:
            self.twin._rebuild()

    def _lead(self):
        self.leaders += 1
        self.has_decided = False
        identity = f"id{self.leaders}"
        self.scheduler = self.scheduler_class(self.setting.policy, identity=identity)
        self.twin = None
        if self.setting.twin:
            self.twin = self.scheduler_class(self.setting.policy, identity=identity)

    def decide(self, chance, after_s):
        """Decide, check the plan, and begin to carry it out."""
        self.now_s += after_s
        self.commit.expire(self.now_s)
        plan = self.ask("decide", self.now_s)
        self.has_decided = True
        if self.log is not None:
            self.log.append(("decide", self.now_s, plan))
        if self.twin is not None:
            expect(self.twin.decide(self.now_s) == plan, "the same inputs give another plan")
        sound, problems = self.ask("verified", plan)
        if self.twin is not None:
            self.twin.verified(plan)
        self._check_verified(plan, sound, problems)
        self.accounts.check(sound)
        self._check_held()
        self.commit.carry_out(sound)
        claims.check_devices(self.server, expect)
        if chance is None or chance.random() < self.setting.checks:
            self.check_invariants()
        return plan

    def _check_verified(self, plan, sound, problems):
        """Nothing is wrong with a plan."""
        if self.setting.expects_defects:
            return  # what cannot be checked is not sent
        if problems:
            raise FindingError(f"unverified: {without_names(problems[0])[:60]}", problems[0])
        expect(sound == plan, "a sound plan is changed by its verification")

    def _check_held(self):
        """What is held is free, ends in time, and is no more than the operator allows."""
        policy, reservations = self.setting.policy, list(self.scheduler.cluster.reservations)
        for name in {one.node for one in reservations} - self.accounts.excused:
            held = [one.pod_class.spec for one in reservations if one.node == name]
            expect(self._has_room(name, held), "what is held is taken")
        for one in reservations:
            is_open = not self.server.nodes[one.node].unschedulable
            expect(is_open or one.pod_class.spec.tolerations, "a cordoned node is held")
            in_time = self.now_s < one.until_s <= self.now_s + policy.hold_s_max
            expect(in_time or not one.until_s, "what is held is held for too long")
        timed = [reservation.key for reservation in reservations if reservation.until_s]
        of_gangs = Counter(timed)
        of_namespaces = Counter(key.namespace for key in timed)
        few = policy.held_slots_per_gang_max, policy.held_slots_per_namespace_max
        for counts, most in zip((of_gangs, of_namespaces), few, strict=True):
            expect(max(counts.values(), default=0) <= most, "more is held than may be")

    def _has_room(self, name, specs):
        """Whether a node has room for these specs beside its pods, in what they ask for."""
        amounts = Counter(pods=len(specs))
        for spec in specs:
            amounts.update(dict(spec.requests))
        on_node = self.scheduler.cluster.pods_on(name)
        used = Counter(pods=len(on_node))
        for entry in on_node:
            used.update(dict(entry.pod.spec.requests))
        has = dict(self.server.nodes[name].allocatable)
        return all(used[what] + n <= has.get(what, 0) for what, n in amounts.items() if n)

    def check_invariants(self):
        """The core's own invariants hold; some may be broken for as long as they say."""
        excused = frozenset(self.accounts.excused)
        self.ask_twin(lambda twin: check_all(twin, self.now_s, excused=excused))
        undone = {str(key_of(pod)) for pod in self.accounts.being_evicted()}
        found = [
            one
            for one in check_all(self.scheduler, self.now_s, excused=excused)
            if one.invariant is not Invariant.GANG_NOT_IN_PART or one.object not in undone
        ]  # the server takes its time with evictions
        before, self.tolerated = self.tolerated, {}
        for one in found:
            key = one.invariant, one.object
            since_s = self.tolerated[key] = before.get(key, self.now_s)
            if self.now_s - since_s >= one.tolerated_s:
                raise FindingError(f"invariant {one.invariant}", f"{one.object}: {one.text}")

    # Leaders

    def renew(self):
        """Write the journal; one who has not decided yet has nothing to add to what it found."""
        if self.has_decided:
            self.journal = self.ask("journal")

    def restart(self, chance):
        """The leader dies, and a successor is told what there is. Some binds arrive late.

        None arrives two leaders later: it could not be told from what is left of a started gang.
        """
        self.late.clear()
        is_told = chance.random() < 0.7 and self.has_decided
        if is_told:
            self.renew()
        for job in self.commit.jobs:
            fate = chance.choice(["lost", "arrives", "late"])
            if fate == "arrives":
                self.commit.arrive(job)
            elif fate == "late":
                self.late.append(job)
        self.server.news.clear()
        server = self.server
        self.accounts.restarted(server.nodes, server.pods, server.specs, is_told)
        self.commit = Commit(self)
        self.tolerated.clear()
        self._lead()
        if self.journal is not None:
            self.journal = self.journal.passed_on(f"id{self.leaders}")
            self.hear(JournalFound(self.journal))
        self.hear(*self.server.changes())

    def any_node(self, uid):
        """Return a node to which another scheduler binds the pod."""
        names = [*sorted(self.server.nodes), "gone"]
        return names[sum(map(ord, uid)) % len(names)]

    def rest(self, chance):
        rest.come_to_rest(self, chance)
        rest.check_rest(self, chance)

    def newest_journal(self) -> Journal:
        return self.ask("journal")


def check_defects(scheduler):
    """Raise the first defect that was met and contained."""
    for one in scheduler.incidents():
        where = one.trace.partition(":")[0]
        text = f"{one.about}: {one.error} in {one.trace}"
        raise FindingError(f"{without_names(one.error)[:70]} in {where} ({one.stage})", text)
