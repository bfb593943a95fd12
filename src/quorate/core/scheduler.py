"""The only door of the core: ``observe`` changes, then ``decide``.

In: changes, the time, a prefix for attempt ids. Out: a ``Plan``, and explanations when asked for.
Called by ``shell.app`` (and by the command line and the simulation in its place). Nothing here
waits, calls out, or reads a clock: the same calls give the same plans.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quorate.core.changes import BindFailed, BindFailure, Change
from quorate.core.explain import ApiWords, Explainer
from quorate.core.journal import Journal
from quorate.core.model import GangKey
from quorate.core.plan.attempts import Attempts
from quorate.core.plan.cycle import Cycle
from quorate.core.plan.filters import AttributeMasks, node_resources_fit
from quorate.core.plan.held_room import end_taken, end_unusable
from quorate.core.plan.min_resources import shortage
from quorate.core.plan.plan import Eviction, GangBinds, Plan
from quorate.core.plan.room import Room
from quorate.core.plan.verify import verify_gang
from quorate.core.policy import Policy
from quorate.core.queue.gate import held_by
from quorate.core.queue.queue import Queue
from quorate.core.reasons import Reason
from quorate.core.state.cluster import Cluster
from quorate.core.state.gangs import GangEntry


class Scheduler:
    """Gang scheduling over arrays. ``identity`` makes attempt ids unique over restarts."""

    def __init__(
        self, policy: Policy, apis: dict[str, ApiWords] | None = None, identity: str = "q"
    ) -> None:
        self.policy = policy
        self.cluster = Cluster(policy.scheduler_names)
        self._queue = Queue()
        self._masks = AttributeMasks()
        self._attempts = Attempts(policy, identity)
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
        touched, evictions = self._take_news(now_s)
        gangs: list[GangBinds] = []
        binds_left = self.policy.binds_per_plan_max
        cycle: Cycle | None = None
        for gang in queue.take_ready(cluster.gangs):
            touched.add(gang.key)
            reason = held_by(gang, cluster, now_s)
            if reason is Reason.BACKING_OFF:
                queue.back_off(gang.key, gang.not_before_s)
            if reason is not Reason.NONE or not gang.waits:
                continue
            if binds_left <= 0:
                queue.ready.add(gang.key)
                continue
            cycle = cycle or Cycle(cluster, self.policy, self._masks, self._room())
            gang.avoid = {node: end_s for node, end_s in gang.avoid.items() if end_s > now_s}
            first = max(0, gang.need - 1)
            binds = cycle.place(gang)
            if binds:
                gangs.append(self._attempts.begin(gang, binds, first, now_s))
                binds_left -= len(binds)
            if gang.waits:
                queue.block(gang.key, gang.waiting)
                if gang.avoid:
                    queue.alarms[gang.key] = min(gang.avoid.values())
        touched |= cluster.take_news()[0] | cluster.holds.take_changed()
        return Plan(
            gangs=tuple(gangs),
            evictions=tuple(evictions),
            touched=tuple(sorted(touched)),
            wake_at_s=now_s if queue.ready or cluster.holds.ended_on else self._wake_at_s(),
        )

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
        queue.make_ready(touched)
        queue.time_passed(now_s)
        if grown:
            self._wake(sorted(grown))
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
        good = []
        for gang in plan.gangs:
            wrong = verify_gang(gang, self.cluster)
            if not wrong:
                good.append(gang)
                continue
            problems += wrong
            failure = BindFailure.UNVERIFIED
            self.observe(BindFailed(b.uid, b.node, failure, wrong[0]) for b in gang.binds)
        if not problems:
            return plan, problems
        return Plan(
            gangs=tuple(good),
            evictions=plan.evictions,
            touched=plan.touched,
            wake_at_s=plan.wake_at_s,
        ), problems

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

    def _wake(self, rows: list[int]) -> None:
        """Wake the blocked gangs of which one more pod fits on one of the rows."""
        if not self._queue.blocked:
            return
        room = self._room()
        free = room.free[rows]

        def could_help(class_id: int) -> bool:
            pod_class = self.cluster.classes.by_id[class_id]
            slots = node_resources_fit.slots(pod_class, free)
            return bool(np.any((slots > 0) & room.mask(pod_class)[rows]))

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
        for soon_s in (self._attempts.wake_at_s(), self.cluster.holds.wake_at_s()):
            due += [] if soon_s is None else [soon_s]
        return min(due, default=None)
