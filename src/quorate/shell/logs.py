"""Structured logs: one line for each event, as JSON or for a person. Called once, by ``cli``."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def set_up(level: str, style: Literal["json", "text"]) -> None:
    """Send all logs to standard error; those of libraries only when they warn."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    # It warns of each device for which a selector is broken; reasons of pods say so once.
    logging.getLogger("cel").setLevel(logging.ERROR)
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
