"""State that the attempts of one run share: the best outcome, figures, regions, the merge."""

from __future__ import annotations

from dataclasses import dataclass, field

from apply_service.apply.attempt import Attempt
from apply_service.apply.decoding_trace import RegionTrace
from apply_service.apply.events import EventSink, RegionRestart, RegionStarted
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import WorkTerms
from batching.errors import EngineError
from batching.events import RequestStats

_RANKS = {"applied": 0, "unchanged": 1, "needs_review": 2, "rejected": 4}


@dataclass(slots=True)
class RunState:
    """State that the attempts of one run share; only the coroutine in `run` writes to it.

    `best` is the mildest outcome of the model's attempts. `merge` is the outcome of the
    deterministic merge, once `is_merge_judged`. The merge is not wanted as the result where more is
    known of the same text, or where an attempt `is_over_ceiling`. `regions` are the indexes of the
    last attempt's regions, counted over all attempts. `dropped_for` is the reason why a wider
    attempt was not made.
    """

    plan: EditPlan
    terms: WorkTerms
    events: EventSink
    best: Outcome | None = None
    merge: Outcome | None = None
    is_merge_judged: bool = False
    is_merge_wanted: bool = True
    is_over_ceiling: bool = False
    regions: range = range(0)
    stats: list[RequestStats] = field(default_factory=list)
    traces: list[RegionTrace] = field(default_factory=list)
    first_asked_at: float | None = None
    dropped_for: EngineError | None = None

    def seconds_since_first_asked(self, asked_at: float) -> float:
        """How long after the first attempt another one asked the model; both of `monotonic`."""
        if self.first_asked_at is None:
            self.first_asked_at = asked_at
        return asked_at - self.first_asked_at

    @property
    def has_begun(self) -> bool:
        """True if the engine has taken an attempt."""
        return self.regions.stop > 0

    @property
    def is_applied(self) -> bool:
        """True if the checks found nothing wrong with an answer of the model."""
        return self.best is not None and rank(self.best) == _RANKS["applied"]

    @property
    def has_fallback(self) -> bool:
        """True if there is a result although the last attempt was cut off."""
        return self.best is not None or is_good(self.merge)

    @property
    def result(self) -> Outcome:
        """The outcome with the milder verdict; the model's if both are alike."""
        wanted = (self.best, self.merge if self.is_merge_wanted else None)
        return min((outcome for outcome in wanted if outcome is not None), key=rank)

    def begin(self, attempt: Attempt) -> None:
        """Begin an attempt in place of the last one, with events for its regions."""
        self.forget_regions()
        self.regions = range(self.regions.stop, self.regions.stop + len(attempt.prompts))
        for index, prompt in zip(self.regions, attempt.prompts, strict=True):
            self.events.put(RegionStarted(index, prompt.region.start, prompt.region.end))

    def forget_regions(self) -> None:
        """Send events that discard all regions of the last attempt."""
        for index in self.regions:
            self.events.put(RegionRestart(index))

    def add_outcome(self, attempt: Attempt, outcome: Outcome) -> None:
        """Take the outcome of an attempt; one over the caller's ceiling is the result."""
        if attempt.is_over_ceiling:
            self.best, self.is_merge_wanted, self.is_over_ceiling = outcome, False, True
        elif self.best is None or rank(outcome) < rank(self.best):
            self.best = outcome

    def add_merge(self, outcome: Outcome | None) -> None:
        """Take the outcome of the deterministic merge, None if there is no merge."""
        self.merge, self.is_merge_judged = outcome, True


def rank(outcome: Outcome) -> int:
    """The severity of a verdict; a valid merge in a doubtful place is milder than none."""
    is_broken = any(finding.code == "not_a_merge" for finding in outcome.verdict.findings)
    value = _RANKS[outcome.verdict.status]
    return value + 1 if is_broken and value < _RANKS["rejected"] else value


def is_good(outcome: Outcome | None) -> bool:
    """True if there is an outcome that needs no review."""
    return outcome is not None and rank(outcome) <= _RANKS["unchanged"]


def is_final(outcome: Outcome) -> bool:
    """True if a wider attempt could not improve the outcome: an open place stays open."""
    return rank(outcome) <= _RANKS["needs_review"] and outcome.verdict.status != "unchanged"
