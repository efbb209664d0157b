"""What the attempts of one run share: the best outcome so far, figures, regions, and the merge."""

from __future__ import annotations

from dataclasses import dataclass, field

from apply_service.apply.attempt import Attempt
from apply_service.apply.events import EventSink, RegionRestart, RegionStarted
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import WorkTerms
from batching.errors import EngineError
from batching.events import RequestStats

_RANKS = {"applied": 0, "unchanged": 1, "needs_review": 2, "rejected": 4}


@dataclass(slots=True)
class RunState:
    """Shared by the attempts of one run; the coroutine in `run` alone writes to it.

    `best` is the mildest outcome of the model's attempts. `merge` is the outcome of the
    deterministic merge, once `is_merge_judged`. The merge is not wanted as the result where more is
    known of the same text, or where an attempt `is_over_ceiling`. `regions` are the indexes of the
    last attempt's regions, counted over all attempts. `dropped_for` is why a wider attempt was not
    made.
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
    dropped_for: EngineError | None = None

    @property
    def has_begun(self) -> bool:
        """True if the engine has taken an attempt."""
        return self.regions.stop > 0

    @property
    def is_applied(self) -> bool:
        """True if an answer of the model has nothing wrong with it."""
        return self.best is not None and rank(self.best) == _RANKS["applied"]

    @property
    def has_fallback(self) -> bool:
        """True if there is a result though the last attempt was cut off."""
        return self.best is not None or is_good(self.merge)

    @property
    def result(self) -> Outcome:
        """The outcome with the milder verdict; of two alike the model's."""
        wanted = (self.best, self.merge if self.is_merge_wanted else None)
        return min((outcome for outcome in wanted if outcome is not None), key=rank)

    def begin(self, attempt: Attempt) -> None:
        """An attempt takes the place of the last one: tell of its regions."""
        self.forget_regions()
        self.regions = range(self.regions.stop, self.regions.stop + len(attempt.prompts))
        for index, prompt in zip(self.regions, attempt.prompts, strict=True):
            self.events.put(RegionStarted(index, prompt.region.start, prompt.region.end))

    def forget_regions(self) -> None:
        """Tell that nothing of the last attempt's regions will be kept."""
        for index in self.regions:
            self.events.put(RegionRestart(index))

    def add_outcome(self, attempt: Attempt, outcome: Outcome) -> None:
        """Take what an attempt came to; one over the caller's ceiling is the result."""
        if attempt.is_over_ceiling:
            self.best, self.is_merge_wanted, self.is_over_ceiling = outcome, False, True
        elif self.best is None or rank(outcome) < rank(self.best):
            self.best = outcome

    def add_merge(self, outcome: Outcome | None) -> None:
        """Take the outcome of the deterministic merge, None if there is no merge."""
        self.merge, self.is_merge_judged = outcome, True


def rank(outcome: Outcome) -> int:
    """How bad a verdict is; a valid merge whose place is in doubt comes before what is none."""
    is_broken = any(finding.code == "not_a_merge" for finding in outcome.verdict.findings)
    value = _RANKS[outcome.verdict.status]
    return value + 1 if is_broken and value < _RANKS["rejected"] else value


def is_good(outcome: Outcome | None) -> bool:
    """True if there is an outcome that needs no look at it."""
    return outcome is not None and rank(outcome) <= _RANKS["unchanged"]


def is_final(outcome: Outcome) -> bool:
    """True if a wider attempt could not make it better: an open place stays open."""
    return rank(outcome) <= _RANKS["needs_review"] and outcome.verdict.status != "unchanged"
