"""Names that wait for a worker, each once, and none while a worker has it. Used by ``nodes``."""

from __future__ import annotations

import asyncio


class WorkQueue:
    """Names are put at any time, taken by workers, and given back when the work is done."""

    def __init__(self) -> None:
        self._names: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self._busy: set[str] = set()
        self._again: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def put(self, name: str) -> None:
        """Have a worker look at it, once more if one does so now."""
        if name in self._busy:
            self._again.add(name)
        elif name not in self._waiting:
            self._waiting.add(name)
            self._names.put_nowait(name)

    def put_later(self, name: str, wait_s: float) -> None:
        """Put it after a while; an earlier wish of that kind is void."""
        self.forget(name)
        self._timers[name] = asyncio.get_running_loop().call_later(wait_s, self._put_now, name)

    def _put_now(self, name: str) -> None:
        del self._timers[name]
        self.put(name)

    def forget(self, name: str) -> None:
        """Do not put it after a while any more."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    async def take(self) -> str:
        """Return the one that waits longest, when there is one."""
        name = await self._names.get()
        self._waiting.discard(name)
        self._busy.add(name)
        return name

    def done(self, name: str) -> None:
        """Give it back."""
        self._busy.discard(name)
        if name in self._again:
            self._again.discard(name)
            self.put(name)

    def close(self) -> None:
        """End all waits."""
        for name in list(self._timers):
            self.forget(name)
