"""The log as it is written: one JSON object a line or lines for people, and no text of users."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from apply_service.observe.log_format import LogFormat, configure_logging
from apply_service.observe.private_text import PRIVATE_ERROR, TEXT_LOGGER

SECRET = "password = 'hunter2'"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    TEXT_LOGGER.setLevel(logging.NOTSET)
    structlog.contextvars.clear_contextvars()


def configured(
    stream: io.StringIO, log_format: LogFormat = "auto", *, shows_text: bool = False
) -> io.StringIO:
    configure_logging("info", log_format, shows_text=shows_text, stream=stream)
    return stream


def fail(text: str) -> None:
    try:
        raise KeyError(text)
    except KeyError as error:
        raise ValueError(text) from error


def log_failure(*, is_private: bool, logger: str = "apply_service.x") -> None:
    try:
        fail(SECRET)
    except ValueError as error:
        extra = PRIVATE_ERROR if is_private else None
        logging.getLogger(logger).error("it failed", exc_info=error, extra=extra)


def test_json_has_one_object_a_line_with_context_and_fields() -> None:
    stream = configured(io.StringIO())
    structlog.contextvars.bind_contextvars(request_id="r-1")
    logging.getLogger("uvicorn.error").info("Started on %s", "\n".join("ab"))
    logging.getLogger("apply_service.x").warning("grüße", extra={"seconds": 0.5})
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["event"] == "Started on a\nb"
    assert first["logger"] == "uvicorn.error"
    assert first["level"] == "info"
    assert first["request_id"] == "r-1"
    assert first["timestamp"].endswith("Z")
    assert second["event"] == "grüße"
    assert second["seconds"] == 0.5


def test_a_terminal_gets_lines_for_people_unless_json_is_asked_for() -> None:
    stream = configured(Terminal())
    logging.getLogger("apply_service.x").info("ready", extra={"model": "m"})
    assert "ready" in stream.getvalue()
    assert not stream.getvalue().startswith("{")
    stream = configured(Terminal(), "json")
    logging.getLogger("apply_service.x").info("ready")
    assert json.loads(stream.getvalue())["event"] == "ready"


def test_console_without_a_terminal_has_no_colours() -> None:
    stream = configured(io.StringIO(), "console")
    logging.getLogger("apply_service.x").info("ready", extra={"color_message": "\x1b[1mready"})
    assert "\x1b" not in stream.getvalue()
    assert "color_message" not in stream.getvalue()


def test_the_console_shows_control_characters_as_escapes() -> None:
    stream = configured(io.StringIO(), "console")
    logging.getLogger("apply_service.x").warning(
        "asking %s", "\x1b[2Jmodel\nready", extra={"model": "m\x9b\r\nm", "x": "\x1b[2J"}
    )
    log_failure(is_private=False)
    first, *others = stream.getvalue().splitlines()
    assert "asking \\x1b[2Jmodel\\nready" in first
    assert "x9b" in first
    assert "it failed" in others[0]
    assert len(others) > 5, "a traceback keeps its lines"
    assert not any(one in stream.getvalue() for one in "\x1b\x9b\r")


def test_levels_below_the_set_one_are_left_out() -> None:
    stream = configured(io.StringIO())
    logging.getLogger("apply_service.x").debug("quiet")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_private_errors_keep_their_place_and_lose_their_message(log_format: LogFormat) -> None:
    stream = configured(io.StringIO(), log_format)
    log_failure(is_private=True)
    written = stream.getvalue()
    assert "hunter2" not in written
    assert "ValueError" in written
    assert "KeyError" in written
    assert "in fail" in written
    assert "is_private" not in written


@pytest.mark.parametrize("logger", ["uvicorn.error", "asyncio"])
def test_what_others_catch_is_private(logger: str) -> None:
    stream = configured(io.StringIO())
    log_failure(is_private=False, logger=logger)
    assert "hunter2" not in stream.getvalue()
    assert "in fail" in stream.getvalue()


@pytest.mark.parametrize(("is_private", "shows_text"), [(False, False), (True, True)])
def test_other_errors_and_wanted_text_are_whole(is_private: bool, shows_text: bool) -> None:
    stream = configured(io.StringIO(), shows_text=shows_text)
    log_failure(is_private=is_private)
    assert SECRET in json.loads(stream.getvalue())["exception"]


@pytest.mark.parametrize("shows_text", [False, True])
def test_text_of_edits_is_written_only_if_that_is_set(shows_text: bool) -> None:
    stream = configured(io.StringIO(), shows_text=shows_text)
    TEXT_LOGGER.info("edit", extra={"update": SECRET})
    assert (SECRET in stream.getvalue()) is shows_text
