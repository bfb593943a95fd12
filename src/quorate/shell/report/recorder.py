"""A ring of what entered the core: every bug report can be a file, and every file a test.

In: each call of the core's, told by ``shell.app`` before and after it. Out: frames of a recording
(``recording``), of which the oldest are dropped when there are too many. A ring loses its
beginning, so each segment begins with the scheduler's exact state (``checkpoint``).

What never enters the core is never recorded: environments, volumes, tokens, annotations but the
gang's own. Names, labels, selectors, requests and the API server's answers to binds are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import structlog

from quorate import __version__
from quorate.core.changes import AnyChange
from quorate.core.explain import ApiWords
from quorate.core.plan.plan import Plan
from quorate.core.scheduler import Scheduler
from quorate.shell.report import recording
from quorate.shell.report.checkpoint import CheckpointError, capture
from quorate.shell.report.recording import Begin, Checkpoint, Deciding, Observed, Record, Stopped

log = structlog.get_logger(__name__)

_SEGMENTS = 8
_LATE_SEGMENTS = 4
"""A segment ends with an eighth of the ring at a quiet moment, with a quarter at any."""


class _Segment:
    """Frames from one checkpoint to the next; ``news`` are its bytes without the checkpoint."""

    __slots__ = ("bytes", "frames", "news")

    def __init__(self, first: bytes = b"") -> None:
        self.frames: list[bytes] = [first] if first else []
        self.bytes = len(first)
        self.news = 0


class Recorder:
    """Records one scheduler, within ``bytes_max``; 0 records nothing."""

    def __init__(
        self, scheduler: Scheduler, apis: dict[str, ApiWords], identity: str, bytes_max: int
    ) -> None:
        self._scheduler = scheduler
        self._bytes_max = bytes_max
        self._segments: deque[_Segment] = deque([_Segment()])
        self._changes = 0
        self._decisions = 0
        self._deciding = False
        self._quiet = False
        self._is_on = bytes_max > 0
        self.checkpoints = 0
        self._begin = recording.frame(
            Begin(quorate=__version__, policy=scheduler.policy, apis=apis, identity=identity)
        )

    @property
    def is_on(self) -> bool:
        """Whether anything is recorded now."""
        return self._is_on

    @property
    def size_bytes(self) -> int:
        """How many bytes the ring holds."""
        return sum(segment.bytes for segment in self._segments)

    def frames(self) -> list[bytes]:
        """Return all that is held, for ``recording.write``; later records are not in it."""
        return [self._begin, *(one for segment in self._segments for one in segment.frames)]

    def observed(self, changes: Sequence[AnyChange]) -> None:
        """Record what ``observe`` is about to be given."""
        if changes:
            self._turn_over()
        if self._is_on and changes:
            self._changes += len(changes)
            self._put(Observed(list(changes)))

    def deciding(self, now_s: float) -> None:
        """Record that ``decide`` is about to be called."""
        self._turn_over()
        if self._is_on:
            self._deciding = True
            self._decisions += 1
            self._put(Deciding(now_s))

    def planned(self, plan: Plan) -> None:
        """Record what ``decide`` returned."""
        if self._is_on:
            self._quiet = not plan.gangs and not self._scheduler.cluster.waiting
            self._put(recording.planned(plan))

    def verified(self, plan: Plan, problems: Sequence[str]) -> None:
        """Record what ``verified`` returned."""
        if self._is_on:
            self._put(recording.verified(plan, problems))
            self._deciding = False

    def _put(self, record: Record) -> None:
        """Add a record. Recording may fail, scheduling may not: trouble ends the recording."""
        try:
            data = recording.frame(record)
        except (OverflowError, TypeError, ValueError) as error:
            self._stop(f"a {type(record).__name__} has no bytes: {error}")
            return
        segment = self._segments[-1]
        segment.frames.append(data)
        segment.bytes += len(data)
        segment.news += len(data)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._segments) > 1 and self.size_bytes > self._bytes_max:
            self._segments.popleft()

    def _turn_over(self) -> None:
        """Begin a new segment where it is time, between two calls of the core's."""
        if not self._is_on:
            return
        news = self._segments[-1].news
        due = news * (_SEGMENTS if self._quiet else _LATE_SEGMENTS) >= self._bytes_max
        if not due or self._deciding:
            return
        try:
            state = capture(self._scheduler)
            self._scheduler.forget_answers()  # so that whoever goes on from here goes on alike
            first = recording.frame(
                Checkpoint(state=state, changes=self._changes, decisions=self._decisions)
            )
        except (CheckpointError, OverflowError, TypeError, ValueError) as error:
            self._stop(f"the state cannot be written: {error}")
            return
        if 2 * len(first) > self._bytes_max:
            self._stop(
                f"the state of the cluster takes {len(first):,} bytes, which leaves too little of "
                f"the {self._bytes_max:,} of recorder.maxBytes"
            )
            return
        self.checkpoints += 1
        self._segments.append(_Segment(first))
        self._drop_oldest()

    def _stop(self, why: str) -> None:
        log.warning("recording ended", problem=why)
        self._is_on = False
        self._segments[-1].frames.append(recording.frame(Stopped(why)))
