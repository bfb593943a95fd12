"""One turn of planning: tries the gangs that may start, in order, until its steps run out.

In: the cluster, the news since the last turn, the time. Out: a ``Decision``. Called by
``scheduler``. It only reads the cluster, and writes to the queue, which records what each gang
waits for. A long joint search continues turn by turn: half of the steps are for gangs with such
searches, in the order in which these began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.lifecycle.advancing import DueWork
from quorate.core.lifecycle.attempt_numbers import AttemptNumbers
from quorate.core.lifecycle.attempts import Attempts
from quorate.core.lifecycle.device_claim_writes import take_backs
from quorate.core.lifecycle.effects import Decision, Failed, GangOutcome, NextPlace, Postponed
from quorate.core.lifecycle.preparing import Preparations
from quorate.core.model import GangKey
from quorate.core.model import policy as bounds
from quorate.core.model.policy import Policy
from quorate.core.model.reasons import Reason
from quorate.core.model.steps import GoesOnError, OutOfStepsError, Steps
from quorate.core.place.one_pod.single import Singles
from quorate.core.place.search.joint import OpenSearches
from quorate.core.preempt.victim_searches import VictimSearches
from quorate.core.queue.gate import held_by, said_by_owner
from quorate.core.queue.line import Line
from quorate.core.queue.queue import Queue
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.turn.cycle import Cycle
from quorate.core.turn.waking import Waking

_TOO_LONG = "to look at its claims takes longer than a turn may last"


@dataclass(slots=True)
class _Turn:
    """The state of one turn: its outcomes so far, and what it may still do."""

    line: Line
    new_cycle: Callable[[], Cycle]
    steps: Steps
    binds_left: int
    singles_left: int
    preemptions_left: int
    outcomes: list[GangOutcome] = field(default_factory=list)
    failed: Failed | None = None
    begun: Cycle | None = None
    """The cycle; None until the turn first needs nodes."""

    @property
    def cycle(self) -> Cycle:
        """The turn's cycle, made at its first use."""
        if self.begun is None:
            self.begun = self.new_cycle()
        return self.begun

    @property
    def is_full(self) -> bool:
        """Whether the turn has to end: the plan is full, or planning has met a defect."""
        return self.failed is not None or self.binds_left <= 0 or self.singles_left <= 0


class Planner:
    """Plans turn by turn. What it keeps between turns is derived from the changes it was given."""

    def __init__(
        self, cluster: Cluster, policy: Policy, attempts: Attempts, preparations: Preparations
    ) -> None:
        self.queue = Queue()
        self.steps_taken = 0
        """The steps that the newest turn has taken."""
        self._cluster = cluster
        self._policy = policy
        self._attempts = attempts
        self._preparations = preparations
        self._waking = Waking(cluster, self.queue, policy.packing)
        self._rule_cache = RuleCache()
        self._singles = Singles()
        self._searches = OpenSearches()
        self._victim_searches = VictimSearches()
        self._interrupted: Counter[GangKey] = Counter()
        """Gangs whose claims took more than a turn's steps, and how many times in a row."""

    def room(self) -> Room:
        """Return the current room."""
        return Room(self._cluster.snapshot(), self._rule_cache)

    def forget_caches(self) -> None:
        """Forget cached answers, and searches under way, which start again."""
        self._rule_cache, self._singles = RuleCache(), Singles()
        self._searches, self._victim_searches = OpenSearches(), VictimSearches()

    def plan(self, due: DueWork, now_s: float) -> Decision:
        """Return the decision of one turn on the gangs that are ready or woken by news."""
        searches, queue = self._searches, self.queue
        self._rule_cache.give_back(self._cluster.classes)
        steps = Steps(bounds.TURN_STEPS_MAX // (2 if queue.searching else 1))
        line = self._waking.begin(
            due.grown, now_s, nodes_differ=due.nodes_differ, ask_room=self.room, steps=steps
        )
        if self._waking.has_news:
            searches.note_news()
        policy = self._policy
        turn = _Turn(
            line,
            partial(self._cycle, now_s, steps),
            steps,
            policy.binds_per_plan_max,
            policy.singles_per_plan_max,
            policy.preemptions_per_plan_max,
        )
        for gang in line.gangs():
            if not self._is_tried(gang, turn, now_s) or turn.is_full:
                break
        self._go_on_searching(turn, now_s)
        is_more = self._waking.end(line) or bool(queue.searching)
        self.steps_taken = steps.taken
        preemptions = turn.begun.preemptions if turn.begun is not None else None
        return Decision(
            plan=due.plan(turn.outcomes),
            now_s=now_s,
            outcomes=tuple(turn.outcomes),
            failed=turn.failed,
            displaced=frozenset(preemptions.displaced if preemptions else ()),
            next_start=(preemptions or self._cluster.precedence).next_start,
            is_more=is_more,
        )

    def _cycle(self, now_s: float, steps: Steps) -> Cycle:
        attempts = self._attempts
        numbers = AttemptNumbers(self._policy, attempts.identity, attempts.made)
        return Cycle(
            self._cluster,
            self._policy,
            self._rule_cache,
            Room(self._cluster.snapshot(), self._rule_cache, steps),
            self._singles,
            now_s,
            numbers,
            steps,
            self._searches,
            self._victim_searches,
        )

    def _go_on_searching(self, turn: _Turn, now_s: float) -> None:
        """Continue the searches that earlier turns began, with the steps that are left.

        What was placed is not kept waiting: then they get half as many as the others took.
        """
        queue, steps, longest = self.queue, turn.steps, bounds.LONG_TURN_STEPS_MAX
        is_short = any(one.binds is not None for one in turn.outcomes)
        steps.left = steps.taken // 2 if is_short else bounds.TURN_STEPS_MAX - steps.taken
        steps.left = max(1, steps.left)
        for key in list(queue.searching):
            interruptions = self._interrupted[key]
            long_turn = 0 if is_short else self._long_turn(key)
            steps.left = max(steps.left, long_turn)
            if steps.are_over or turn.is_full:
                return
            gang = self._cluster.gangs.get(key)
            if gang is None:
                queue.forget(key)
                self._interrupted.pop(key, None)
            elif not self._is_tried(gang, turn, now_s, searches=True):
                if is_short:
                    self._interrupted[key] = interruptions
                elif self._interrupted[key] > interruptions and long_turn == longest:
                    turn.outcomes.append(self._give_up(key, now_s))
                return

    def _give_up(self, key: GangKey, now_s: float) -> GangOutcome:
        """Set aside a gang that needs more steps than the longest turn has."""
        until_s = now_s + bounds.ASIDE_S_MAX
        self.queue.forget(key)
        self.queue.back_off(key, until_s)
        del self._interrupted[key]
        return GangOutcome(key, postponed=Postponed(until_s, _TOO_LONG))

    def _long_turn(self, key: GangKey) -> int:
        """Return the steps for a gang that was interrupted often; 0: as many as others."""
        doublings = self._interrupted[key] // bounds.INTERRUPTIONS_FEW
        longest = bounds.LONG_TURN_STEPS_MAX
        if not doublings:
            return 0
        return min(bounds.TURN_STEPS_MAX << min(doublings, longest.bit_length()), longest)

    def _is_tried(
        self, gang: GangEntry, turn: _Turn, now_s: float, *, searches: bool = False
    ) -> bool:
        """Try a gang, and put it where it waits next; return whether the turn goes on.

        One that needs more than its part of a turn becomes one of those that are ``searching``.
        """
        steps = turn.steps
        of_others = 0 if searches else max(0, steps.left - bounds.TRY_STEPS_MAX)
        steps.left -= of_others
        try:
            one = self._held(gang, now_s) or self._try(gang, turn, searches=searches)
            self._enqueue(gang, one, turn, now_s)
        except OutOfStepsError as error:
            if not (of_others or isinstance(error, GoesOnError)):
                self._interrupted[gang.key] += 1
            self.queue.search(gang.key)
            return of_others > 0  # the cycle has placed nothing of this gang
        except Exception as error:
            turn.failed = Failed(gang.key, error)
            return False  # the cycle may have placed part of it, so others wait for the next turn
        finally:
            steps.left += of_others
        self._interrupted.pop(gang.key, None)
        turn.outcomes.append(one)
        binds = len(one.binds.binds) if one.binds is not None else 0
        turn.binds_left -= binds
        turn.singles_left -= binds if gang.key.is_single else 0
        turn.preemptions_left -= one.preemption is not None
        return one.next_place is not NextPlace.READY

    def _held(self, gang: GangEntry, now_s: float) -> GangOutcome | None:
        """Return the outcome of a gang that a gate holds back, or that has nothing to place."""
        reason = held_by(gang, self._cluster, now_s)
        if reason is Reason.NONE and gang.waits:
            return None
        memory = gang.memory
        if reason is Reason.BACKING_OFF or memory.aside.is_active(now_s):
            self.queue.back_off(gang.key, max(memory.not_before_s, memory.aside.until_s))
            return GangOutcome(gang.key)
        self._waking.note_nothing_to_place(gang)
        if (facts := said_by_owner(gang, self._cluster)) is not None:
            pause_s = bounds.OWNER_ASKED_AGAIN_S if facts.holds else bounds.OWNER_READ_AGAIN_S
            self.queue.back_off(gang.key, now_s + pause_s)
        return GangOutcome(gang.key, take_backs=tuple(take_backs(gang, self._cluster)))

    def _try(self, gang: GangEntry, turn: _Turn, *, searches: bool) -> GangOutcome:
        cycle = turn.cycle
        if self._preparations.holds(gang):
            self._waking.block_until_own_change(gang)
            return GangOutcome(gang.key, passed_gates=True)
        if not self._waking.is_worth_a_try(turn.line, gang):
            return cycle.skip(gang)
        return cycle.try_gang(gang, preempts_more=turn.preemptions_left > 0, searches=searches)

    def _enqueue(self, gang: GangEntry, one: GangOutcome, turn: _Turn, now_s: float) -> None:
        """Count what was placed, and put the gang where it waits for the rest."""
        queue, rows = self.queue, self._cluster.nodes.rows
        if one.next_place is not NextPlace.SEARCHED or gang.key not in self._searches:
            queue.searching.pop(gang.key, None)  # if its search starts again, others come first
        if one.binds is not None:
            turn.line.note_placed(
                (rows[bind.node] for bind in one.binds.binds), turn.cycle.room.free
            )
        if one.next_place is NextPlace.READY:
            queue.make_ready([gang.key])
        elif one.next_place is NextPlace.SEARCHED:
            queue.search(gang.key)
        elif one.next_place is NextPlace.BLOCKED:
            self._waking.failed(turn.line, gang, one, turn.cycle.room)
            ends = [end_s for end_s in gang.memory.avoid.values() if end_s > now_s]
            if ends:
                queue.alarms.set(gang.key, min(ends))
