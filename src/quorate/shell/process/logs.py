"""Structured logs: one line for each event, as JSON or for a person. Called once, by ``cli``.

The lines of libraries, of threads that fail and of warnings go the same way. What is said in them
may be a stranger's: it is bounded, and plain where a person reads it (JSON escapes it anyway).
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import Literal, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from quorate.core.words.plain_text import plain, plain_lines

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_CHARS_MAX = 4000
_TRACE_CHARS_MAX = 32_000
_TRACES = ("exception", "trace", "stack")
_INDENT = "    "


class Handler(logging.StreamHandler):  # type: ignore[type-arg]
    """Where the lines of libraries go: there is one of these."""


def set_up(level: str, style: Literal["json", "text"]) -> None:
    """Send all logs to standard error; those of libraries only when they warn."""
    before: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*before, *_last(style)],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = Handler(sys.stderr)
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[remove, *_last(style)],
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *before],
        )
    )
    root = logging.getLogger()
    root.handlers = [*(one for one in root.handlers if not isinstance(one, Handler)), handler]
    root.setLevel(logging.WARNING)
    # It warns of each device for which a selector is broken; reasons of pods say so once.
    logging.getLogger("cel").setLevel(logging.ERROR)
    logging.captureWarnings(capture=True)
    threading.excepthook = _of_thread


def uncaught(error: BaseException) -> None:
    """Log what ends the process, where nobody expected it."""
    structlog.get_logger(__name__).critical(
        "an error that nobody expected ends this process", error=str(error), exc_info=error
    )


def _of_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is None or issubclass(args.exc_type, SystemExit):
        return
    structlog.get_logger(__name__).error(
        "a thread ended with an error",
        thread=args.thread.name if args.thread else "",
        exc_info=args.exc_value,
    )


def _last(style: str) -> list[Processor]:
    """Return what turns an event into a line."""
    if style == "json":
        return [structlog.processors.format_exc_info, _bounded, structlog.processors.JSONRenderer()]
    person = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    return [structlog.processors.format_exc_info, _bounded, _plain, cast(Processor, person)]


def _bounded(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if isinstance(value, str):
            most = _TRACE_CHARS_MAX if key in _TRACES else _CHARS_MAX
            if len(value) > most:
                event[key] = f"{value[: most // 2]} ... {value[-most // 2 :]}"
    return event


def _plain(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if not isinstance(value, str):
            continue
        if key in _TRACES:  # indented: no line of a message looks like one of ours
            event[key] = _INDENT + plain_lines(value).replace("\n", f"\n{_INDENT}")
        else:
            event[key] = plain(value)
    return event
