"""A stream that nobody waits for: what finds no room is dropped and counted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import TextIO

import pytest

from apply_service.observe.log_stream import LogStream

LIMIT_S = 30.0
LINE = "x" * 99 + "\n"
# A process that logs more than a pipe holds, and ends.
PROGRAM = """
import logging
from apply_service.observe.log_format import configure_logging
from apply_service.observe.log_stream import LogStream
LogStream.replace_stderr()
configure_logging("info", "json", shows_text=False)
for number in range(%d):
    logging.getLogger("x").info("line %%d", number)
print("the end", flush=True)
"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    """The end of a pipe to read from, and the one to write to."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        yield reader, stream
    os.close(reader)


def read(reader: int, num_bytes: int) -> str:
    data = b""
    while len(data) < num_bytes:
        data += os.read(reader, num_bytes - len(data))
    return data.decode()


def test_text_comes_whole_and_in_order(pipe: tuple[int, TextIO]) -> None:
    reader, stream = pipe
    log = LogStream(stream)
    texts = [f"{number} grüße \udc80\n" for number in range(100)]
    for text in texts:
        assert log.write(text) == len(text)
    expected = "".join(texts).encode("utf-8", "backslashreplace")
    assert read(reader, len(expected)) == expected.decode()
    assert log.num_dropped == 0


def test_what_finds_no_room_is_dropped_and_told_once(
    pipe: tuple[int, TextIO], caplog: pytest.LogCaptureFixture
) -> None:
    reader, stream = pipe
    log = LogStream(stream, max_bytes=10_000)
    num_lines = 2000
    for _ in range(num_lines):
        log.write(LINE)
    assert num_lines - 1000 < log.num_dropped < num_lines
    read(reader, (num_lines - log.num_dropped) * len(LINE))
    log.drain(LIMIT_S)
    (said,) = [one.message for one in caplog.records if "dropped" in one.message]
    assert said.startswith(f"{log.num_dropped} lines of the log were dropped")
    log.write("again\n")
    assert read(reader, 6) == "again\n"


def test_a_reader_that_has_gone_is_no_error(
    pipe: tuple[int, TextIO], caplog: pytest.LogCaptureFixture
) -> None:
    closed, writer = os.pipe()
    os.close(closed)
    with os.fdopen(writer, "w") as stream:
        log = LogStream(stream)
        log.write(LINE)
        log.drain(LIMIT_S)
    assert caplog.text == ""


@pytest.mark.parametrize("num_lines", [200, 5000])
def test_the_end_of_a_process_waits_for_a_reader_and_not_for_ever(num_lines: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM % num_lines],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "the end\n"
    if num_lines == 200:
        _, log = process.communicate(timeout=LIMIT_S)
        assert log.count('"line ') == num_lines
        assert process.returncode == 0
    else:
        assert process.wait(LIMIT_S) == 0
        process.communicate()


def test_all_of_pythons_own_words_go_the_same_way() -> None:
    """Warnings, and errors of threads, are written by Python itself."""
    program = (
        "import sys, threading, warnings\n"
        "from apply_service.observe.log_stream import LogStream\n"
        "taken = LogStream.replace_stderr()\n"
        "assert sys.stderr is taken\n"
        "warnings.warn('a warning')\n"
        "thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()\n"
        "print('printed', file=sys.stderr)\n"
        "raise SystemExit('the last word')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    for words in ("a warning", "ZeroDivisionError", "printed", "the last word"):
        assert words in done.stderr


def test_what_is_not_the_streams_of_the_process_stays(capsys: pytest.CaptureFixture[str]) -> None:
    assert LogStream.replace_stderr() is None
