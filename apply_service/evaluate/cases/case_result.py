"""Compares the answer to a case with the expected one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from apply_service.edit.finding import Finding
from apply_service.edit.text.alignment import changed_hunks
from apply_service.evaluate.cases.case_file import Case

ResultStatus = Literal["applied", "unchanged", "needs_review", "rejected", "failed"]
RESULT_STATUSES: tuple[ResultStatus, ...] = (
    "applied",
    "unchanged",
    "needs_review",
    "rejected",
    "failed",
)
_RETURNED: tuple[ResultStatus, ...] = ("applied", "unchanged", "needs_review")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """One contender's answer to one case.

    `text` is the merged file; with status "rejected" it is at most what was written and not
    returned. "failed" means that no judgement came: a limit, a deadline, a broken connection.
    `notes` are findings or errors, one a line. Tokens, passes and
    decisions are None where no model ran or where they are not told, decisions also where the model
    wrote freely. `first_text_s` is when the model's first text could be shown.
    """

    status: ResultStatus
    text: str | None = None
    notes: tuple[str, ...] = ()
    source: str | None = None
    seconds: float = 0.0
    first_text_s: float | None = None
    num_output_tokens: int | None = None
    num_target_passes: int | None = None
    num_forced_tokens: int | None = None
    num_decisions: int | None = None


def notes_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Findings as notes of an answer."""
    return tuple(f"{found.severity} {found.code}: {found.message}" for found in findings)


@dataclass(frozen=True)
class CaseResult:
    """A case with its answer. `is_certain` says that the likeliest merge is called certain."""

    case: Case
    answer: CaseAnswer
    language: str
    is_certain: bool = False

    @property
    def is_returned(self) -> bool:
        """True if the caller got a file."""
        return self.answer.status in _RETURNED and self.answer.text is not None

    @property
    def is_exact(self) -> bool:
        """True if the result was returned and equals a right file byte for byte."""
        return self.is_returned and self.answer.text in self.case.results

    @property
    def is_exact_modulo_final_newline(self) -> bool:
        """Returned, and exact but for one newline at the end of the file."""
        return self.is_returned and _without_final_newline(self.text) in map(
            _without_final_newline, self.case.results
        )

    @property
    def is_exact_ignoring_blank_lines(self) -> bool:
        """Returned, and exact once lines without text are left out of both."""
        return self.is_returned and _filled_lines(self.text) in map(
            _filled_lines, self.case.results
        )

    @property
    def is_silent_error(self) -> bool:
        """True if the result is `applied`, yet differs from every right file."""
        return self.answer.status == "applied" and not self.is_exact

    @property
    def is_silent_loss(self) -> bool:
        """A silent error that lacks a line of the original or of the snippet."""
        return self.is_silent_error and bool(self.lost_lines)

    @property
    def is_false_alarm(self) -> bool:
        """True if the result was rejected though its text is exact."""
        return self.answer.status == "rejected" and self.answer.text in self.case.results

    @property
    def is_refused_or_flagged(self) -> bool:
        """True if the caller was warned about the result, or got none."""
        return self.answer.status in ("rejected", "needs_review")

    @property
    def is_miss(self) -> bool:
        """Worth reading: not the expected answer, or an answer where there is none."""
        return not (self.is_refused_or_flagged if self.case.must_refuse else self.is_exact)

    @property
    def text(self) -> str:
        """The answer's text, "" without one."""
        return self.answer.text or ""

    @cached_property
    def lost_lines(self) -> tuple[str, ...]:
        """Expected lines that the answer has too few of, whatever their indentation."""
        missing = _counts(self.case.expected.split("\n")) - _counts(self.text.split("\n"))
        return tuple(missing.elements())

    @cached_property
    def num_changed_lines(self) -> int:
        """Size of the edit: lines removed plus lines added."""
        old, new = self.case.original.split("\n"), self.case.expected.split("\n")
        return sum(
            hunk.old_end - hunk.old_start + hunk.new_end - hunk.new_start
            for hunk in changed_hunks(old, new)
        )


def _without_final_newline(text: str) -> str:
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")


def _filled_lines(text: str) -> Sequence[str]:
    return [line for line in text.split("\n") if line.strip()]


def _counts(lines: Iterable[str]) -> Counter[str]:
    return Counter(line.strip() for line in lines if line.strip())
