"""A queue of sayings with a rate limit for all gangs together, fair among namespaces.

In: sayings. Out: those that may be sent now. New sayings go before repeated ones. A saying replaces
an older one about the same thing, so the queue is bounded by the numbers of pods and gangs. Called
by ``telling``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from quorate.core.model import policy
from quorate.core.telling.sayings import Saying

_About = tuple[Hashable, ...]


class _Line:
    """Sayings by namespace: namespaces take turns, and within each the oldest goes first."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[_About, Saying]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    def put(self, namespace: str, saying: Saying) -> None:
        self._namespaces.setdefault(namespace, {})[saying.about] = saying

    def drop(self, namespace: str, about: _About) -> bool:
        waiting = self._namespaces.get(namespace, {})
        if waiting.pop(about, None) is None:
            return False
        if not waiting:
            del self._namespaces[namespace]
        return True

    def take(self) -> Saying | None:
        namespace = next(iter(self._namespaces), None)
        if namespace is None:
            return None
        waiting = self._namespaces.pop(namespace)
        saying = waiting.pop(next(iter(waiting)))
        if waiting:
            self._namespaces[namespace] = waiting  # behind the others
        return saying


class Outbox:
    """Two queues and an allowance of sayings, which grows by ``policy.SAYINGS_PER_S``."""

    def __init__(self) -> None:
        self._new, self._again = _Line(), _Line()
        self._allowance = float(policy.SAYINGS_AT_ONCE_MAX)
        self._counted_s: float | None = None

    def __len__(self) -> int:
        """Return how many sayings wait."""
        return len(self._new) + len(self._again)

    def put(self, saying: Saying, *, again: bool) -> None:
        """Queue a saying. If an older one waits as new, this one is new too, even if ``again``."""
        namespace, about = saying.key.namespace, saying.about
        line = self._again if again else self._new
        if again and self._new.drop(namespace, about):
            line = self._new
        elif not again:
            self._again.drop(namespace, about)
        line.put(namespace, saying)

    def drop(self, namespace: str, about: _About) -> None:
        """Forget a waiting saying about something, if there is one."""
        self._new.drop(namespace, about)
        self._again.drop(namespace, about)

    def take(self, now_s: float) -> Iterator[Saying]:
        """Yield the sayings that may be sent now (seconds of a monotonic clock)."""
        if self._counted_s is not None:
            grown = self._allowance + (now_s - self._counted_s) * policy.SAYINGS_PER_S
            self._allowance = min(policy.SAYINGS_AT_ONCE_MAX, grown)
        self._counted_s = now_s
        while self._allowance >= 1.0:
            saying = self._new.take() or self._again.take()
            if saying is None:
                return
            self._allowance -= 1.0
            yield saying

    def give_back(self) -> None:
        """Give back the allowance of one saying that needed no request."""
        self._allowance = min(policy.SAYINGS_AT_ONCE_MAX, self._allowance + 1.0)
