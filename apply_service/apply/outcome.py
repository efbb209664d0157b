"""The outcome of one edit: the text, the verdict and the figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from apply_service.apply.choices import Choice
from apply_service.apply.decision import Decision
from apply_service.edit.regions import Region
from apply_service.edit.text.text_file import TextFile
from apply_service.edit.verdict.verdict import AnswerEnding, Verdict
from batching.events import ReferenceStats, RequestStats, RowEvidence

if TYPE_CHECKING:  # only answers of a model have any
    from apply_service.apply.decoding_trace import RegionTrace

Source = Literal["model", "merge", "original", "update", "resolved", "judge", "writer"]

_NO_STATS = RequestStats.total(())


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWord:
    """What a judge said of an edit in doubt: the id of a choice, or None for none of them.

    `model` is the judge's name, `seconds` how long it took.
    """

    choice: str | None
    model: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The merged file as text and lines, and the way it was made.

    `file` is the original with its encoding and line endings, so `file.encode(lines)` are the
    bytes of the result. With status `rejected` the text is the model's answer, not a merge.
    `original` is the file before the edit. `regions` are its lines that the model rewrote: all of
    them in scope "file", none if it was not asked. `confidence` and `decisions` are the model's
    where it was bound to the valid merges. `ending` says how the model's answer ended. `choices`
    are what an edit in doubt may mean; `judge` is what a judge said of them, if one was asked and
    named something. `traces` say how the answers of all attempts came about, where that was asked.
    """

    request_id: str
    verdict: Verdict
    original: TextFile
    file: TextFile
    lines: tuple[str, ...]
    diff: str
    source: Source
    total_s: float
    ending: AnswerEnding = "complete"
    scope: Literal["file", "region"] = "file"
    regions: tuple[Region, ...] = ()
    confidence: float | None = None
    decisions: tuple[Decision, ...] = ()
    choices: tuple[Choice, ...] = ()
    judge: JudgeWord | None = None
    evidence: tuple[RowEvidence, ...] = ()
    stats: RequestStats = _NO_STATS
    traces: tuple[RegionTrace, ...] = ()

    @property
    def merged(self) -> str:
        """The result as text, with the file's own line endings."""
        return self.file.join(self.lines)

    @property
    def by_reference(self) -> dict[str, ReferenceStats]:
        """Draft figures for each reference that drafts were copied from."""
        return self.stats.by_reference

    @property
    def mean_accepted_length(self) -> float:
        """Output tokens for each decoding pass."""
        return _ratio(self.stats.num_output_tokens, self.stats.decode_passes)

    @property
    def tokens_per_target_pass(self) -> float:
        """Output tokens for each forward pass, those over the prompt included."""
        return _ratio(self.stats.num_output_tokens, self.stats.target_passes)


def _ratio(value: int, count: int) -> float:
    return round(value / count, 3) if count else 0.0
