"""The scheduler's log during a run: only a trace shows it.

Errors that the scheduler logs, because it goes on without what failed, are defects: ``LOG`` keeps
them for the checkers.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

Words = MutableMapping[str, Any]


class _Log:
    """The log of the run that is under way."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.to: Callable[[str, Words], None] | None = None

    def begin(self) -> None:
        """Forget an earlier run."""
        self.errors, self.to = [], None

    def take(self, _: object, level: str, words: Words) -> Words:
        """Take one entry; nothing is printed."""
        if level == "error" and words.get("event") not in _EXPECTED:
            problem = words.get("problem") or words.get("error") or words.get("exc_info") or ""
            self.errors.append(f"{words.get('event')}: {problem}")
        if self.to is not None:
            self.to(level, words)
        raise structlog.DropEvent


LOG = _Log()
_EXPECTED = ("lost the lease",)


def set_up(*, traced: bool) -> None:
    """Send all logs here; those below warnings only if somebody reads them."""
    structlog.configure(
        processors=[LOG.take],
        wrapper_class=structlog.make_filtering_bound_logger(10 if traced else 40),
        logger_factory=structlog.ReturnLoggerFactory(),
        cache_logger_on_first_use=False,
    )
