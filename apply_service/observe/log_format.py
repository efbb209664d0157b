"""The log: every line of ours and of the libraries, as JSON or for a terminal, on one stream."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import structlog

from apply_service.observe.private_text import TEXT_LOGGER
from apply_service.shown_text import shown

LogFormat = Literal["auto", "console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

_EventDict = MutableMapping[str, Any]
# What they catch came out of a request as well.
_PRIVATE_LOGGERS = ("uvicorn.error", "asyncio")
_ERASE_LINE = "\r\x1b[2K"
_NEVER = logging.CRITICAL + 1


def configure_logging(
    level: LogLevel,
    log_format: LogFormat,
    *,
    shows_text: bool,
    stream: TextIO | None = None,
    is_beside_bar: bool = False,
) -> None:
    """Send all logging to `stream`, by default stderr; `auto` is for people at a terminal.

    `is_beside_bar` where another process may show a bar on the same terminal. Unless `shows_text`,
    nothing of users' files is written: messages of errors that may quote them
    are left out, and TEXT_LOGGER is silent.
    """
    handler = _StderrHandler() if stream is None else logging.StreamHandler(stream)
    is_terminal = handler.stream.isatty()
    if is_terminal and is_beside_bar and isinstance(handler, _StderrHandler):
        handler.before_line = _ERASE_LINE
    is_console = log_format == "console" or (log_format == "auto" and is_terminal)
    renderer: Any
    if is_console:
        renderer = structlog.dev.ConsoleRenderer(colors=is_terminal, pad_event_to=0)
    else:
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.contextvars.merge_contextvars,
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.stdlib.ExtraAdder(),
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
            processors=[
                _ExceptionText(shows_text),
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _drop_colours,
                *([_escape_controls] if is_console else []),
                renderer,
            ],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it has a line for every request
    TEXT_LOGGER.setLevel(logging.INFO if shows_text else _NEVER)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what stderr is by now: while a bar is shown, lines stand above it."""

    before_line = ""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _stream: TextIO) -> None:
        """Stays stderr."""

    def format(self, record: logging.LogRecord) -> str:
        return self.before_line + super().format(record)


class _ExceptionText:
    """Writes the traceback of an error as text, without its message where that is private."""

    def __init__(self, shows_text: bool) -> None:
        self._shows_text = shows_text

    def __call__(self, _logger: Any, _method: str, event: _EventDict) -> _EventDict:
        is_private = event.pop("is_private", False) or event.get("logger") in _PRIVATE_LOGGERS
        exc_info = event.pop("exc_info", None)
        if isinstance(exc_info, tuple) and exc_info[1] is not None:
            error = exc_info[1]
            is_whole = self._shows_text or not is_private
            event["exception"] = (_whole_text if is_whole else _frames_text)(error)
        return event


def _whole_text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def _frames_text(error: BaseException) -> str:
    """Where it happened and of what type it and its causes are."""
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        parts.append("".join(traceback.format_tb(cause.__traceback__)) + type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    return "\ncaused by\n".join(parts)


def _drop_colours(_logger: Any, _method: str, event: _EventDict) -> _EventDict:
    """The web server sends a second, coloured form of its messages."""
    event.pop("color_message", None)
    return event


def _escape_controls(_logger: Any, _method: str, event: _EventDict) -> _EventDict:
    """No text acts on the terminal, and none but a traceback makes lines of its own."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = shown(value)
    event["event"] = str(event["event"]).replace("\n", "\\n")
    return event
