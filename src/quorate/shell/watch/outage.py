"""Failing watches, in few lines of the log. In: the error of each watch. Out: log lines.

Called by ``gauges`` each second. An API server that is away fails all watches at once, each with
its own text. That is one outage: one line when it begins, one when it ends, and at most one a
minute while the errors change.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from quorate.core.words.plain_text import plain

log = structlog.get_logger(__name__)

_LASTS_S = 2.0
"""A shorter failure is a watch that was resumed elsewhere: a metric counts those."""
_AGAIN_S = 60.0
_CHARS_MAX = 300
_PATHS_MAX = 3


class Outage:
    """Remembers what was logged."""

    def __init__(self) -> None:
        self._began_s: float | None = None
        self._logged_s = float("-inf")
        self._logged: frozenset[tuple[str, str]] = frozenset()

    def look(self, troubles: Mapping[str, str], watches: int, now_s: float) -> None:
        """Log the failing watches, by path, out of ``watches`` in all, if that is news."""
        if not troubles:
            if self._began_s is not None and self._logged:
                log.info("watches are well again", seconds=round(now_s - self._began_s, 1))
            self._began_s, self._logged, self._logged_s = None, frozenset(), float("-inf")
            return
        if self._began_s is None:
            self._began_s = now_s
        is_new = now_s - self._began_s < _LASTS_S
        if is_new or now_s - self._logged_s < _AGAIN_S or self._logged == troubles.items():
            return
        self._logged, self._logged_s = frozenset(troubles.items()), now_s
        log.warning("watches in trouble", of=watches, **summary(troubles))


def summary(troubles: Mapping[str, str]) -> dict[str, object]:
    """Return how many watches fail, some of their paths, and the most frequent error."""
    said = list(troubles.values())
    most = max(dict.fromkeys(said), key=said.count)
    paths = sorted(troubles)
    more = len(paths) - _PATHS_MAX
    named = ", ".join(paths[:_PATHS_MAX]) + (f" and {more} more" if more > 0 else "")
    return {"watches": len(troubles), "paths": named, "problem": plain(most, _CHARS_MAX)}
