"""Watches in trouble, told in few lines. In: what each watch fails with. Out: lines of the log.

Called by ``numbers`` each second. An API server that is away fails all watches at once, each in
words of its own: that is one outage, and one line when it begins, one when it ends, and one now and
then while it changes.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from quorate.core.words.plain_text import plain

log = structlog.get_logger(__name__)

_LASTS_S = 2.0
"""What is over sooner is a watch that went on elsewhere: a metric counts those."""
_AGAIN_S = 60.0
_CHARS_MAX = 300
_PATHS_MAX = 3


class Outage:
    """Remembers what was told."""

    def __init__(self) -> None:
        self._began_s: float | None = None
        self._told_s = float("-inf")
        self._told: frozenset[tuple[str, str]] = frozenset()

    def look(self, troubles: Mapping[str, str], watches: int, now_s: float) -> None:
        """Tell of watches in trouble (their words by path), out of so many, if that is news."""
        if not troubles:
            if self._began_s is not None and self._told:
                log.info("watches are well again", seconds=round(now_s - self._began_s, 1))
            self._began_s, self._told, self._told_s = None, frozenset(), float("-inf")
            return
        if self._began_s is None:
            self._began_s = now_s
        is_new = now_s - self._began_s < _LASTS_S
        if is_new or now_s - self._told_s < _AGAIN_S or self._told == troubles.items():
            return
        self._told, self._told_s = frozenset(troubles.items()), now_s
        log.warning("watches in trouble", of=watches, **summary(troubles))


def summary(troubles: Mapping[str, str]) -> dict[str, object]:
    """Return how many there are, some of them, and what most of them say."""
    said = list(troubles.values())
    most = max(dict.fromkeys(said), key=said.count)
    paths = sorted(troubles)
    more = len(paths) - _PATHS_MAX
    named = ", ".join(paths[:_PATHS_MAX]) + (f" and {more} more" if more > 0 else "")
    return {"watches": len(troubles), "paths": named, "problem": plain(most, _CHARS_MAX)}
