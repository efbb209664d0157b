from __future__ import annotations

import io
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import pytest
from canned_server import PROBLEM, CannedServer, canned_server

from apply_service.cli.demo import __main__ as demo
from apply_service.cli.demo.local_server import LocalServer, LocalServerError
from apply_service.cli.demo.screen import Screen
from apply_service.edit.text.diff import unified_diff
from apply_service.edit.text.text_file import split_lines
from apply_service.edit.verdict.verdict import judge

RESULT: dict[str, Any] = {
    "status": "applied",
    "findings": [],
    "merged": demo.read_expected(),
    "diff": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n",
    "usage": {"prompt_tokens": 400, "completion_tokens": 300},
    "speculation": {
        "drafted": 300,
        "accepted": 297,
        "target_passes": 7,
        "decode_passes": 6,
        "tokens_per_target_pass": 42.9,
    },
    "timing": {"queue": 0.0, "prefill": 0.5, "decode": 1.0, "total": 1.6},
}


class NoServer:
    """Stands where the server process does."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def wait_until_ready(self, timeout_s: float) -> float:
        return 0.0


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> Iterator[CannedServer]:
    with canned_server(RESULT) as server:
        monkeypatch.setattr(demo, "LocalServer", lambda: NoServer(server.port))
        yield server


def test_the_example_is_an_edit_of_two_places_that_passes_every_check() -> None:
    body = demo.read_example()
    original, _ = split_lines(body["original"])
    update, _ = split_lines(body["update"])
    expected, _ = split_lines(demo.read_expected())
    assert 30 <= len(original) <= 40
    assert unified_diff(body["original"], demo.read_expected()).count("\n@@ ") == 2
    verdict = judge(original, update, expected, ending="complete")
    assert (verdict.status, verdict.findings) == ("applied", ())
    compile(demo.read_expected(), "expected.py", "exec")


def test_a_right_merge_ends_with_success(
    canned: CannedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(["--off-tokens", "64"]) == 0
    shown = capsys.readouterr().out
    assert "applied, no findings; equal to the expected merge" in shown
    assert "42.9 tokens per target pass (7 passes), 99.0 % of 300 drafted" in shown
    assert "with speculation the edit is 1.0 times as fast" in shown
    assert "\x1b" not in shown
    whole, streamed, ambiguous, impossible = canned.bodies
    assert whole == demo.read_example()
    assert streamed["speculation"] == "off"
    assert streamed["sampling"] == {"max_tokens": 64}
    assert ambiguous["path"] == impossible["path"] == "gate.py"


def test_a_wrong_merge_is_said_and_fails(
    canned: CannedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    canned.result["merged"] = demo.read_expected().replace("        return {}\n", "", 1)
    assert demo.main([]) == 1
    shown = capsys.readouterr().out
    assert "NOT the expected merge" in shown
    assert "-        return {}" in shown.partition("The merge is wrong")[2]


def test_a_right_text_with_a_doubtful_verdict_fails(canned: CannedServer) -> None:
    canned.result["status"] = "needs_review"
    assert demo.main([]) == 1


def test_a_rejected_merge_is_said_and_fails(
    canned: CannedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    canned.problem = PROBLEM
    assert demo.main([]) == 1
    assert "marker_left in line 3" in capsys.readouterr().err


def test_colour_can_be_asked_for(canned: CannedServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--color"]) == 0
    assert "\x1b[32m+new\x1b[0m" in capsys.readouterr().out


def test_a_server_that_does_not_start_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APPLY_SERVICE_MODEL", "/nowhere/at all")
    assert demo.main([]) == 1
    assert "/nowhere/at all" in capsys.readouterr().err


def test_a_server_that_is_too_slow_is_given_up() -> None:
    with LocalServer() as server, pytest.raises(LocalServerError, match="not ready after 0 s"):
        server.wait_until_ready(0.0)


def test_the_counter_moves_on_a_terminal_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        screen = Screen(stream, has_color=False)
        screen.count("1 of 2 tokens")
        screen.end_count()
    assert "1 of 2 tokens" in terminal.getvalue()
    assert file.getvalue() == ""


def test_the_rate_counts_tokens_and_time_of_the_whole_request() -> None:
    assert demo.answer_rate(RESULT) == pytest.approx(300 / 1.6)
