"""The model's certainty about a merge, and what follows: doubts and confirmed places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from apply_service.apply.constrained_reading import ConstrainedReading
from apply_service.apply.decision import Branch, Decision
from apply_service.edit.finding import Finding
from apply_service.edit.place.placement import Placement
from apply_service.edit.verdict.comparison import shown
from apply_service.prompts.calibration import UNMEASURED, Calibration
from batching.events import RowEvidence

if TYPE_CHECKING:
    from apply_service.apply.merge_constraint import MergeConstraint


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The line of the result, from 1, where the model most preferred text that is not a merge."""

    line: int
    text: str
    outside_mass: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Testimony:
    """The model's judgement of an answer that a constraint bound.

    `confirmed` are the placements among which the model chose so surely that the doubt from the
    text alone is settled. `calibration` has the thresholds.
    """

    evidence: tuple[RowEvidence, ...]
    decisions: tuple[Decision, ...]
    confirmed: frozenset[Placement]
    calibration: Calibration
    disagreement: Disagreement | None = None

    @classmethod
    def of_region(
        cls,
        reading: ConstrainedReading,
        constraint: MergeConstraint,
        evidence: Sequence[RowEvidence],
        *,
        seen: Sequence[Placement],
    ) -> Testimony:
        """The testimony of one region that was bound to `constraint`.

        `seen` are the placements among which the model chose; empty if there was no choice.
        """
        calibration = constraint.form.calibration
        decisions = reading.decisions(evidence)
        most = max(evidence, key=lambda row: row.outside_mass, default=None)
        certainty = prod(decision.probability for decision in decisions)
        disagreement = None
        if most is not None and most.outside_mass > calibration.max_outside_mass:
            disagreement = Disagreement(*reading.line_at(most.position), most.outside_mass)
        return cls(
            evidence=tuple(evidence),
            decisions=tuple(decisions),
            confirmed=frozenset(seen)
            if certainty >= calibration.confirming_probability
            else frozenset(),
            calibration=calibration,
            disagreement=disagreement,
        )

    @classmethod
    def total(cls, parts: Sequence[Testimony]) -> Testimony:
        """Combine the testimonies of regions; no two of them share a choice."""
        disagreements = [one.disagreement for one in parts if one.disagreement is not None]
        return cls(
            evidence=tuple(row for one in parts for row in one.evidence),
            decisions=tuple(decision for one in parts for decision in one.decisions),
            confirmed=frozenset[Placement]().union(*(one.confirmed for one in parts)),
            calibration=parts[0].calibration if parts else UNMEASURED,
            disagreement=max(disagreements, key=lambda one: one.outside_mass, default=None),
        )

    @property
    def confidence(self) -> float:
        """The lowest certainty of all decisions; 1 where there was no decision."""
        return min((decision.probability for decision in self.decisions), default=1.0)

    def doubts(self) -> Iterator[Finding]:
        """Findings about choices that were a toss-up, and about text that the model was denied."""
        least = min(self.decisions, key=lambda one: one.probability, default=None)
        if least is not None and least.probability < self.calibration.min_confidence:
            yield _low_confidence(least)
        if self.disagreement is not None:
            yield _model_disagrees(self.disagreement)


def _low_confidence(decision: Decision) -> Finding:
    others = " or ".join(map(_quoted, decision.alternatives[:2]))
    return Finding(
        code="low_confidence",
        severity="warning",
        message=f"the model chose {_quoted(decision.chosen)} for line {decision.line} of the"
        f" result with {_percent(decision.probability)}, over {others}",
        hint="compare the places, or send an unchanged line before and after the new lines",
        line=decision.line,
    )


def _model_disagrees(disagreement: Disagreement) -> Finding:
    return Finding(
        code="model_disagrees",
        severity="warning",
        message=f"the model gave {_percent(disagreement.outside_mass)} to other text than line"
        f" {disagreement.line} of the result, {shown(disagreement.text)}; no valid merge has that"
        " text",
        hint="check that the update says all that you mean, and where",
        line=disagreement.line,
    )


def _quoted(branch: Branch) -> str:
    return f"{shown(branch.text)} ({branch.origin})"


def _percent(probability: float) -> str:
    return f"{100 * probability:.1f} %"
