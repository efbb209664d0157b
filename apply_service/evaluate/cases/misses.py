"""Writes the misses of an accuracy run as readable files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from apply_service.edit.text.diff import unified_diff
from apply_service.evaluate.cases.case_result import CaseResult

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_OWN_FILE = re.compile(r"miss-\d{4}-[a-z_]+-[A-Za-z0-9._-]*\.diff")
_MAX_NAME_LENGTH = 80


def write_misses(results: Iterable[CaseResult], folder: Path) -> int:
    """Write one file for each miss, silent errors first; the number of files.

    Files that an earlier run left there are removed, others are not touched.
    """
    misses = sorted((result for result in results if result.is_miss), key=_urgency)
    if not misses and not folder.is_dir():
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if _OWN_FILE.fullmatch(path.name):
            path.unlink()
    for number, result in enumerate(misses, start=1):
        slug = _UNSAFE.sub("_", result.case.id)[-_MAX_NAME_LENGTH:]
        name = f"miss-{number:04}-{_kind(result)}-{slug}.diff"
        (folder / name).write_text(_format_miss(result), encoding="utf-8", errors="replace")
    return len(misses)


def _kind(result: CaseResult) -> str:
    if result.case.must_refuse:
        return "not_refused"
    return "silent" if result.is_silent_error else result.answer.status


def _urgency(result: CaseResult) -> int:
    order = ("silent", "not_refused", "unchanged", "needs_review", "rejected", "failed")
    return order.index(_kind(result))


def _format_miss(result: CaseResult) -> str:
    return "\n".join([*_head(result), "", *_body(result)]) + "\n"


def _head(result: CaseResult) -> Iterator[str]:
    case, answer = result.case, result.answer
    yield f"# case {case.id}"
    yield f"# {result.language}, style {case.style or 'unknown'}, status {answer.status}"
    yield from (f"# {line}" for note in answer.notes for line in note.splitlines())
    if not case.must_refuse and answer.text is not None:
        yield from (f"# expected and lost: {line}" for line in result.lost_lines[:20])


def _body(result: CaseResult) -> Iterator[str]:
    case = result.case
    yield "# The update:"
    yield from (f"#   {line}" for line in case.update.removesuffix("\n").split("\n"))
    if case.must_refuse:
        yield "# No answer is right here. The change that was made:"
        yield unified_diff(case.original, result.text, path=case.path)
        return
    yield "# What was expected (from the original):"
    yield unified_diff(case.original, case.expected, path=case.path)
    if result.answer.text is None:
        yield "# Nothing was returned."
        return
    yield "# What is wrong with the answer (from the expected file to the answer):"
    yield unified_diff(case.expected, result.text, path=case.path)
