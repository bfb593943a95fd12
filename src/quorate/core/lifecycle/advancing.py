"""The step before each plan: takes in news, and acts on times that have come.

In: the cluster with its news, the time. Out: ``DueWork``: what has to be sent as a result. Called
by ``scheduler.decide``. Attempts time out, claims become bound, reservations end and back-offs
expire here. It updates gangs and the queue; it places no pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, Where
from quorate.core.lifecycle.attempts import Attempts
from quorate.core.lifecycle.effects import Failed, GangOutcome
from quorate.core.lifecycle.nominating import Nominating
from quorate.core.lifecycle.preparing import Preparations
from quorate.core.model import GangKey
from quorate.core.model import policy as bounds
from quorate.core.model.plan import Eviction, GangBinds, Plan, Preemption, Undo
from quorate.core.model.policy import Policy
from quorate.core.queue.queue import Queue
from quorate.core.room.reserved_room import end_taken, end_unusable
from quorate.core.room.room import Room
from quorate.core.rules.masks import mask_of


@dataclass(slots=True)
class DueWork:
    """What has to be sent, independently of what is planned."""

    gangs: list[GangBinds] = field(default_factory=list)
    """Plans whose claims are bound."""
    undo: list[Undo] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    preemptions: list[Preemption] = field(default_factory=list)
    """Promises that are taken back."""
    touched: set[GangKey] = field(default_factory=set)
    grown: set[int] = field(default_factory=set)
    """Rows that may take more, or other, pods than before."""
    nodes_differ: bool = False
    failed: list[Failed] = field(default_factory=list)
    """Gangs with which a defect of ours was met."""

    def plan(self, outcomes: Sequence[GangOutcome]) -> Plan:
        """Return one plan with this and with the outcomes of the gangs that were tried."""
        placed = [one for one in outcomes if one.binds is not None]
        return Plan(
            gangs=(*self.gangs, *(o.binds for o in placed if o.binds and not o.prepares)),
            preparing=tuple(o.binds for o in placed if o.binds and o.prepares),
            undo=(*self.undo, *(one.undo for one in outcomes if one.undo is not None)),
            evictions=tuple(self.evictions),
            take_backs=tuple(back for one in outcomes for back in one.take_backs),
            preemptions=(
                *self.preemptions,
                *(one.preemption for one in outcomes if one.preemption is not None),
            ),
            touched=tuple(sorted(self.touched)),
        )

    def sent(self) -> None:
        """Forget what was to be sent."""
        self.gangs, self.undo, self.evictions, self.preemptions = [], [], [], []


def take_reservation_changes(cluster: Cluster, queue: Queue) -> set[GangKey]:
    """Return and forget the gangs whose reservations changed; waiting gangs get a new message."""
    changed = cluster.reservations.take_changed()
    if changed:
        queue.rounds.begin()
    return changed


class Advance:
    """The step that comes before each plan."""

    def __init__(self, attempts: Attempts, preparations: Preparations) -> None:
        self._attempts = attempts
        self._preparations = preparations
        self._nominating = Nominating()
        self._gangs_left: set[GangKey] = set()
        self._singles_left: set[GangKey] = set()
        """Pods without a gang whose news is taken in by later turns, after that of gangs."""
        self._late: set[GangKey] = set()
        """Gangs with news that are set aside: the news waits until that is over."""
        self._held_on_version = -1
        """Version of the nodes' attributes at the last check that reservations are usable."""

    @property
    def is_behind(self) -> bool:
        """Whether another step has to take in news before anything is planned."""
        return bool(self._gangs_left or self._singles_left)

    def is_left(self, key: GangKey) -> bool:
        """Whether another step has to take in the gang's news."""
        return key in self._gangs_left or key in self._singles_left

    def step(
        self,
        cluster: Cluster,
        queue: Queue,
        ask_room: Callable[[], Room],
        policy: Policy,
        now_s: float,
        due: DueWork,
    ) -> None:
        """Take in the news since the last decision, and act on times that have come.

        ``ask_room`` returns the current room. What has to be sent as a result is added to ``due``,
        and so are the gangs that meet a defect; the others go on. Each call takes in a bounded part
        of the news: call it again while ``is_behind``.
        """
        self._attempts.note_previous_leader(cluster.previous_journal, now_s)
        for key in self._preparations.open_keys():
            if _is_aside(key, cluster, now_s):
                continue
            with _guarded(key, due):
                gangs, undo = self._preparations.step(key, cluster, now_s)
                due.gangs += gangs
                due.undo += undo
        news, grown, nodes_differ = cluster.take_news()
        due.touched |= news
        touched = self._some_of(news)
        touched |= self._late
        self._late = {key for key in touched if _is_aside(key, cluster, now_s)}
        touched -= self._late
        self._take_news(cluster, policy, touched, now_s, due)
        grown |= self._end_reservations(cluster, ask_room, touched, now_s)
        touched |= take_reservation_changes(cluster, queue)
        again = self._nominating.step(cluster, ask_room, grown, due.preemptions)
        due.touched |= touched
        due.grown |= grown
        due.nodes_differ |= nodes_differ
        queue.make_ready((touched | again) - self._late)
        for key in self._late:
            queue.back_off(key, cluster.gangs[key].memory.aside.until_s)
        queue.time_passed(now_s)

    def next_s(self, cluster: Cluster, queue: Queue, now_s: float) -> float | None:
        """Return the next time (epoch seconds) at which something is due without news, or None."""
        due_s = (
            queue.next_s(),
            self._attempts.wake_at_s(cluster.gangs),
            cluster.reservations.wake_at_s(),
            now_s + bounds.EXPLAINED_AGAIN_S if queue.rounds.is_under_way else None,
        )
        return min((one for one in due_s if one is not None), default=None)

    def _some_of(self, news: set[GangKey]) -> set[GangKey]:
        """Return the gangs whose news is taken in now, and keep the others for the next step."""
        gangs, singles, most = self._gangs_left, self._singles_left, bounds.TOUCHED_PER_TURN_MAX
        if not self.is_behind and len(news) <= most:
            return news
        for key in news:
            (singles if key.is_single else gangs).add(key)
        some = set(sorted(gangs)[:most])
        some.update(islice(singles, most - len(some)))
        gangs -= some
        singles -= some
        return some

    def _take_news(
        self,
        cluster: Cluster,
        policy: Policy,
        touched: set[GangKey],
        now_s: float,
        due: DueWork,
    ) -> None:
        """Update the life-cycle of touched gangs, and end the attempts that have timed out."""
        cluster.reservations.forget_not_reserved(now_s)
        for key in sorted(touched):
            gang = cluster.gangs.get(key)
            with _guarded(key, due):
                if gang is not None:
                    cluster.end_past_life(gang)
                    hold_next_runs(gang, cluster)
                cluster.reservations.settle(key, gang, now_s, policy)
                if gang is not None:
                    _note_refusals(gang, now_s, policy.avoid_s)
                    self._attempts.resume(gang, cluster.previous_journal, now_s)
        ended: list[GangEntry] = []
        for key in self._attempts.due(cluster.gangs, now_s):
            if _is_aside(key, cluster, now_s):
                continue
            with _guarded(key, due):
                evictions = self._attempts.to_evict(cluster.gangs[key])
                self._attempts.end(cluster.gangs[key], evictions)
                due.evictions += evictions
                ended.append(cluster.gangs[key])
                cluster.precedence.note_settled(cluster.gangs[key])
        changed = [cluster.gangs[key] for key in sorted(touched) if key in cluster.gangs]
        self._attempts.note_failures([*changed, *ended], now_s)
        touched.update(gang.key for gang in ended)

    def _end_reservations(
        self,
        cluster: Cluster,
        ask_room: Callable[[], Room],
        touched: set[GangKey],
        now_s: float,
    ) -> set[int]:
        """End reservations that have expired, are used or unusable; return their nodes' rows."""
        reservations = cluster.reservations
        if reservations:
            reservations.end_due(now_s)
            end_taken(reservations, ask_room())
            if reservations.changed or self._held_on_version != cluster.nodes.attributes_version:
                self._held_on_version = cluster.nodes.attributes_version
                end_unusable(reservations, ask_room(), mask_of)
        touched |= reservations.changed
        rows = cluster.nodes.rows
        return {rows[node] for node in reservations.take_ended_on() if node in rows}


def _is_aside(key: GangKey, cluster: Cluster, now_s: float) -> bool:
    """Whether the gang is set aside because it met a defect of ours."""
    gang = cluster.gangs.get(key)
    return gang is not None and gang.memory.aside.is_active(now_s)


@contextmanager
def _guarded(key: GangKey, due: DueWork) -> Iterator[None]:
    """Record a defect that one gang meets, so that the other gangs go on."""
    try:
        yield
    except Exception as error:
        due.failed.append(Failed(key, error))


def _note_refusals(gang: GangEntry, now_s: float, avoid_s: float) -> None:
    """Have a gang avoid, for ``avoid_s`` seconds, the nodes whose kubelets refused a member."""
    memory = gang.memory
    if memory.avoid:
        memory.avoid = {node: end_s for node, end_s in memory.avoid.items() if end_s > now_s}
    for node in memory.refused_by:
        memory.avoid[node] = now_s + avoid_s
    memory.refused_by.clear()


def hold_next_runs(gang: GangEntry, cluster: Cluster) -> None:
    """Move the members that have to wait for another run, and let those go that have not to."""
    if not (gang.runs.jobs or gang.counts[Where.NEXT_RUN]):
        return
    cron_job_of = partial(cluster.owners.cron_job_of, gang.key.namespace)
    held = gang.runs.to_hold(cron_job_of, gang.stated_min)
    if gang.runs.holds(held):
        return
    for entry in list(gang.members.values()):
        is_held = entry.pod.run in held
        if entry.where is Where.WAITING and is_held:
            cluster.move(entry, Where.NEXT_RUN, "")
        elif entry.where is Where.NEXT_RUN and not is_held:
            cluster.move(entry, Where.WAITING, "")
