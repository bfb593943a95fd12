"""What the shell does with plans, in small steps that moves carry out in any order.

As ``quorate.shell.commit`` does it, without its I/O: claims before binds, the first binds of a gang
before those that seal it, each write against the object as it is by then. A step may fail.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from quorate.core.model.changes import BindFailed, BindFailure, PodBound, PreemptionFailed
from quorate.core.model.journal import entry_of
from quorate.core.model.plan import Bind, GangBinds
from tests.property.worlds.behind import claims, preparing


class Job(NamedTuple):
    bind: Bind
    gang: GangBinds
    completing: bool


class Attempt:
    def __init__(self):
        self.under_way, self.held, self.failed = 0, [], False


class Commit:
    """The writes of one leader. ``jobs`` are binds that may be sent, ``tasks`` all other writes."""

    def __init__(self, world):
        self.world = world
        self.jobs = []
        self.tasks = deque()
        """Functions of the chance that something fails; those of one gang in order."""
        self.attempts = {}

    @property
    def is_busy(self):
        return bool(self.jobs or self.tasks)

    def carry_out(self, plan):
        """Begin to do what a plan says; in the order in which the shell does."""
        self.tasks.extend(preparing.tasks_of(plan, self.world))
        for gang in plan.gangs:
            if any(bind.gives for bind in gang.binds):
                self.tasks.append(claims.GiveAll(gang, self.world, self.submit))
            else:
                self.submit(gang)
        self.tasks.extend(claims.Release(one, self.world) for one in plan.take_backs)
        self.tasks.extend(Preempt(one, self.world) for one in plan.preemptions)
        self.tasks.extend(Evict(one, self.world) for one in plan.evictions)

    def work(self, chance, faults=True):
        """Carry out one write that is not a bind."""
        place = chance.randrange(len(self.tasks)) if faults else 0
        task = self.tasks[place]
        key = getattr(task, "key", None)
        if key is not None:  # the writes of one gang go out in order
            task = next(one for one in self.tasks if getattr(one, "key", None) == key)
        self.tasks.remove(task)
        task(chance, faults)

    # Binds

    def submit(self, gang):
        attempt = self.attempts.setdefault(gang.attempt, Attempt())
        if gang.started:
            attempt.under_way += len(gang.binds)
            self.jobs += [Job(bind, gang, True) for bind in gang.binds]
            return
        earlier, attempt.held = attempt.held, []
        attempt.under_way += gang.first + len(earlier)
        attempt.failed = False
        self.jobs += [job._replace(completing=False) for job in earlier]
        self.jobs += [Job(bind, gang, False) for bind in gang.binds[: gang.first]]
        attempt.held += [Job(bind, gang, True) for bind in gang.binds[gang.first :]]
        self._release(gang.attempt, attempt)

    def _release(self, key, attempt):
        if attempt.under_way:
            return
        held, attempt.held = attempt.held, []
        failed, attempt.failed = attempt.failed, False
        if not held:
            self.attempts.pop(key, None)
        elif failed:
            del self.attempts[key]
            for job in held:
                self.tell(job, BindFailure.NOT_SENT)
        else:
            attempt.under_way = len(held)
            self.jobs += held

    def answer(self, index, outcome, bound_first=True):
        """Settle one bind. ``outcome`` is a BindFailure, or "ok" as far as the server can."""
        job = self.jobs.pop(index % len(self.jobs))
        is_bound = self._try(job, outcome, bound_first)
        attempt = self.attempts.get(job.gang.attempt)
        if attempt is not None:
            attempt.under_way -= 1
            attempt.failed |= not is_bound
            self._release(job.gang.attempt, attempt)

    def _try(self, job, outcome, bound_first):
        """Send a bind to the API server, which may see it otherwise; return whether it was done."""
        world, uid = self.world, job.bind.uid
        pod = world.server.pods.get(uid)
        if pod is None:
            return self.tell(job, BindFailure.GONE)
        if job.completing and not world.ask("may_complete", job.gang, uid):
            return self.tell(job, BindFailure.NOT_SENT)
        if pod.node:
            return self.tell(job, BindFailure.ELSEWHERE, pod.node)
        if outcome == "ok":
            if pod.terminating or pod.gates or pod.finished:
                return self.tell(job, BindFailure.REFUSED)
            self.bind(job, bound_first)
            return True
        if outcome is BindFailure.GONE:
            world.server.remove_pod(uid)
        elif outcome is BindFailure.ELSEWHERE:
            node = world.any_node(uid)
            world.server.edit_pod(uid, node=node)
            return self.tell(job, outcome, node)
        elif outcome in (BindFailure.UNPREPARED, BindFailure.UNVERIFIED, BindFailure.NOT_SENT):
            outcome = BindFailure.TIMEOUT  # those are said by the core, and by ``_release``
        return self.tell(job, outcome)

    def bind(self, job, bound_first):
        """The API server binds; its answer and its news may come in either order."""
        if bound_first:
            self.world.hear(PodBound(job.bind.uid, job.bind.node))
        self.world.server.edit_pod(job.bind.uid, **marks(job))
        if not bound_first:
            self.world.hear(PodBound(job.bind.uid, job.bind.node))

    def arrive(self, job):
        """A bind of a leader that is gone arrives."""
        pod = self.world.server.pods.get(job.bind.uid)
        if pod is not None and not (pod.node or pod.terminating or pod.gates or pod.finished):
            self.world.server.edit_pod(pod.uid, **marks(job))

    def expire(self, now_s):
        """Nobody tries longer than an attempt lasts: what has no answer by then is read back."""
        while late := [job for job in self.jobs if job.gang.deadline_s <= now_s]:
            self.answer(self.jobs.index(late[0]), BindFailure.TIMEOUT)

    def forget(self, uid):
        """Somebody else tells what became of this bind."""
        for job in [job for job in self.jobs if job.bind.uid == uid]:
            self.jobs.remove(job)
        for attempt in self.attempts.values():
            attempt.held = [job for job in attempt.held if job.bind.uid != uid]

    def tell(self, job, failure, node=""):
        self.world.hear(BindFailed(job.bind.uid, node or job.bind.node, failure, "no"))
        return False


def marks(job):
    """What the API server writes into a pod that it binds: the node, and our annotations."""
    return {
        "node": job.bind.node,
        "attempt": job.gang.attempt,
        "attempt_size": job.gang.size,
        "bound_for": entry_of(job.gang.key),
        "started": job.completing,
    }


class Evict:
    """Evict a pod, until it goes; a disruption budget may refuse for a while."""

    def __init__(self, eviction, world):
        self.eviction, self.world = eviction, world

    def __call__(self, chance, faults):
        if faults and chance.random() < 0.2:
            self.world.commit.tasks.append(self)
        else:
            self.world.server.edit_pod(self.eviction.uid, terminating=True)


class Preempt:
    """Nominate a pod, take promises back that yield to it, and delete its victims."""

    def __init__(self, preemption, world):
        self.preemption, self.world = preemption, world

    def __call__(self, chance, faults):
        one, server = self.preemption, self.world.server
        for pod in list(server.pods.values()):
            if (pod.namespace, pod.name) in one.displaced:
                server.edit_pod(pod.uid, nominated="")
        often = 0.15 if one.uid in server.pods else 0.5
        if faults and one.victims and chance.random() < often:
            uids = tuple(victim.uid for victim in one.victims)
            self.world.hear(PreemptionFailed(one.uid, uids, "no right"))
            return
        server.edit_pod(one.uid, nominated=one.node)
        self.world.promised[one.uid] = one.node
        failed = []
        for victim in one.victims:
            if faults and chance.random() < 0.25:
                failed.append(victim.uid)
            else:
                server.edit_pod(victim.uid, terminating=True, preempted=True)
        if failed:
            self.world.hear(PreemptionFailed(one.uid, tuple(failed), "no"))
