"""The only door of the core: ``observe`` changes, then ``decide``.

In: changes, the time, a prefix for attempt ids. Out: a ``Plan``, and explanations when asked for.
Called by ``shell.app`` (and by the command line and the simulation in its place). Nothing here
waits, calls out, or reads a clock: the same calls give the same plans.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
import numpy as np

from quorate.core.changes import BindFailed, BindFailure, Change, PreemptionFailed
from quorate.core.explain import ApiWords, Explainer
from quorate.core.journal import Journal
from quorate.core.model import GangKey
from quorate.core.plan.attempts import Attempts
from quorate.core.plan.clearing import preempts
from quorate.core.plan.cycle import Cycle, members_of
from quorate.core.plan.devices.giving import take_backs
from quorate.core.plan.filters import AttributeMasks, fits_alone, node_resources_fit
from quorate.core.plan.held_room import end_taken, end_unusable
from quorate.core.plan.min_resources import shortage
from quorate.core.plan.plan import Eviction, GangBinds, Plan, Preemption, TakeBack, Undo
from quorate.core.plan.preparing import Preparations, stale
from quorate.core.plan.room import Room
from quorate.core.plan.single import Singles
from quorate.core.plan.verify import verify_plan
from quorate.core.plan.verify_preemption import verify_preemption
from quorate.core.policy import Policy
from quorate.core.queue.gate import held_by
from quorate.core.queue.queue import Queue
from quorate.core.reasons import Reason
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import PodClass
from quorate.core.state.gangs import GangEntry


@dataclass(slots=True)
class _Draft:
    """Parts of a ``Plan`` that is being made."""

    gangs: list[GangBinds]
    undo: list[Undo]
    preparing: list[GangBinds] = field(default_factory=list)


class Scheduler:
    """Gang scheduling over arrays. ``identity`` makes attempt ids unique over restarts."""

    def __init__(
        self, policy: Policy, apis: dict[str, ApiWords] | None = None, identity: str = "q"
    ) -> None:
        self.policy = policy
        self.cluster = Cluster(policy.scheduler_names, dict(policy.profiles))
        self._queue = Queue()
        self._masks = AttributeMasks()
        self._singles = Singles()
        self._attempts = Attempts(policy, identity)
        self._preparations = Preparations()
        self._apis = apis or {}
        self._held_on_version = -1
        """Version of the nodes' attributes by which it was last asked if holds can be used."""

    def observe(self, changes: Iterable[Change]) -> None:
        """Take news in. Nothing is decided yet."""
        for change in changes:
            self.cluster.apply(change)

    def decide(self, now_s: float) -> Plan:
        """Return what to do now, and assume that it will be done. ``now_s`` is epoch seconds."""
        cluster, queue = self.cluster, self._queue
        cluster.devices.pass_time(now_s)
        gangs, undo = self._preparations.step(cluster, now_s)
        draft = _Draft(gangs, undo)
        touched, evictions = self._take_news(now_s)
        idle: list[TakeBack] = []
        preemptions: list[Preemption] = []
        binds_left = self.policy.binds_per_plan_max
        singles_left = self.policy.singles_per_plan_max
        cycle: Cycle | None = None
        for gang in queue.take_ready(cluster.gangs):
            touched.add(gang.key)
            reason = held_by(gang, cluster, now_s)
            if reason is Reason.BACKING_OFF:
                queue.back_off(gang.key, gang.not_before_s)
            if reason is not Reason.NONE or not gang.waits:
                idle += take_backs(gang, cluster) if reason is not Reason.BACKING_OFF else []
                continue
            cycle = cycle or Cycle(cluster, self.policy, self._masks, self._room(), self._singles)
            gang.avoid = {node: end_s for node, end_s in gang.avoid.items() if end_s > now_s}
            if not self._preparations.holds(gang):
                binds = self._place(gang, cycle, draft, now_s)
                binds_left -= binds
                singles_left -= binds if gang.key.is_single else 0
            if gang.waits:
                idle += take_backs(gang, cluster)
                self._make_room(gang, cycle, preemptions)
            if binds_left <= 0 or singles_left <= 0:
                break
        if cycle is not None:
            queue.make_ready(cycle.clearings.displaced)
        now_touched, freed, _ = cluster.take_news()
        touched |= now_touched | cluster.holds.take_changed()
        touched -= queue.ready  # nothing can be said of them yet, and their turn comes at once
        cluster.grown |= freed
        again = queue.ready or cluster.holds.ended_on or freed
        return Plan(
            gangs=tuple(draft.gangs),
            preparing=tuple(draft.preparing),
            undo=tuple(draft.undo),
            evictions=tuple(evictions),
            take_backs=tuple(idle),
            preemptions=tuple(preemptions),
            touched=tuple(sorted(touched)),
            wake_at_s=now_s if again else self._wake_at_s(),
        )

    def _make_room(self, gang: GangEntry, cycle: Cycle, made: list[Preemption]) -> None:
        """Preempt for what still waits, where that is done; block it until room grows."""
        queue = self._queue
        if preempts(gang) and len(made) >= self.policy.preemptions_per_plan_max:
            queue.ready.add(gang.key)
            return
        preemption = cycle.preempt(gang)
        if preemption is not None:
            made.append(preemption)
        priority = gang.priority if preempts(gang) else None
        queue.block(gang.key, members_of(gang, self.cluster), priority)
        if gang.avoid:
            queue.alarms[gang.key] = min(gang.avoid.values())

    def _place(self, gang: GangEntry, cycle: Cycle, draft: _Draft, now_s: float) -> int:
        """Place one gang, or let go what an earlier attempt left; return how many binds it takes.

        A plan with claims to be bound first is sent in two parts.
        """
        first = max(0, gang.need - 1)
        binds = cycle.place(gang)
        if not binds:
            left = stale(gang, self.cluster)
            draft.undo += [left] if left is not None else []
            return 0
        plan = self._attempts.begin(gang, binds, first, now_s)
        if any(bind.prepare for bind in binds):
            draft.preparing.append(plan)
            self._preparations.begin(gang, plan)
        else:
            draft.gangs.append(plan)
        return len(binds)

    def _take_news(self, now_s: float) -> tuple[set[GangKey], list[Eviction]]:
        """Wake whom the news can help; return who differs, and evictions of attempts that ended."""
        cluster, queue = self.cluster, self._queue
        touched, grown, nodes_differ = cluster.take_news()
        grown |= self._settle_holds(touched, now_s)
        touched |= cluster.holds.take_changed()
        changed = [cluster.gangs[key] for key in sorted(touched) if key in cluster.gangs]
        self._note_refusals(changed, now_s)
        for gang in changed:
            self._attempts.resume(gang, cluster.found, now_s)
        ended, evictions = self._attempts.end_due(now_s)
        self._attempts.note_failures([*changed, *ended], now_s)
        touched.update(gang.key for gang in ended)
        for gang in ended:
            cluster.precedence.may_go(gang)
        queue.make_ready(touched)
        queue.time_passed(now_s)
        stirred = cluster.neighbours.take_stirred()
        devices, classes = cluster.devices.take_stirred()
        if grown or stirred or devices:
            self._wake(sorted(grown), stirred, devices=devices, classes=classes)
        if grown:
            touched.update(cluster.not_admitted())
        if nodes_differ:
            touched.update(queue.blocked)
        return touched, evictions

    def _settle_holds(self, touched: set[GangKey], now_s: float) -> set[int]:
        """Give new holds their time and end what is over; return rows that are held no more."""
        cluster, holds = self.cluster, self.cluster.holds
        for key in touched:
            holds.settle(key, cluster.gangs.get(key), now_s, self.policy.hold_s)
        if holds:
            holds.end_due(now_s)
            end_taken(cluster)
            if holds.changed or self._held_on_version != cluster.nodes.attributes_version:
                self._held_on_version = cluster.nodes.attributes_version
                end_unusable(cluster, self._room())
        rows = cluster.nodes.rows
        return {rows[node] for node in holds.take_ended_on() if node in rows}

    def verified(self, plan: Plan) -> tuple[Plan, list[str]]:
        """Return the plan without the gangs that fail verification, and what was wrong with them.

        A gang that fails is not assumed any more; it is a defect of ours, so it backs off.
        """
        problems: list[str] = []
        bad: set[tuple[GangKey, str]] = set()
        gangs = (*plan.preparing, *plan.gangs)
        for gang, wrong in zip(gangs, verify_plan(gangs, self.cluster), strict=True):
            if wrong:
                problems += wrong
                bad.add((gang.key, gang.attempt))
                failure = BindFailure.UNVERIFIED
                self.observe(BindFailed(b.uid, b.node, failure, wrong[0]) for b in gang.binds)
        sound = self._verified_preemptions(plan, problems)
        if not problems:
            return plan, problems

        def good(gangs: tuple[GangBinds, ...]) -> tuple[GangBinds, ...]:
            return tuple(gang for gang in gangs if (gang.key, gang.attempt) not in bad)

        gangs_left, preparing = good(plan.gangs), good(plan.preparing)
        left = {"gangs": gangs_left, "preparing": preparing, "preemptions": sound}
        return msgspec.structs.replace(plan, **left), problems

    def _verified_preemptions(self, plan: Plan, problems: list[str]) -> tuple[Preemption, ...]:
        """Return the preemptions without those that fail verification; add what is wrong."""
        sound = []
        for one in plan.preemptions:
            if wrong := verify_preemption(one, self.cluster):
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
        return self._attempts.journal()

    def explainer(self, now_s: float) -> Explainer:
        """Return what answers why gangs stand where they stand, as of now."""
        return Explainer(self.cluster, self.policy, self._room(), self._apis, now_s)

    def _room(self) -> Room:
        return Room(self.cluster.snapshot(), self._masks)

    def _wake(self, rows: list[int], stirred: set[int], *, devices: bool, classes: bool) -> None:
        """Wake the blocked gangs of which one more pod fits on one of the rows.

        Those whose rules look at pods that came or went may fit anywhere; ``stirred`` are the
        selectors of such pods. ``devices`` says that some are free or new, ``classes`` that
        device classes are different.
        """
        if not self._queue.blocked:
            return
        room = self._room()
        free = room.free[rows]
        bound = self.cluster.precedence.bound

        def could_help(pod_class: PodClass, priority: int | None) -> bool:
            left = free
            if priority is not None and bound is not None:
                left = free + bound.below(priority, np.array(rows), free.shape[1])
            slots = node_resources_fit.slots(pod_class, left)
            if np.any((slots > 0) & room.mask(pod_class)[rows]):
                return True
            if devices and (pod_class.ask is not None or pod_class.shape.extended):
                return classes or bool(room.slots(pod_class).any())
            concerns = self.cluster.neighbours.concerns(pod_class) if stirred else frozenset()
            if stirred.isdisjoint(concerns) or not fits_alone(pod_class, room).any():
                return False
            return bool(room.slots(pod_class).any())

        self._queue.room_grew(could_help)
        # The gate adds up the room of all nodes: also of those that take no pod of the gang.
        self._queue.make_ready(
            gang.key
            for gang in self.cluster.held_by_min_resources()
            if not shortage(gang, room, self.cluster.resources)
        )

    def _note_refusals(self, gangs: list[GangEntry], now_s: float) -> None:
        """Remember the nodes whose kubelets refused a member."""
        until_s = now_s + self.policy.avoid_s
        for gang in gangs:
            for node in gang.refused_by:
                gang.avoid[node] = until_s
            gang.refused_by.clear()

    def _wake_at_s(self) -> float | None:
        due = [*self._queue.backing_off.values(), *self._queue.alarms.values()]
        of = (
            self._attempts.wake_at_s(),
            self.cluster.holds.wake_at_s(),
            self.cluster.devices.due_s(),
        )
        for soon_s in of:
            due += [] if soon_s is None else [soon_s]
        return min(due, default=None)
