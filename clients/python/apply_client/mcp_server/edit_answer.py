"""Answers that tell a model about its edits: at most 40 lines, all of them useful to it."""

from __future__ import annotations

from collections.abc import Sequence

from apply_client.errors import (
    APIConnectionError,
    ApplyClientError,
    AuthenticationError,
    InvalidResponseError,
    RateLimitError,
    ServerError,
)
from apply_client.mcp_server.diff_excerpt import diff_excerpt, num_changed
from apply_client.protocol.wire import Choice, Finding
from apply_client.workspace.edit_report import EditReport
from apply_client.workspace.errors import ContentConflictError, WorkspaceError
from apply_client.workspace.patch_split import PatchError

MAX_LINES = 40
MAX_LINE_CHARACTERS = 400
MAX_FINDINGS = 5
# Shorter excerpts say less than the numbers of lines do.
MIN_DIFF_LINES = 3

_RETRY = (
    "Nothing was written for it. Send the edit again as the hints say: with more unchanged lines"
    " around the change, or as SEARCH/REPLACE blocks."
)
_CHOOSE = (
    "Or, if one of these is what you mean, send the same edit with `resolve` and its id; nothing"
    " else has to change:"
)
_REMEDIES: tuple[tuple[type[ApplyClientError], str], ...] = (
    (ContentConflictError, "Read the file again before you edit it."),
    (WorkspaceError, "Nothing was changed."),
    (PatchError, "Nothing was changed."),
    (
        APIConnectionError,
        "The merge service cannot be reached at {url}. Whoever runs this tool has to start it"
        " (`apply-service serve`) or name another address (--url). Until then use another tool.",
    ),
    (AuthenticationError, "The service wants an API key; set APPLY_API_KEY for this tool."),
    (RateLimitError, "The service is busy; send the same edit again in a minute."),
    (ServerError, "The service failed; send the same edit again in a minute, once."),
    (InvalidResponseError, "What answers at {url} is no apply-service; see --url."),
)


def answer_text(reports: Sequence[EditReport], *, url: str, max_lines: int = MAX_LINES) -> str:
    """One line for each edit, below it advice, and its diff as far as it fits."""
    lines: list[str] = []
    if len(reports) > 1:
        num_written = sum(report.is_written for report in reports)
        lines.append(f"{num_written} of {len(reports)} changes were written.")
    shown, num_hidden = _most_telling(reports, max_lines - len(lines))
    room = max_lines - len(lines) - len(shown) - (1 if num_hidden else 0)
    advice = [_advice(report, url) for report in shown]
    advice_grants = fair_shares([len(one) for one in advice], room)
    room -= sum(advice_grants)
    diff_grants = fair_shares([report.diff.count("\n") for report in shown], room)
    for report, hints, num_hints, num_diff in zip(
        shown, advice, advice_grants, diff_grants, strict=True
    ):
        lines += [_head(report), *hints[:num_hints]]
        lines += diff_excerpt(report.diff, num_diff if num_diff >= MIN_DIFF_LINES else 0)
    if num_hidden:
        lines.append(f"… and {num_hidden} more")
    return "\n".join(_cut(line) for line in lines)


def fair_shares(wanted: Sequence[int], room: int) -> list[int]:
    """Divide `room` fairly: each gets at most what it wants.

    Room that small wants leave over is shared equally among the others.
    """
    shares = [0] * len(wanted)
    by_size = sorted(range(len(wanted)), key=lambda position: wanted[position])
    for num_done, position in enumerate(by_size):
        shares[position] = min(wanted[position], max(0, room) // (len(wanted) - num_done))
        room -= shares[position]
    return shares


def _most_telling(
    reports: Sequence[EditReport], max_shown: int
) -> tuple[Sequence[EditReport], int]:
    """The reports to show, failures first if not all fit, and the number of the others."""
    if len(reports) <= max_shown:
        return reports, 0
    ordered = sorted(reports, key=lambda report: not report.is_failure)
    return ordered[: max_shown - 1], len(reports) - max_shown + 1


def _head(report: EditReport) -> str:
    added, removed = num_changed(report.diff)
    size = f" (+{added} -{removed} lines)" if report.diff else ""
    hash_note = f"; its SHA-256 is {report.sha256}" if report.sha256 else ""
    return f"{report.status}: {report.name!a:.200} {report.fate}{size}{hash_note}"


def _advice(report: EditReport, url: str) -> list[str]:
    """Reasons why an edit failed or is doubtful, and remedies; the most important first."""
    if report.error is not None:
        remedy = next((text for kind, text in _REMEDIES if isinstance(report.error, kind)), "")
        code = getattr(report.error, "code", None)
        reason = " ".join(str(report.error).split())
        lines = [f"  {code}: {reason}" if code else f"  {reason}"]
        lines += [f"  {remedy.format(url=url)}"] if remedy else []
        return [*lines, *_choice_lines(report.choices)]
    lines = [f"  warning: {loss}" for loss in report.losses]
    lines += [line for one in report.findings[:MAX_FINDINGS] for line in _finding_lines(one)]
    if len(report.findings) > MAX_FINDINGS:
        lines.append(f"  … {len(report.findings) - MAX_FINDINGS} more findings")
    if report.is_failure:
        lines.append(f"  {_RETRY}")
    return [*lines, *_choice_lines(report.choices)]


def _choice_lines(choices: Sequence[Choice]) -> list[str]:
    if not choices:
        return []
    lines = [f"  choice {one.id} ({one.probability:.0%}): {one.reason}" for one in choices]
    return [f"  {_CHOOSE}", *lines]


def _finding_lines(finding: Finding) -> list[str]:
    place = "" if finding.line is None else f", line {finding.line}"
    message, hint = (text.replace("\n", " ") for text in (finding.message, finding.hint))
    return [f"  {finding.severity} {finding.code}{place}: {message}", f"    hint: {hint}"]


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARACTERS else f"{line[: MAX_LINE_CHARACTERS - 1]}…"
