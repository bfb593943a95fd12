"""The way to write, but for binds and the Lease. In: a request and its rule. Out: an ``Outcome``.

Used by ``shell.commit`` and ``shell.report``, which say what to write and what its outcome means.
Here is all that writes have in common: only the holder of the lease sends, which is asked before
each try and once more on the connection; more important writes have the next free slot; tries are
apart by a back-off with jitter, and by at least what the server asks for; evictions have a rate.
What each answer means is data: a ``Rule``.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from itertools import count
from typing import Final, NamedTuple

import msgspec

from quorate.shell.kube.client import KubeClient, Params, PatchKind
from quorate.shell.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    ServerError,
    TooManyRequests,
    Unreachable,
    is_gone,
)
from quorate.shell.process.clock import Clock
from quorate.shell.process.contained import Note

TRANSIENT: Final = (TooManyRequests, ServerError, Unreachable)
"""Failures that say nothing about the request: the same one may succeed later."""
_YOUNG_S: Final = 10.0
"""So long an API server that was away may not know its roles, and answer 403."""
WRITES_AT_ONCE: Final = 64
"""Beside binds, of which the configuration says how many."""
_JITTER: Final = 0.25

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

Send = Callable[[], Awaitable[bytes]]
"""One try of a write, by the methods of ``Writer``."""


class Priority(IntEnum):
    """Who has the next free slot: the lowest number. Binds have connections of their own."""

    EVICTION = 0
    PREEMPTION = 1
    CLAIM = 2
    REPORT = 3


class End(Enum):
    """How a write ended."""

    DONE = auto()
    GONE = auto()
    """The object does not exist any more, or its namespace is going and it with it."""
    CHANGED = auto()
    """409: it is different by now."""
    REFUSED = auto()
    """Another try would be answered in the same way."""
    GIVEN_UP = auto()
    """Its tries or its time are over."""
    DEPOSED = auto()
    """Another replica leads: a successor decides from what it finds."""


class _Verdict(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _Verdict


_REVIEW = msgspec.json.Decoder(_Review)


class Outcome(NamedTuple):
    """How a write ended; ``problem`` is the last thing that was wrong, or ""."""

    end: End
    tries: int
    body: bytes = b""
    error: ApiError | None = None

    @property
    def problem(self) -> str:
        """What the last error says, for people."""
        if self.error is not None:
            return self.error.message
        return "another replica leads" if self.end is End.DEPOSED else ""


@dataclass(frozen=True, slots=True)
class Rule:
    """What the answers mean for one kind of write."""

    priority: Priority
    tries_max: int | None = None
    retry_s_min: float = 0.05
    retry_s_max: float = 5.0
    again_after_conflict: bool = False
    again_after_refusal: bool = False
    """Also what no second try seems to help: a right may come, a disruption budget may open."""
    per_s: float | None = None
    """How many first tries begin in a second, after as many at once."""

    def end_of(self, error: ApiError, *, is_young: bool) -> End | None:
        """Return how this answer ends the write; None: the same write is tried again."""
        if is_gone(error) or error.is_namespace_going:
            return End.GONE
        if isinstance(error, Conflict):
            return None if self.again_after_conflict else End.CHANGED
        passes = isinstance(error, TRANSIENT) or (isinstance(error, Forbidden) and is_young)
        return None if passes or self.again_after_refusal else End.REFUSED


class Backoff:
    """The waits between tries of one write: twice as long each time, up to a limit, in seconds."""

    def __init__(
        self, min_s: float = 0.05, max_s: float = 5.0, chance: Callable[[], float] | None = None
    ) -> None:
        self._next_s = min_s
        self._max_s = max_s
        self._chance = chance

    async def wait(self, error: ApiError | None) -> None:
        """Wait before the next try, and at least as long as the server asked for."""
        asked_s = (error and error.retry_after_s) or 0.0
        longer = 1.0 + _JITTER * self._chance() if self._chance is not None else 1.0
        await asyncio.sleep(max(self._next_s, asked_s) * longer)
        self._next_s = min(2 * self._next_s, self._max_s)


class Background:
    """Tasks that nobody waits for. One that fails is noted; ``close`` gives all of them up."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Begin; returns at once."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def settled(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Cancel what is under way, and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._note("commit", "a write", error)


class _Slots:
    """So many at a time; who waits with the lowest priority number, and longest, is next."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._order = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def take(self, priority: Priority) -> AsyncIterator[None]:
        if self._free:
            self._free -= 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (priority, next(self._order), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._give_back()
                raise
        try:
            yield
        finally:
            self._give_back()

    def _give_back(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Writer:
    """Sends for those who hold the lease. ``chance`` draws numbers in [0, 1) for the jitter."""

    def __init__(
        self,
        client: KubeClient,
        *,
        may_write: Callable[[], bool],
        clock: Clock,
        note: Note,
        chance: Callable[[], float] | None = None,
        slots: int = WRITES_AT_ONCE,
    ) -> None:
        """Prepare to write; ``note`` takes note of defects for those who write."""
        self._client = client
        self.note = note
        self.may_write = may_write
        self._clock = clock
        self._chance = chance
        self._slots = _Slots(slots)
        self._next_at_s: dict[Rule, float] = {}
        self._away_at_s = float("-inf")
        """When the API server last gave no answer."""

    async def get(self, path: str) -> bytes:
        """Read an object. Raises ApiError."""
        return await self._client.get(path)

    async def post(self, path: str, body: object) -> bytes:
        """Create, if we still lead when a connection is free. Raises ApiError."""
        return await self._client.post(path, body, may_send=self.may_write)

    async def patch(
        self, path: str, body: object, kind: PatchKind, params: Params | None = None
    ) -> bytes:
        """Change a part, if we still lead when a connection is free. Raises ApiError."""
        return await self._client.patch(path, body, kind, params, may_send=self.may_write)

    async def delete(self, path: str, body: object = None, params: Params | None = None) -> bytes:
        """Delete, if we still lead when a connection is free. Raises ApiError."""
        return await self._client.delete(path, body, params, may_send=self.may_write)

    async def write(
        self,
        send: Send,
        rule: Rule,
        *,
        deadline_s: float = float("inf"),
        on_failed: Callable[[ApiError], Awaitable[End | None]] | None = None,
    ) -> Outcome:
        """Send until it is done or hopeless, or until ``deadline_s`` (of the clock's ``now_s``).

        ``on_failed`` is told of each try after which there would be another one; it may find out
        that there is no need. What ``send`` raises beside ApiError is raised.
        """
        backoff = Backoff(rule.retry_s_min, rule.retry_s_max, self._chance)
        await self._in_pace(rule)
        error: ApiError | None = None
        tries = 0
        while self.may_write():
            try:
                async with self._slots.take(rule.priority):
                    if not self.may_write():
                        break
                    tries += 1
                    return Outcome(End.DONE, tries, await send())
            except ApiError as failed:
                error = failed
            end = rule.end_of(error, is_young=self.is_young(error))
            if end is None and on_failed is not None:
                end = await on_failed(error)
            if end is not None:
                return Outcome(end, tries, error=error)
            if tries == rule.tries_max or self._clock.now_s() >= deadline_s:
                return Outcome(End.GIVEN_UP, tries, error=error)
            await backoff.wait(error)
        return Outcome(End.DEPOSED, tries, error=error)

    async def lacks_right(self, **right: str) -> bool:
        """Ask, after a 403, whether RBAC said it: admission may have. False where we may not ask.

        ``right`` is as ``resourceAttributes`` have it: verb, group, resource, namespace.
        """
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": right},
        }
        try:
            return not _REVIEW.decode(await self.post(_REVIEWS, review)).status.allowed
        except (ApiError, msgspec.DecodeError):
            return False

    def is_young(self, error: ApiError) -> bool:
        """Take note of an answer; tell whether the API server was away a short time ago."""
        now_s = self._clock.monotonic_s()
        if isinstance(error, Unreachable):
            self._away_at_s = now_s
        return now_s < self._away_at_s + _YOUNG_S

    async def _in_pace(self, rule: Rule) -> None:
        """Wait until one more of these may begin."""
        if rule.per_s is None:
            return
        now_s = self._clock.monotonic_s()
        at_s = max(self._next_at_s.get(rule, 0.0), now_s - 1.0) + 1.0 / rule.per_s
        self._next_at_s[rule] = at_s
        if at_s > now_s:
            await asyncio.sleep(at_s - now_s)
