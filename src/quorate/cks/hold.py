"""Whether a node is given to and fro: wishes and writes in, until when it is held out. Pure.

Called by ``nodes``. Somebody who changes labels each second, or a second controller with other
rules, would have us write for ever. So a node is held of which the same is asked, or to which the
same is written, too often. It is nobody's then, and written to rarely, until nobody but us has
changed it for a while. That while doubles each time it is held again: two controllers that hold it
at the same time also let go at the same.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

QUIET_S: Final = 60.0
QUIET_S_MAX: Final = 3600.0
"""How long a held node has to be quiet to be judged again: the first time, and at most."""
SAME_MAX: Final = 5
SAME_S: Final = 600.0
"""So often within so many seconds the same may be asked of a node, and written to it."""
SLOW_S_MAX: Final = 60.0
"""Between two writes to a held node, at most: so that who writes against them holds it, too."""

_LATEST: Final = 32


class Asked(NamedTuple):
    """What a node's labels ask for."""

    state: str | None
    desired: str | None


class Hold:
    """One node's latest writes. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._writes = _Latest()
        self._wishes = _Latest()
        self._asked: Asked | None = None
        self.quiet_s = QUIET_S
        """How long the node has to be quiet."""
        self.until_s = float("-inf")
        """The node is held until then."""
        self.desired = ""
        """For whom it was last desired."""

    def saw(self, asked: Asked, now_s: float) -> None:
        """Note what the node's labels ask for; a held node is not quiet when that changes."""
        if asked == self._asked:
            return
        self._asked = asked
        self.desired = asked.desired or self.desired
        self._wishes.add(asked, now_s)
        if now_s < self.until_s:
            self.extend(now_s)
        elif self._wishes.count(asked, now_s) > SAME_MAX:
            self.begin(now_s)

    def begin(self, now_s: float) -> None:
        """Hold the node from now on."""
        is_again = now_s < self.until_s + QUIET_S_MAX
        self.quiet_s = min(2 * self.quiet_s, QUIET_S_MAX) if is_again else QUIET_S
        self._writes, self._wishes = _Latest(), _Latest()
        self.extend(now_s)

    def extend(self, now_s: float) -> None:
        """Hold on: somebody has changed the node."""
        self.until_s = now_s + self.quiet_s

    def is_too_often(self, what: str, now_s: float) -> bool:
        """Tell whether this was written to the node too often of late."""
        return self._writes.count(what, now_s) >= SAME_MAX

    def wait_s(self, now_s: float) -> float:
        """Return for how long a contested node may not be written to, in seconds."""
        return max(0.0, self._writes.last_s + min(self.quiet_s / 6, SLOW_S_MAX) - now_s)

    def wrote(self, what: str, now_s: float) -> None:
        """Note a write."""
        self._writes.add(what, now_s)


class _Latest:
    """What was last, and when."""

    def __init__(self) -> None:
        self._all: deque[tuple[float, object]] = deque(maxlen=_LATEST)
        self.last_s = float("-inf")

    def add(self, what: object, now_s: float) -> None:
        self._all.append((now_s, what))
        self.last_s = now_s

    def count(self, what: object, now_s: float) -> int:
        """Return how often the same was within ``SAME_S``."""
        return sum(one == what and at_s > now_s - SAME_S for at_s, one in self._all)
