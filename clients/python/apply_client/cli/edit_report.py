"""What `apply` says of results, and what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from apply_client.cli.hunk_review import review_changes
from apply_client.cli.last_write import LastWrite, Write
from apply_client.cli.named_files import why_incomplete
from apply_client.cli.undo import PROGRAM
from apply_client.protocol.wire import ApplyResult, Finding
from apply_client.shown_text import say, shown_line
from apply_client.update_text import InputError
from apply_client.workspace.errors import WorkspaceError
from apply_client.workspace.folder import sha256_of
from apply_client.workspace.open_file import OpenFile


def check_files(update: str, files: Sequence[str]) -> None:
    """Raise InputError for an update of several files that are not all named."""
    reason = why_incomplete(update, files)
    if reason is not None:
        raise InputError(reason)


def as_json(result: ApplyResult[Any]) -> dict[str, Any]:
    """A result of bytes for a program: the file as text, or as base64 with that `encoding`."""
    members: dict[str, Any] = msgspec.to_builtins(result)
    try:
        return {**members, "merged": result.merged.decode()}
    except UnicodeDecodeError:
        return {**members, "merged": {"base64": members["merged"]}, "encoding": "base64"}


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings and their hints to stderr."""
    for finding in findings:
        say(f"  {finding.severity} {finding.code}: {finding.message}")
        say(f"    {finding.hint}")


def write_files(results: Sequence[tuple[OpenFile, ApplyResult[Any]]], *, asks: bool) -> None:
    """Write results of bytes into all files or none; `asks` at the terminal about each change.

    Raises WorkspaceError.
    """
    writes = []
    for file, result in results:
        after: bytes = result.merged
        if asks and after != file.content:
            after = review_changes(file.content, after, result.diff or "")
            if after == file.content:
                say(f"{shown_line(file.label)} was not written: no change was taken")
        if after != file.content:
            writes.append((file, after))
    for number, (file, after) in enumerate(writes):
        try:
            losses = file.replace(after)
        except WorkspaceError as error:
            stuck = _take_back(writes[:number])
            if stuck:
                raise WorkspaceError(file.label, "; ".join([str(error), *stuck])) from error
            raise
        for loss in losses:
            say(f"warning: {shown_line(file.label)}: {loss}")
    if writes:
        LastWrite(PROGRAM).remember_and_tell(
            [Write(file.place, file.content, after) for file, after in writes]
        )


def _take_back(written: Sequence[tuple[OpenFile, bytes]]) -> list[str]:
    """Write files as they were; in words, which of them could not be."""
    stuck = []
    for file, after in reversed(written):
        try:
            file.workspace.replace(file.file.path, file.content, expected_sha256=sha256_of(after))
        except WorkspaceError as error:
            stuck.append(
                f"{shown_line(file.label)} was written and could not be taken back: {error}"
            )
    return stuck
