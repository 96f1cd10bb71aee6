"""Logs: for people on a terminal, JSON elsewhere; on standard error, never a reading or a payload."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum

import structlog


class Level(StrEnum):
    """The least severe level that is shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logs(level: Level = Level.INFO) -> None:
    """Set structlog up for the process.

    Args:
        level: the least severe level that is shown.

    """
    terminal = sys.stderr.isatty()
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
