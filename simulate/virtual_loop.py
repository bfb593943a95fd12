"""An event loop that never waits: when nothing is ready, its clock jumps to the next timer.

In: coroutines. Out: the same run each time: callbacks run in the order in which they were
scheduled, and tasks hash by their number and not by their address. Nothing here reads a real clock
or a socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

GROUP: ContextVar[list[asyncio.Task[Any]] | None] = ContextVar("GROUP", default=None)
"""Where the tasks that are made in this context, and by those in turn, are kept."""


class StalledError(Exception):
    """Nothing is ready and no timer is set: the awaited event will never come."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Time starts at 0 and moves only while nothing is ready to run."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self._selector = _Jump(self)
        self._tasks_made = 0
        self.set_task_factory(_new_task)  # type: ignore[arg-type]  # as asyncio calls it

    def time(self) -> float:
        """Return the virtual seconds since the start."""
        return self.now_s

    def next_number(self) -> int:
        """Return the number of the next task."""
        self._tasks_made += 1
        return self._tasks_made

    def _process_events(self, event_list: object) -> None:
        """There are no events of the operating system."""

    def _write_to_self(self) -> None:
        """There is no other thread that could have to wake this one."""


class _Jump:
    """Takes the place of a selector: waiting for events is moving the clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout_s: float | None) -> list[Any]:
        if timeout_s is None:
            raise StalledError("nothing is ready to run, and no timer is set")
        self._loop.now_s += timeout_s
        return []


class _Task(asyncio.Task[T]):
    """A task whose place in a set is the same in each run."""

    def __init__(
        self,
        coro: Coroutine[Any, Any, T],
        *,
        loop: VirtualLoop,
        context: Context | None,
    ) -> None:
        self._number = loop.next_number()
        super().__init__(coro, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


def _new_task(
    loop: asyncio.AbstractEventLoop,
    coro: Coroutine[Any, Any, T],
    context: Context | None = None,
) -> asyncio.Task[T]:
    assert isinstance(loop, VirtualLoop), "it is this loop's factory"
    task = _Task(coro, loop=loop, context=context)
    group = GROUP.get() if context is None else context.get(GROUP)
    if group is not None:
        group.append(task)
    return task
