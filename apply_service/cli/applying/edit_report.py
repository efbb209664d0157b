"""What `apply` says of answers, and what it writes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from apply_service.cli.applying.asking import Answer
from apply_service.cli.applying.choice_prompt import print_choices
from apply_service.cli.applying.edit_input import ApplyCommandError
from apply_service.cli.file_writer import FileWriteError, write_result
from apply_service.cli.hunk_review import review_changes
from apply_service.cli.last_write import LastWrite, Write
from apply_service.cli.undo import PROGRAM
from apply_service.http.problems import Problem
from apply_service.http.schemas import ApplyResult, Base64Content, FindingBody
from apply_service.shown_text import say, shown_line

EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_REVIEW, EXIT_REJECTED = 0, 1, 2, 3, 4

_EXIT_BY_STATUS = {
    "applied": EXIT_OK,
    "unchanged": EXIT_OK,
    "needs_review": EXIT_REVIEW,
    "rejected": EXIT_REJECTED,
}


@dataclass(frozen=True, slots=True)
class EditedFile:
    """A file as it was read, and its result."""

    path: Path
    before: bytes
    result: ApplyResult

    @property
    def merged(self) -> bytes:
        """The file after the edit."""
        merged = self.result.merged
        return merged.base64 if isinstance(merged, Base64Content) else b""


def as_json(answer: Answer) -> dict[str, Any]:
    """An answer for a program: the file as text, or as base64 with that `encoding`."""
    members: dict[str, Any] = msgspec.to_builtins(answer)
    if isinstance(answer, ApplyResult) and isinstance(answer.merged, Base64Content):
        try:
            members["merged"] = answer.merged.base64.decode()
        except UnicodeDecodeError:
            members["encoding"] = "base64"
    return members


def report_answer(answer: Answer) -> int:
    """Say on stderr what is wrong with an answer; the exit code.

    Raises ApplyCommandError for a problem without a verdict.
    """
    if isinstance(answer, Problem):
        return _report_problem(answer)
    exit_code = _EXIT_BY_STATUS[answer.status]
    if exit_code != EXIT_OK:
        say(answer.status.replace("_", " "))
        _print_findings(answer.findings)
        print_choices(answer.choices, has_diffs=False)
    return exit_code


def is_accepted(exit_code: int, args: argparse.Namespace) -> bool:
    """True if a result of this exit code is written."""
    return exit_code == EXIT_OK or (exit_code == EXIT_REVIEW and args.accept_review)


def write_files(files: Sequence[EditedFile], *, asks: bool) -> None:
    """Write the results of all files or of none; `asks` at the terminal about each change.

    Raises FileWriteError.
    """
    writes = []
    for file in files:
        after = file.merged
        if asks and after != file.before:
            after = review_changes(file.before, after, file.result.diff or "")
            if after == file.before:
                say(f"{shown_line(file.path)} was not written: no change was taken")
        if after != file.before:
            writes.append(Write(file.path, file.before, after))
    for number, one in enumerate(writes):
        try:
            losses = write_result(one.path, one.after, expected=one.before)
        except FileWriteError as error:
            stuck = _take_back(writes[:number])
            if stuck:
                raise FileWriteError("; ".join([str(error), *stuck])) from error
            raise
        for loss in losses:
            say(f"warning: {shown_line(one.path)}: {loss}")
    if writes:
        LastWrite(PROGRAM).remember_and_tell(writes)


def _take_back(written: Sequence[Write]) -> list[str]:
    """Write files as they were; in words, which of them could not be."""
    stuck = []
    for one in reversed(written):
        try:
            write_result(one.path, one.before, expected=one.after)
        except FileWriteError as error:
            stuck.append(f"{shown_line(one.path)} was written and could not be taken back: {error}")
    return stuck


def _report_problem(problem: Problem) -> int:
    if problem.findings is None:
        print_choices(problem.choices or (), has_diffs=False)
        remedy = f"; {problem.remedy}" if problem.remedy else ""
        raise ApplyCommandError(f"{problem.detail}{remedy}")
    say("rejected: the result failed its checks")
    _print_findings(problem.findings)
    print_choices(problem.choices or (), has_diffs=False)
    return EXIT_REJECTED


def _print_findings(findings: Sequence[FindingBody]) -> None:
    for finding in findings:
        say(f"  {finding.severity} {finding.code}: {finding.message}")
        say(f"    {finding.hint}")
