"""Bars at a real terminal: they are drawn, leave nothing behind, and disturb no output."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from gguf_file import write_gguf
from serve_process import ROOT
from terminal import run_at_terminal

WORK = """
import sys
from apply_service.observe.progress import Progress, tracked

progress = Progress(sys.stderr)
progress.show_stage("fetching [bold] model")
progress.show_share(0.5)
print("a warning", file=sys.stderr)
progress.clear()
for word in tracked(["one", "two", "three"], name=str.upper):
    print(f"row {word}")
print("rich" in sys.modules)
"""
KILLED = """
import sys
from apply_service.observe.progress import Progress
Progress(sys.stderr).show_stage("loading")
raise SystemExit("no memory")
"""
BAR, PLAIN = "\N{BOX DRAWINGS HEAVY HORIZONTAL}", "\x1b[0m"
SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


def run(program: str, *, stdout_too: bool = False, **environment: str) -> tuple[int, str, str]:
    """Exit code, what the terminal is sent, and stdout."""
    code, shown, stdout = run_at_terminal(
        [sys.executable, "-c", program],
        "",
        environment={"PYTHONPATH": str(ROOT), "COLUMNS": "100", **environment},
        stdout_too=stdout_too,
    )
    return code, shown, stdout.decode()


def left_over(shown: str) -> list[str]:
    """The lines that a terminal has at the end, of what bars send: up, to the left, erase."""
    lines, at = [""], 0
    for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\n\r]|[^\x1b\n\r]+", shown):
        if piece == "\n":
            at += 1
            lines += [""] * (at == len(lines))
        elif piece == "\x1b[1A":
            at -= 1
        elif piece == "\x1b[2K":
            lines[at] = ""
        elif piece[0] not in "\x1b\r":
            lines[at] += piece
    return [line for line in lines if line]


def test_bars_are_drawn_and_leave_nothing() -> None:
    code, shown, stdout = run(WORK)
    assert code == 0, shown
    for part in ("fetching [bold] model", "50%", "1 of 3", "TWO", "3 of 3"):
        assert part in shown, part
    assert left_over(shown) == ["a warning"]
    assert stdout == "row one\nrow two\nrow three\nTrue\n"
    assert shown.count(HIDE_CURSOR) == shown.count(SHOW_CURSOR) == 2


def test_what_is_printed_on_the_same_terminal_stands_above_the_bar() -> None:
    _, shown, _ = run(WORK, stdout_too=True)
    assert left_over(shown) == ["a warning", "row one", "row two", "row three", "True"]


def test_no_colour_where_nobody_wants_any() -> None:
    colours = re.compile(r"\x1b\[[0-9;]*3[0-9;]*m")
    assert colours.search(run(WORK)[1])
    _, shown, _ = run(WORK, NO_COLOR="1")
    assert "2 of 3" in shown
    assert not colours.search(shown)


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_cannot_move_gets_no_bar(term: str) -> None:
    code, shown, stdout = run(WORK, TERM=term)
    assert (code, shown) == (0, "a warning\n")
    assert stdout.endswith("False\n")


def test_an_end_before_its_time_gives_the_cursor_back() -> None:
    code, shown, _ = run(KILLED)
    assert code == 1
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    assert "no memory" in shown


def command(*arguments: str, ends_after: str | None = None, **environment: str) -> str:
    """What a terminal is sent by `apply-service`, which ends well."""
    code, shown, _ = run_at_terminal(
        [sys.executable, "-m", "apply_service", *arguments],
        "",
        environment={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160", **environment},
        stdout_too=True,
        ends_after=ends_after,
    )
    assert code == 0, shown
    return shown


def test_a_model_is_prepared_at_a_terminal(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf")
    model = str(tmp_path / "tiny.gguf")
    shown = command("model", "prepare", model, APPLY_SERVICE_CACHE=str(tmp_path / "cache"))
    assert f"{PLAIN} converting tiny.gguf to safetensors" in shown
    said, ready = left_over(shown)
    assert said == "converting tiny.gguf to safetensors"
    assert ready.startswith("tiny is ready in ")


def test_a_start_shows_that_the_model_is_loading() -> None:
    flags = ("--port", "0", "--threads", "1")
    shown = command("up", *flags, ends_after="ready: model embedded")
    assert f"{PLAIN} loading the model embedded" in shown
    lines = left_over(shown)
    assert lines[0].startswith("apply-service listens at http://")
    assert not [line for line in lines if BAR in line]
    assert [line for line in lines if "listening on http://" in line]
