"""The only door of the core: ``observe`` changes, then ``decide``.

In: changes, the time, a prefix for attempt ids. Out: a ``Plan``, and explanations when asked for.
Called by ``shell.app`` (and by the command line and the simulation in its place). Nothing here
waits, calls out, or reads a clock: the same calls give the same plans.

``decide`` is three steps: what news and time do to attempts (``_advance``), what to do now
(``plan``, which changes nothing), and making that true (``apply``). A defect of ours costs the gang
or object that met it: what failed is set aside (``quarantine``), and where the state may be
damaged, it is built again from the objects in memory (``rebuilding``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from quorate.core import policy as bounds
from quorate.core.applying import Applier
from quorate.core.changes import BindFailed, BindFailure, Change, PreemptionFailed
from quorate.core.explain import ApiWords, Explainer
from quorate.core.forking import fork
from quorate.core.journal import Journal
from quorate.core.lifecycle.advancing import Advance, Due
from quorate.core.lifecycle.attempts import Attempts
from quorate.core.lifecycle.preparing import Preparations
from quorate.core.model import GangKey
from quorate.core.objects import Objects
from quorate.core.plan.held_room import end_taken
from quorate.core.plan.plan import GangBinds, Plan, Preemption
from quorate.core.plan.tried import Decision, Failed
from quorate.core.plan.verify import verify_plan
from quorate.core.plan.verify_preemption import verify_preemption
from quorate.core.planning import Planner
from quorate.core.policy import Policy
from quorate.core.quarantine import Incident, Quarantine
from quorate.core.queue.queue import Queue
from quorate.core.rebuilding import rebuilt
from quorate.core.state.cluster import Cluster


class Scheduler:
    """Gang scheduling over arrays. ``identity`` makes attempt ids unique over restarts."""

    def __init__(
        self, policy: Policy, apis: dict[str, ApiWords] | None = None, identity: str = "q"
    ) -> None:
        self.policy = policy
        self.cluster = Cluster(policy.scheduler_names, dict(policy.profiles))
        self._objects = Objects()
        self._quarantine = Quarantine(identity)
        self._attempts = Attempts(policy, identity)
        self._preparations = Preparations()
        self._apis = apis or {}
        self._advance = Advance(self._attempts, self._preparations)
        self.planner = self._new_planner()
        self._defects = 0
        """Decisions in a row that failed as a whole."""
        self._places: dict[str, int] = {}
        """In which order the gangs of the newest plan were placed: one may rely on another."""
        self._due = Due()
        """What the newest step of time and news asks for: part of the next plan."""

    @property
    def queue(self) -> Queue:
        """Who waits for what: to be read, for checks."""
        return self.planner.queue

    # News

    def observe(self, changes: Iterable[Change]) -> None:
        """Take news in. Nothing is decided yet. A change that meets a defect is set aside."""
        for change in changes:
            what = self._objects.note(change)
            told: Change | None = change
            if self._quarantine.holds(what):
                told = self._quarantine.replace(what, change)
            try:
                if told is not None:
                    self.cluster.apply(told)
            except Exception as error:
                self._quarantine.hold(what, change, error)
                self._rebuild()

    def _retry_held(self, now_s: float) -> None:
        """Try again what was set aside, when it is time."""
        for what, change in self._quarantine.due(now_s):
            try:
                self.cluster.apply(change)
                self._quarantine.release(what)
            except Exception as error:
                self._quarantine.hold(what, change, error)
                self._rebuild()

    def _rebuild(self) -> None:
        """Build the state again from the objects in memory: what it was may be damaged."""
        plans = self._preparations.plans()
        self.cluster = rebuilt(self.cluster, self._objects, self._quarantine, self.policy, plans)
        self.planner = self._new_planner()

    def _new_planner(self) -> Planner:
        return Planner(self.cluster, self.policy, self._attempts, self._preparations)

    # Decisions

    def decide(self, now_s: float) -> Plan:
        """Return what to do now, and assume that it will be done. ``now_s`` is epoch seconds."""
        self._retry_held(now_s)
        try:
            if self._take_step(now_s):
                return self.apply(self.planner.plan(self._due, now_s))
        except Exception as error:
            self._quarantine.note("decide", "a decision", error)
            self._rebuild()
        self._defects += 1
        return Plan(wake_at_s=now_s + bounds.back_off_s(self._defects))

    def _take_step(self, now_s: float) -> bool:
        """Bring life-cycles up to date with news and time; return whether that could be done."""
        try:
            queue, room = self.queue, self.planner.room()
            due = self._advance.step(self.cluster, queue, room, self.policy, now_s)
        except Exception as error:
            self._quarantine.note("decide", "news and time", error)
            self._rebuild()
            return False
        self._due.add(due)
        for failed in due.failed:
            self._set_aside(failed, "decide", now_s)
        if due.failed:
            self._rebuild()
        return True

    def plan(self, now_s: float) -> Decision:
        """Return what the next decision would come to. Changes nothing: asked twice, it is equal.

        It is worked out on a copy of the state; see ``whatif`` for how long that takes.
        """
        other = fork(self)
        if not other._take_step(now_s):
            return Decision(Plan(), now_s)
        return other.planner.plan(other._due, now_s)

    def apply(self, decision: Decision) -> Plan:
        """Make true what a turn decided; return what is to be sent."""
        plan, now_s = decision.plan, decision.now_s
        dropped: set[GangKey] = set()
        for one in decision.tried:
            try:
                self._applier().apply(one, now_s)
            except Exception as error:
                self._set_aside(Failed(one.key, error), "apply", now_s)
                dropped.add(one.key)
                self._rebuild()
        if decision.failed is not None:
            self._set_aside(decision.failed, "decide", now_s)
        self.cluster.precedence.next_start = decision.next_start
        queue = self.queue
        queue.make_ready(key for key in decision.displaced if key in self.cluster.gangs)
        if dropped:
            plan = _without(plan, dropped)
        touched = {*plan.touched, *(one.key for one in decision.tried)}
        touched, again = self._settle(touched, now_s)
        placed = (*self._due.gangs, *(one.binds for one in decision.tried if one.binds))
        self._places = {_first_of(one): place for place, one in enumerate(placed)}
        self._due, self._defects = Due(), 0
        return msgspec.structs.replace(
            plan,
            touched=tuple(sorted(touched)),
            wake_at_s=now_s if again or decision.is_more else self._wake_at_s(now_s),
        )

    def _applier(self) -> Applier:
        return Applier(self.cluster, self._attempts, self._preparations)

    def _settle(self, touched: set[GangKey], now_s: float) -> tuple[set[GangKey], bool]:
        """Return the gangs of which something else may be said, and whether to go on at once."""
        cluster, queue = self.cluster, self.queue
        if cluster.holds:
            end_taken(cluster.holds, self.planner.room())
        now_touched, freed, _ = cluster.take_news()
        touched |= now_touched | cluster.holds.take_changed()
        touched.update(queue.rounds.take(bounds.EXPLAINED_PER_TURN_MAX))
        # Of those nothing can be said yet, and their turn comes at once.
        touched = {key for key in touched if key not in queue.ready}
        cluster.grown |= freed
        return touched, bool(queue.ready or cluster.holds.ended_on or freed)

    def _set_aside(self, failed: Failed, stage: str, now_s: float) -> None:
        """Leave a gang alone for a while: a defect of ours was met with it."""
        incident = self._quarantine.note(stage, str(failed.key), failed.error)
        gang = self.cluster.gangs.get(failed.key)
        if gang is not None:
            until_s = now_s + bounds.back_off_s(gang.memory.defects + 1)
            gang.memory.set_aside(incident.id, until_s)
            self.queue.forget(gang.key)
            self.queue.back_off(gang.key, until_s)

    def incidents(self) -> list[Incident]:
        """Return and forget the defects of ours that were met and contained since last asked."""
        return self._quarantine.take_incidents()

    def whatif(self, changes: Sequence[Change], now_s: float, policy: Policy | None = None) -> Plan:
        """Return what would be decided if these changes came now. Changes nothing.

        A gang, a node or a setting may be hypothetical. It runs a whole decision on a copy of the
        state, which takes as long as copying all pods: about a second for 100,000.
        """
        other = fork(self)
        if policy is not None:
            other.configure(policy)
        other.observe(changes)
        return other.decide(now_s)

    def forget_answers(self) -> None:
        """Forget what follows from the rest: a state that is written down begins without it."""
        self.planner.forget_answers()

    def configure(self, policy: Policy) -> None:
        """Take another policy; the state is built again for it."""
        self.policy = self._attempts.policy = policy
        self._rebuild()

    # Checks

    def verified(self, plan: Plan) -> tuple[Plan, list[str]]:
        """Return the plan without the gangs that fail verification, and what was wrong with them.

        A gang that fails is not assumed any more; it is a defect of ours, so it backs off.
        """
        problems: list[str] = []
        places, last = self._places, len(self._places)
        gangs = sorted(
            (*plan.preparing, *plan.gangs), key=lambda gang: places.get(_first_of(gang), last)
        )
        bad: dict[tuple[GangKey, str], str] = {}
        for gang, wrong in zip(gangs, self._verify(gangs), strict=True):
            if wrong:
                problems += wrong
                bad.setdefault((gang.key, gang.attempt), wrong[0])
        for gang in gangs:  # what was planned on top of a bad part of an attempt is not sent either
            words = bad.get((gang.key, gang.attempt))
            if words is not None:
                failure = BindFailure.UNVERIFIED
                self.observe(BindFailed(b.uid, b.node, failure, words) for b in gang.binds)
        sound = self._verified_preemptions(plan, problems)
        if not problems:
            return plan, problems

        def good(gangs: tuple[GangBinds, ...]) -> tuple[GangBinds, ...]:
            return tuple(gang for gang in gangs if (gang.key, gang.attempt) not in bad)

        gangs_left, preparing = good(plan.gangs), good(plan.preparing)
        left = {"gangs": gangs_left, "preparing": preparing, "preemptions": sound}
        return msgspec.structs.replace(plan, **left), problems

    def _verify(self, gangs: Sequence[GangBinds]) -> list[list[str]]:
        """Return what is wrong with each gang's binds. One that cannot be checked is not sent."""
        try:
            return verify_plan(gangs, self.cluster)
        except Exception as error:
            self._quarantine.note("verify", "a plan", error)
            self._rebuild()
        found: list[list[str]] = []
        for gang in gangs:
            try:
                found += verify_plan((gang,), self.cluster)
            except Exception as error:
                incident = self._quarantine.note("verify", str(gang.key), error)
                found.append([f"InternalError {incident.id}: the plan could not be checked"])
                self._rebuild()
        return found

    def _verified_preemptions(self, plan: Plan, problems: list[str]) -> tuple[Preemption, ...]:
        """Return the preemptions without those that fail verification; add what is wrong."""
        sound = []
        for one in plan.preemptions:
            try:
                wrong = verify_preemption(one, self.cluster)
            except Exception as error:
                incident = self._quarantine.note("verify", str(one.key), error)
                wrong = [f"InternalError {incident.id}: a preemption could not be checked"]
            if wrong:
                problems += wrong
                uids = tuple(victim.uid for victim in one.victims)
                self.observe([PreemptionFailed(one.uid, uids, wrong[0])])
            else:
                sound.append(one)
        return tuple(sound)

    def may_seal(self, gang: GangBinds, uid: str) -> bool:
        """Tell whether a bind that makes a gang quorate would still do so, before each try of it.

        Meanwhile a member may have gone, a kubelet may have refused one, min may have been raised.
        """
        entry = self.cluster.gangs.get(gang.key)
        return entry is not None and entry.may_be_sealed(gang.attempt, uid)

    def journal(self) -> Journal:
        """Return which attempts are open, for whoever leads after us. Changes nothing."""
        return self._attempts.journal(self.cluster.gangs)

    def explainer(self, now_s: float) -> Explainer:
        """Return what answers why gangs stand where they stand, as of now."""
        room = self.planner.room()
        return Explainer(self.cluster, self.policy, room, self._apis, now_s, self._note_unexplained)

    def _note_unexplained(self, key: GangKey, error: Exception) -> str:
        return self._quarantine.note("explain", str(key), error).id

    def _wake_at_s(self, now_s: float) -> float | None:
        queue, cluster = self.queue, self.cluster
        due = (
            queue.next_s(),
            self._attempts.wake_at_s(cluster.gangs),
            cluster.holds.wake_at_s(),
            cluster.devices.due_s(),
            self._quarantine.due_s(),
            now_s + bounds.EXPLAINED_AGAIN_S if queue.rounds.is_under_way else None,
        )
        return min((due_s for due_s in due if due_s is not None), default=None)


def _first_of(gang: GangBinds) -> str:
    """Return the uid of the first pod: it tells two parts of one attempt apart."""
    return gang.binds[0].uid


def _without(plan: Plan, gangs: set[GangKey]) -> Plan:
    """Return the plan without what was decided for these gangs: it could not be made true."""
    return msgspec.structs.replace(
        plan,
        gangs=tuple(one for one in plan.gangs if one.key not in gangs),
        preparing=tuple(one for one in plan.preparing if one.key not in gangs),
        undo=tuple(one for one in plan.undo if one.key not in gangs),
        preemptions=tuple(one for one in plan.preemptions if one.key not in gangs),
    )
