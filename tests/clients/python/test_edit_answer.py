"""What a model reads about its edits: never too long, and what matters first."""

from __future__ import annotations

import difflib

import pytest
from apply_client.errors import APIConnectionError, ApplyClientError, AuthenticationError
from apply_client.mcp_server.diff_excerpt import diff_excerpt, num_changed
from apply_client.mcp_server.edit_answer import MAX_LINE_CHARACTERS, answer_text, fair_shares
from apply_client.protocol.wire import Finding, Problem
from apply_client.workspace.edit_report import EditReport
from apply_client.workspace.errors import ContentConflictError

URL = "http://127.0.0.1:1"


def diff_of(num_lines: int, *changed: int) -> str:
    old = [f"line {number}" for number in range(num_lines)]
    new = [f"{line}!" if number in changed else line for number, line in enumerate(old)]
    lines = difflib.unified_diff(old, new, "a/x", "b/x", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def finding(number: int) -> Finding:
    return Finding(
        code=f"code_{number}", severity="warning", message="m" * 900, hint="two\nlines", line=7
    )


def test_a_diff_that_fits_is_whole_but_for_the_names() -> None:
    diff = diff_of(20, 10)
    assert diff_excerpt(diff, 40) == diff.splitlines()[2:]
    assert num_changed(diff) == (1, 1)


def test_lines_around_the_changes_go_first() -> None:
    diff = diff_of(40, 10, 30)
    assert len(diff_excerpt(diff, 18)) == 18
    assert len(diff_excerpt(diff, 17)) == 14
    assert diff_excerpt(diff, 6) == [line for line in diff.splitlines()[2:] if line[0] in "@+-"]
    assert diff_excerpt(diff, 5)[-1] == "… 2 more lines of the diff"
    assert diff_excerpt(diff, 0) == []
    assert diff_excerpt("", 9) == []


def test_lines_that_look_like_names_are_counted() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- old\n+++ new\n"
    assert num_changed(diff) == (1, 1)
    assert diff_excerpt(diff, 9) == ["@@ -1 +1 @@", "--- old", "+++ new"]


@pytest.mark.parametrize(
    ("wanted", "room", "shares"),
    [
        ([3, 3], 10, [3, 3]),
        ([3, 30], 10, [3, 7]),
        ([30, 30, 30], 10, [3, 3, 4]),
        ([5, 5], 0, [0, 0]),
        ([5], -3, [0]),
        ([], 4, []),
    ],
)
def test_shares_are_fair(wanted: list[int], room: int, shares: list[int]) -> None:
    assert sorted(fair_shares(wanted, room)) == sorted(shares)
    assert sum(fair_shares(wanted, room)) <= max(room, 0)


@pytest.mark.parametrize("num_reports", [1, 2, 7, 20, 39, 40, 200])
@pytest.mark.parametrize("num_findings", [0, 1, 30])
def test_no_answer_is_too_long(num_reports: int, num_findings: int) -> None:
    findings = tuple(finding(number) for number in range(num_findings))
    reports = [
        EditReport(
            name=f"file_{number}.py",
            status="needs_review" if number % 2 else "applied",
            fate="was written",
            is_written=not number % 2,
            diff=diff_of(200, *range(0, 200, 9)),
            findings=findings,
        )
        for number in range(num_reports)
    ]
    lines = answer_text(reports, url=URL).split("\n")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= MAX_LINE_CHARACTERS
    if num_reports >= 40:
        shown = [line for line in lines if line.startswith(("needs_review", "applied"))]
        assert lines[-1] == f"… and {num_reports - len(shown)} more"
        assert shown[0].startswith("needs_review"), "those that failed are shown first"


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (APIConnectionError("POST /v1/apply: refused"), f"cannot be reached at {URL}"),
        (AuthenticationError(Problem(status=401, detail="no key")), "set APPLY_API_KEY"),
        (ContentConflictError("a.py", "has changed"), "content-conflict: a.py has changed"),
        (ApplyClientError("odd\nthing"), "  odd thing"),
    ],
)
def test_errors_come_with_a_remedy(error: ApplyClientError, remedy: str) -> None:
    report = EditReport(name="a.py", status="failed", fate="was not written", error=error)
    text = answer_text([report], url=URL)
    assert text.startswith("failed: 'a.py' was not written\n")
    assert remedy in text
