"""Find places for pods of several classes together, or show that there are none, within a bound.

Depth first on an explicit stack, one pod after the other. From each state either a pod of a class
goes to a node (and nodes that are alike are one choice), or none of that class ever goes there.
A state says where pods are in the end: an order is looked for once all have a place
(``ordering``). A state that failed is not entered again. After a number of dead ends the search
begins anew with another heuristic. Called by ``place.gang`` when greedy orders failed; it may go on
over several turns.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, product
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.gangs.tasks import TaskMinima
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import GangKey, policy
from quorate.core.model.steps import Steps, costs
from quorate.core.place.search.ordering import Order, Pod
from quorate.core.place.search.state import Bounds, DeadEndError, State
from quorate.core.place.search.tables import Hashes, Tables, mixed
from quorate.core.place.tasks import towards_quorum
from quorate.core.room.room import Room

ClassCounts = tuple[tuple[PodClass, int], ...]
Part = tuple[int, bool]
"""Which room a search is about: how many holds are left out, and whether some nodes are."""
_HEURISTICS = tuple(product((False, True), repeat=2))
"""Whether the largest pods come first, not those with the least slack; and whether, of equally good
nodes, the emptiest come first, not the fullest. Where one errs early for long, another may not."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """How a search ended. ``order`` are pods as (class id, row), each allowed there in its turn.

    None: there is no placement, or the search was ``exhausted`` before that was certain.
    """

    order: tuple[tuple[int, int], ...] | None
    exhausted: bool = False


@dataclass(slots=True)
class _Frame:
    """A state on the way down."""

    pod: Pod | None
    """The pod that led to it; None: it is the first state."""
    hashes: Hashes
    signature: int
    """Equal for states that differ only by exchanging what is alike."""
    bans: list[tuple[Ints, int]] = field(default_factory=list)
    """Nodes and a class, of which no more pods can go there, as was shown; the last of them are
    about the pod that is tried next."""


def steps_to_begin(classes: int, nodes: int) -> int:
    """Return how many steps the tables of a search take at least.

    All classes are compared with one another, and with all nodes.
    """
    work_us = 1000 + classes * nodes // 4 + 3 * classes * classes // 2
    return work_us // costs.SEARCH_US_PER_STEP


class JointSearch:
    """One search, which a turn begins and later turns may go on with.

    It copies what it needs of the room when it begins: what it finds is about the room as it was
    then.
    """

    def __init__(
        self, counts: ClassCounts, need: int, task_minima: TaskMinima, room: Room, steps_max: int
    ) -> None:
        """Prepare to place ``need`` of the counted pods, in at most ``steps_max`` steps.

        ``task_minima`` are tasks of which so many have to be among them.
        """
        self.counts, self.need, self._task_minima = counts, need, task_minima
        self._steps_max = steps_max
        largest = np.maximum(room.free.max(axis=0, initial=1), 1)
        by_size = sorted(counts, key=lambda item: -max(a / largest[c] for c, a in item[0].demands))
        self._tables = Tables(by_size, room)
        self._work_us = steps_to_begin(len(counts), len(room.free)) * costs.SEARCH_US_PER_STEP
        self._charged = 0
        self._failed: set[int] = set()
        """Signatures of states that cannot be completed."""
        self._failures_left = 0
        self._is_complete = True
        """Whether no placement was passed over."""
        self._outcome: SearchOutcome | None = None
        self.orders_tried = 0
        """How many greedy orders ``place.greedy`` has tried since the search ended in vain."""
        self._pieces = self._search()

    def is_for(self, counts: ClassCounts, need: int) -> bool:
        """Whether this is the search for these pods."""
        return (dict(self.counts), self.need) == (dict(counts), need)

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return self._work_us // costs.SEARCH_US_PER_STEP

    def run(self, steps: Steps) -> SearchOutcome | None:
        """Search until it ends, or these steps are over: then None, and a later call goes on.

        Each call comes further, however few steps there are.
        """
        while self._outcome is None:
            try:
                self._work_us += next(self._pieces)
            except StopIteration as end:
                self._outcome = end.value
            if self._outcome is None and self.steps >= self._steps_max:
                self._outcome = SearchOutcome(None, exhausted=True)
            steps.take(self.steps - self._charged)
            self._charged = self.steps
            if steps.are_over:
                break
        return self._outcome

    def _search(self) -> Generator[int, None, SearchOutcome]:
        """Search. Yields what each piece of work takes, in microseconds: a few thousand at most."""
        classes, rows = self._tables.classes, self._tables.rows.tolist()
        small_first = np.argsort(
            [sum(a for _, a in pod_class.demands) for pod_class in classes], kind="stable"
        )
        most = self._tables.counts_max[small_first].tolist()
        number = 0
        for chosen in islice(selections(most, self.need), policy.SEARCH_CHOSEN_MAX**2):
            left = np.zeros(len(classes), np.int64)
            left[small_first] = chosen
            pods = zip(classes, left.tolist(), strict=True)
            if towards_quorum(pods, self.need, self._task_minima) < self.need:
                continue  # some task has too few of them
            if number == policy.SEARCH_CHOSEN_MAX:
                return SearchOutcome(None, exhausted=True)
            number += 1
            order = yield from self._place(State(self._tables, left))
            if order is not None:
                return SearchOutcome(tuple((classes[i].id, rows[node]) for node, i in order))
        return SearchOutcome(None, exhausted=not self._is_complete)

    def _place(self, state: State) -> Generator[int, None, list[Pod] | None]:
        """Place the pods that the state has left; return their order, or None if there is none."""
        self._failed.clear()
        for turn, heuristic in enumerate(cycle(_HEURISTICS)):
            self._failures_left = policy.RESTART_FAILURES_MAX << turn // len(_HEURISTICS)
            order = yield from self._descend(state, *heuristic)
            if order is not None or self._failures_left > 0:
                return order
        raise AssertionError("heuristics are tried in turn for ever")

    def _descend(
        self, state: State, largest_first: bool, worst_fit: bool
    ) -> Generator[int, None, list[Pod] | None]:
        """Go down from the first pod, and back up from dead ends, until no failure is left."""
        path = [self._frame(state, None)]
        while path:
            yield 200 + state.members.size // 10
            try:
                if path[-1].signature in self._failed:
                    raise DeadEndError
                bounds = state.bounds()
            except DeadEndError:
                self._failures_left -= 1
                self._leave(state, path)
                continue
            if state.left.any():
                pod = self._choose(state, path[-1], bounds, largest_first, worst_fit)
                state.count(*pod, 1)
                path.append(self._frame(state, pod))
                continue
            order = Order(state, [frame.pod for frame in path if frame.pod])
            pods = yield from order.find()
            if pods is not None:
                return pods
            self._is_complete &= order.is_complete
            self._failures_left -= 1
            self._leave(state, path)
        return None

    @staticmethod
    def _frame(state: State, pod: Pod | None) -> _Frame:
        hashes = state.hashes()
        return _Frame(pod, hashes, int(mixed(hashes).sum()))

    def _choose(
        self, state: State, frame: _Frame, bounds: Bounds, largest_first: bool, worst_fit: bool
    ) -> Pod:
        """Return a pod of one class, on the node where it leaves most to the others.

        One class is enough: in each placement its pods are somewhere.
        """
        left = np.flatnonzero(state.left)
        slack = (bounds.totals - state.left)[left]
        index = int(left[0 if largest_first else np.argmin(slack)])
        node = state.best_node(index, bounds, worst_fit=worst_fit)
        is_alike = (frame.hashes == frame.hashes[node]) & (bounds.slots[:, index] > 0)
        frame.bans.append((np.flatnonzero(is_alike), index))
        return node, index

    def _leave(self, state: State, path: list[_Frame]) -> None:
        """Go back up from a dead end; all the way if no failure is left.

        What was tried last is banned above it: no pod of the class may go there any more.
        """
        while path:
            frame = path.pop()
            for nodes, index in frame.bans:
                state.ban(nodes, index, is_banned=False)
            if frame.pod is not None:
                state.count(*frame.pod, -1)
            if self._failures_left > 0:
                self._failed.add(frame.signature)
                break
        if path:
            nodes, index = path[-1].bans[-1]
            state.ban(nodes, index, is_banned=True)


def selections(counts: Sequence[int], need: int) -> Iterator[list[int]]:
    """Yield how many of each to choose, ``need`` in all: those with many of the first come first.

    All selections there are, each in time that is linear in ``counts``.
    """
    if need > sum(counts):
        return
    chosen = _filled(counts, need)
    while True:
        yield chosen.copy()
        free = moved = 0
        for index in reversed(range(len(counts))):
            if chosen[index] and free:  # one of these less, and one more of those behind
                break
            free += counts[index] - chosen[index]
            moved += chosen[index]
        else:
            return
        chosen[index] -= 1
        chosen[index + 1 :] = _filled(counts[index + 1 :], moved + 1)


def _filled(counts: Sequence[int], need: int) -> list[int]:
    chosen = []
    for count in counts:
        chosen.append(min(count, need))
        need -= chosen[-1]
    return chosen


class _Open(NamedTuple):
    search: JointSearch
    news: int
    """``OpenSearches.news`` when it began."""


class OpenSearches:
    """The joint searches that have not ended: few, for each keeps what it needs of all nodes.

    A search is about the room as it was when it began. So if one ends in vain, and room has become
    free since, another one has to begin.
    """

    def __init__(self) -> None:
        self._of = LruCache[GangKey, dict[Part, _Open]]()
        self.news = 0
        """How often pods may have come to fit where they did not."""

    def __len__(self) -> int:
        """Return how many gangs have some."""
        return len(self._of)

    def __contains__(self, key: GangKey) -> bool:
        """Whether a gang has some."""
        return key in self._of

    def note_news(self) -> None:
        """Note that pods may fit where they did not."""
        self.news += 1

    def of(self, key: GangKey, part: Part) -> JointSearch | None:
        """Return what was begun for a gang, if it was."""
        begun = (self._of.peek(key) or {}).get(part)
        return begun.search if begun is not None else None

    def are_outdated(self, key: GangKey) -> bool:
        """Whether pods may have come to fit since searches for a gang began."""
        return any(begun.news != self.news for begun in (self._of.peek(key) or {}).values())

    def keep(self, key: GangKey, part: Part, search: JointSearch) -> None:
        """Keep a search for later turns; of too many gangs one has to begin anew."""
        parts = self._of.peek(key) or {}
        before = parts.get(part)
        if before is None or before.search is not search:
            parts[part] = _Open(search, self.news)
        self._of.put(key, parts, policy.SEARCHES_OPEN_MAX)

    def end(self, key: GangKey) -> None:
        """Forget the searches for a gang."""
        self._of.drop(key)
