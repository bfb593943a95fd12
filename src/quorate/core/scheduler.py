"""The only entry point of the core: ``observe`` changes, then ``decide``.

In: changes, the time, a prefix for attempt ids. Out: a ``Plan``, and explanations on request.
Called by ``shell.app`` (and by the command line and the simulation in its place). Nothing here
waits, does I/O, or reads a clock: the same calls return the same plans.

``decide`` has three steps: take in news and time (``advance``), plan (``planner.plan``, which only
reads the cluster), and write the effects (``apply``). A defect of ours affects only the gang or
object that met it: that one is set aside (``defects``), and if the state may be damaged, it is
built again from the objects in memory (``rebuilding``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.objects import COUNTED, ObjectId, Objects
from quorate.core.lifecycle.advancing import Advance, DueWork, take_reservation_changes
from quorate.core.lifecycle.attempts import Attempts
from quorate.core.lifecycle.effects import Decision, Failed, GangOutcome
from quorate.core.lifecycle.preparing import Preparations
from quorate.core.model import GangKey
from quorate.core.model import policy as bounds
from quorate.core.model.changes import Change
from quorate.core.model.journal import Journal
from quorate.core.model.plan import GangBinds, Plan
from quorate.core.model.policy import Policy
from quorate.core.queue.queue import Queue
from quorate.core.room.reserved_room import end_taken
from quorate.core.turn.applying import Applier
from quorate.core.turn.defects import Defects, Incident, culprit
from quorate.core.turn.planning import Planner
from quorate.core.turn.rebuilding import rebuilt
from quorate.core.turn.verifying import (
    Checks,
    binds_failed,
    failures,
    preemptions_failed,
)
from quorate.core.words.explain import Explainer
from quorate.core.words.object_words import ApiWords


class Scheduler:
    """Gang scheduling over arrays. ``identity`` makes attempt ids unique over restarts."""

    def __init__(
        self, policy: Policy, apis: dict[str, ApiWords] | None = None, identity: str = "q"
    ) -> None:
        self.policy = policy
        self.cluster = Cluster(policy.scheduler_names, dict(policy.profiles))
        self._objects = Objects()
        self._defects = Defects(identity)
        self._attempts = Attempts(policy, identity)
        self._preparations = Preparations()
        self._apis = apis or {}
        self.advance = Advance(self._attempts, self._preparations)
        self.planner = self._new_planner()
        self._defects_in_a_row = 0
        """The number of decisions in a row that failed as a whole."""
        self._is_rebuilt = False
        """Whether the state was rebuilt since the last news: then everything counts as news."""
        self._is_damaged = False
        """Whether the state has to be rebuilt before anything else."""
        self._has_mended = False
        """Whether it was rebuilt since the last decision because a change met a defect."""
        self._due = DueWork()
        """What news and time require to send with the next plan."""

    @property
    def queue(self) -> Queue:
        """The queue, to be read by checks."""
        return self.planner.queue

    # News

    def observe(self, changes: Iterable[Change]) -> None:
        """Take news in. Nothing is decided yet. A change that meets a defect is set aside."""
        for change in changes:
            try:
                self._observe(change)
            except Exception as error:  # met while a defect was contained: once more, afresh
                self._contain("observe", type(change).__name__, error)
                try:
                    self._observe(change)
                except Exception as again:
                    self._contain("observe", type(change).__name__, again)

    def _observe(self, change: Change) -> None:
        what = self._objects.note(change)
        taken: Change | None = change
        if self._defects.has(what):
            taken = self._defects.replace(what, change)
        try:
            if taken is not None:
                self.cluster.apply(taken)
        except Exception as error:
            if taken is change:
                self._defects.set_aside(what, change, error)
            else:
                self._defects.weaken(what, error)
            is_afresh = self._mend()
            if is_afresh and what[0] in COUNTED:  # nothing stands in for it, and gangs count by it
                self._retry(what, change)

    def _retry(self, what: ObjectId, change: Change) -> None:
        try:
            self.cluster.apply(change)
            self._defects.remove(what)
        except Exception as error:
            self._defects.set_aside(what, change, error)
            self._mend()

    def _mend(self) -> bool:
        """Rebuild the state once between two decisions; later ones wait until the next begins.

        So many bad objects at once cost no more time than two. Return whether it was rebuilt now.
        """
        if self._has_mended:
            self._is_damaged = True
            return False
        self._has_mended = True
        self._rebuild()
        return True

    def _contain(self, stage: str, about: str, error: Exception) -> str:
        """Note a defect and build the state again; return the incident's id.

        If that raises too, nothing escapes: the next decision begins with rebuilding.
        """
        try:
            incident = self._defects.note(stage, about, error)
            self._rebuild()
        except Exception:
            self._is_damaged = True
            return "without a number"
        return incident.id

    def _rebuild(self) -> None:
        """Build the state again from the objects in memory: what it was may be damaged."""
        plans = self._preparations.plans()
        self.cluster = rebuilt(self.cluster, self._objects, self._defects, self.policy, plans)
        self.planner = self._new_planner()
        self._is_rebuilt, self._is_damaged = True, False

    def _new_planner(self) -> Planner:
        return Planner(self.cluster, self.policy, self._attempts, self._preparations)

    # Decisions

    def decide(self, now_s: float) -> Plan:
        """Return the plan for now, and assume that it will be done. ``now_s`` is epoch seconds.

        While much news is left to take in, the plan has only what is due, and ``decide`` has to be
        called again at once.
        """
        try:
            self._begin(now_s)
            self._take_step(now_s)
            if self.advance.is_behind:
                return self._due_alone(now_s)
            return self.apply(self.planner.plan(self._due, now_s))
        except Exception as error:
            if self._is_contained("decide", error, now_s):
                return self._due_alone(now_s)
        self._defects_in_a_row += 1
        return self._due_alone(now_s + bounds.back_off_s(self._defects_in_a_row))

    def _due_alone(self, wake_at_s: float) -> Plan:
        """Return a plan of only what is due: it is sent at once, before it becomes outdated."""
        try:
            plan = msgspec.structs.replace(self._due.plan(()), touched=(), wake_at_s=wake_at_s)
            self._due.sent()
        except Exception as error:
            self._defects.note("decide", "what is due", error)
            return Plan(wake_at_s=wake_at_s)
        return plan

    def _begin(self, now_s: float) -> None:
        """Have the state sound, and try again what was set aside, when it is time."""
        if self._is_damaged:
            self._rebuild()
        self._has_mended = False
        for what, change in self._defects.due(now_s):
            self._retry(what, change)
        if self._is_damaged:
            self._rebuild()

    def _is_contained(self, stage: str, error: Exception, now_s: float) -> bool:
        """Contain what a whole decision met; return whether one gang could be set aside for it."""
        try:
            key = culprit(error)
            gang = self.cluster.gangs.get(key) if key is not None else None
            if gang is not None and not gang.memory.aside.is_active(now_s):
                self._rebuild()
                self._set_aside(Failed(gang.key, error), stage, now_s)
                return True
        except Exception as another:
            error = another
        self._contain(stage, "a decision", error)
        return False

    def _take_step(self, now_s: float) -> None:
        """Take in time, and a bounded part of the news."""
        queue, ask_room = self.queue, self.planner.room
        self._is_rebuilt = False
        self.advance.step(self.cluster, queue, ask_room, self.policy, now_s, self._due)
        failed, self._due.failed = self._due.failed, []
        if failed:
            self._rebuild()
        for one in failed:
            self._set_aside(one, "decide", now_s)

    def apply(self, decision: Decision) -> Plan:
        """Make true what a turn decided; return what is to be sent."""
        dropped = self._make_true(decision)
        plan = decision.plan_without(dropped) if dropped else decision.plan
        touched = {*plan.touched, *(one.key for one in decision.outcomes)}
        wake_at_s: float | None = decision.now_s
        self._due = DueWork()
        try:
            if decision.failed is not None:
                self._rebuild()
                self._set_aside(decision.failed, "decide", decision.now_s)
            touched, wake_at_s = self._settle(decision, touched)
            self._defects_in_a_row = 0
        except Exception as error:  # the plan is sent nevertheless
            if not self._is_contained("apply", error, decision.now_s):
                self._defects_in_a_row += 1
                wake_at_s = decision.now_s + bounds.back_off_s(self._defects_in_a_row)
        return msgspec.structs.replace(plan, touched=tuple(sorted(touched)), wake_at_s=wake_at_s)

    def _make_true(self, decision: Decision) -> set[GangKey]:
        """Apply the effects; return the gangs that met a defect: nothing is sent for them."""
        dropped: set[GangKey] = set()
        for one in decision.outcomes:
            try:
                self._applier().apply(one, decision.now_s)
            except Exception as error:
                dropped.add(one.key)
                self._rebuild()
                self._set_aside(Failed(one.key, error), "apply", decision.now_s)
                self._take_back(one, decision.plan, error)
        return dropped

    def _take_back(self, outcome: GangOutcome, plan: Plan, error: Exception) -> None:
        """End what was assumed for a gang for which nothing is sent."""
        gang = self.cluster.gangs.get(outcome.key)
        if gang is not None and outcome.undo is not None:
            gang.lifecycle.is_undoing = False
        words = f"InternalError: {error}"[:200]
        of_gang = [one for one in (*plan.gangs, *plan.preparing) if one.key == outcome.key]
        self.observe(binds_failed(of_gang, words))
        if outcome.preemption is not None:
            self.observe(preemptions_failed((outcome.preemption,), words))

    def _applier(self) -> Applier:
        return Applier(self.cluster, self._attempts, self._preparations)

    def _settle(
        self, decision: Decision, touched: set[GangKey]
    ) -> tuple[set[GangKey], float | None]:
        """Return the gangs whose explanations may have changed, and when to decide again."""
        cluster, queue, now_s = self.cluster, self.queue, decision.now_s
        cluster.precedence.next_start = decision.next_start
        if self._is_rebuilt:
            return touched, now_s
        queue.make_ready(key for key in decision.displaced if key in cluster.gangs)
        if cluster.reservations:
            end_taken(cluster.reservations, self.planner.room())
        now_touched, freed, _ = cluster.take_news()
        touched |= now_touched | take_reservation_changes(cluster, queue)
        touched.update(queue.rounds.take(bounds.EXPLAINED_PER_TURN_MAX))
        # Gangs that are still queued are not reported yet: the next turn tries them at once.
        touched = {key for key in touched if key not in queue.ready}
        cluster.grown |= freed
        if queue.ready or cluster.reservations.ended_on or freed or decision.is_more:
            return touched, now_s
        due_s = self.advance.next_s(cluster, queue, now_s), self._defects.due_s()
        return touched, min((one for one in due_s if one is not None), default=None)

    def _set_aside(self, failed: Failed, stage: str, now_s: float) -> None:
        """Set a gang aside for a while after it met a defect of ours."""
        incident = self._defects.note(stage, str(failed.key), failed.error)
        gang = self.cluster.gangs.get(failed.key)
        if gang is not None:
            gang.memory.aside.begin(incident.id, now_s)

    def incidents(self) -> list[Incident]:
        """Return and forget the defects of ours that were met and contained since last asked."""
        try:
            return self._defects.take_incidents()
        except Exception:  # they are told of the next time
            return []

    def forget_caches(self) -> None:
        """Forget cached answers: a checkpoint does not contain them."""
        self.planner.forget_caches()

    # Checks

    def verified(self, plan: Plan) -> tuple[Plan, list[str]]:
        """Return the plan without the gangs that fail verification, and what is wrong with them.

        A gang that fails is no longer assumed. The failure is a defect of ours, so it backs off.
        """
        try:
            checks = Checks(lambda: self.cluster, partial(self._contain, "verify"))
            sound, failed, problems = checks.verified(plan)
        except Exception as error:
            words = f"InternalError {self._contain('verify', 'a plan', error)}: nothing was checked"
            sound = msgspec.structs.replace(plan, gangs=(), preparing=(), preemptions=())
            failed, problems = list(failures(plan, words)), [words]
        self.observe(failed)
        return sound, problems

    def may_complete(self, gang: GangBinds, uid: str) -> bool:
        """Whether a bind that completes a gang would still do so; called before each try of it.

        Meanwhile a member may have gone, a kubelet may have refused one, min may have been raised.
        """
        try:
            entry = self.cluster.gangs.get(gang.key)
            return entry is not None and entry.may_complete(gang.attempt, uid)
        except Exception as error:
            self._defects.note("verify", str(gang.key), error)
            return False

    def journal(self) -> Journal:
        """Return the journal of open attempts for the next leader. Changes nothing."""
        try:
            return self._attempts.journal(self.cluster.gangs)
        except Exception as error:
            self._defects.note("decide", "the journal", error)
            return Journal(self._attempts.identity, self._attempts.made, None)

    def explainer(self, now_s: float) -> Explainer:
        """Return an explainer, which says why gangs wait, for the present state."""
        ask_room, note = self.planner.room, self.note_unexplained
        return Explainer(self.cluster, self.policy, ask_room, self._apis, now_s, note)

    def note_defect(self, stage: str, about: str, error: Exception) -> None:
        """Note a defect that was met while the state was only read."""
        self._defects.note(stage, about, error)

    def note_unexplained(self, key: GangKey, error: Exception, now_s: float) -> str:
        """Note a defect that was met while a gang was explained; return the incident's id.

        The gang is explained again after some time.
        """
        incident = self._defects.note("explain", str(key), error)
        gang = self.cluster.gangs.get(key)
        if gang is not None:
            gang.memory.unexplained.begin(incident.id, now_s)
            self.queue.alarms.set(key, gang.memory.unexplained.until_s)
        return incident.id
