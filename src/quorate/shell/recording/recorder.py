"""A ring buffer of the core's inputs and outputs: a bug report is a file, and a file is a test.

In: each call of the core, reported by ``shell.app`` before and after it. Out: frames of a recording
(``file_format``); above the bound the oldest are dropped. Since a ring loses its beginning, each
segment starts with the scheduler's exact state (``checkpoint``), which is captured in slices while
the core waits (``checkpoint_slices``).

A failure to record must not stop scheduling: it ends this recording, with one line in the log and a
metric. The next recording begins ``_ANEW_S`` later; after each failure the delay grows.

Data that never enters the core is never recorded: environments, volumes, tokens, annotations except
the gang's own. Names, labels, selectors, requests and the API server's answers to binds are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import structlog

from quorate import __version__
from quorate.core.model.changes import AnyChange
from quorate.core.model.plan import Plan
from quorate.core.scheduler import Scheduler
from quorate.core.words.object_words import ApiWords
from quorate.core.words.plain_text import plain
from quorate.shell.recording import file_format as recording
from quorate.shell.recording.checkpoint import Capture
from quorate.shell.recording.file_format import (
    Begin,
    Checkpoint,
    Deciding,
    Observed,
    Record,
    Stopped,
)

log = structlog.get_logger(__name__)

_SEGMENTS = 8
_LATE_SEGMENTS = 4
"""A segment ends at an eighth of the ring in a quiet moment, at a quarter in any moment."""
_ANEW_S = 600.0
_ANEW_S_MAX = 86_400.0
_WHY_CHARS_MAX = 500
PODS_MAX = 5_000
"""The state of more pods would make the core wait for over a quarter of a second: such a recording
takes no further checkpoints, and ends when it is full."""


class _TooLargeError(Exception):
    """The recording is too large; the text says what is."""


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
        self._now_s = 0.0
        self._has_ended = False
        self._wait_s = _ANEW_S
        self._anew_s: float | None = None
        """When the next recording begins, if this one has ended; set by the next decision."""
        self.on_failure: Callable[[], None] = lambda: None
        """Called when a recording ends by a failure, to count it."""
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
        """Return all frames so far, for ``file_format.write``; later records are not included."""
        return [self._begin, *(one for segment in self._segments for one in segment.frames)]

    def observed(self, changes: Sequence[AnyChange]) -> None:
        """Record the changes that ``observe`` is about to receive."""
        if self._is_on and changes:
            self._changes += len(changes)
            with self._contained():
                self._put(Observed(list(changes)))

    def deciding(self, now_s: float) -> None:
        """Record that ``decide`` is about to be called."""
        self._now_s = now_s
        if self._has_ended and self._anew_s is None:
            self._anew_s = now_s + self._wait_s
            self._wait_s = min(2 * self._wait_s, _ANEW_S_MAX)
        if self._is_on:
            self._deciding = True
            self._decisions += 1
            with self._contained():
                self._put(Deciding(now_s))

    def planned(self, plan: Plan) -> None:
        """Record the plan that ``decide`` returned."""
        if self._is_on:
            with self._contained():
                self._quiet = not plan.gangs and not self._scheduler.cluster.waiting
                self._put(recording.planned(plan))

    def verified(self, plan: Plan, problems: Sequence[str]) -> None:
        """Record the plan and the problems that ``verified`` returned."""
        if self._is_on:
            self._deciding = False
            with self._contained():
                self._put(recording.verified(plan, problems))

    def checkpoint_slices(self) -> Iterator[None]:
        """Begin a new segment, or a new recording, if it is due.

        The work is done in slices between two calls of the core; the core must wait for the last.
        """
        with self._contained():
            if self._is_due():
                yield from self._begin_segment()

    def _is_due(self) -> bool:
        if self._deciding:
            return False
        pods = len(self._scheduler.cluster.pods)
        if not self._is_on:
            is_time = self._anew_s is not None and self._now_s >= self._anew_s
            return is_time and pods <= PODS_MAX
        news = self._segments[-1].news
        if news * (_SEGMENTS if self._quiet else _LATE_SEGMENTS) < self._bytes_max:
            return False
        if pods <= PODS_MAX:
            return True
        if self.size_bytes >= self._bytes_max:
            raise _TooLargeError(
                f"the recording is full, and the state of a cluster of {pods:,} pods, of which a "
                f"next part would begin, is not taken above {PODS_MAX:,}"
            )
        return False

    def _begin_segment(self) -> Iterator[None]:
        capture = Capture(self._scheduler)
        yield from capture.slices()
        self._scheduler.forget_caches()  # a replay from here has no caches
        first = recording.frame(
            Checkpoint(state=capture.state, changes=self._changes, decisions=self._decisions)
        )
        if 2 * len(first) > self._bytes_max:
            raise _TooLargeError(
                f"the state of the cluster takes {len(first):,} bytes, which leaves too little of "
                f"the {self._bytes_max:,} of recorder.maxBytes"
            )
        self.checkpoints += 1
        if not self._is_on:
            self._is_on, self._has_ended, self._anew_s = True, False, None
            self._segments.clear()
        self._segments.append(_Segment(first))
        self._drop_oldest()

    @contextmanager
    def _contained(self) -> Iterator[None]:
        """Let a failure end the recording and nothing else."""
        try:
            yield
        except Exception as error:
            name = type(error).__name__
            self._stop(str(error) if isinstance(error, _TooLargeError) else f"{name}: {error}")

    def _put(self, record: Record) -> None:
        data = recording.frame(record)
        segment = self._segments[-1]
        segment.frames.append(data)
        segment.bytes += len(data)
        segment.news += len(data)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._segments) > 1 and self.size_bytes > self._bytes_max:
            self._segments.popleft()

    def _stop(self, why: str) -> None:
        """End this recording; its frames stay readable until the next recording begins."""
        if self._is_on:
            self._segments[-1].frames.append(recording.frame(Stopped(plain(why, _WHY_CHARS_MAX))))
        self._is_on = self._deciding = False
        self._has_ended, self._anew_s = True, None
        log.warning("recording ended", problem=plain(why, _WHY_CHARS_MAX))
        self.on_failure()
