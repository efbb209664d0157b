"""The merges that an update may mean, the likeliest first, and how certain that one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from apply_service.edit.finding import Finding
from apply_service.edit.place.exact_merges import exact_merges
from apply_service.edit.place.lattice.layers import layers_of
from apply_service.edit.place.merge_findings import anchor_not_found, contradicting_segments
from apply_service.edit.place.placement import Placement
from apply_service.edit.place.ranked_plan import RankedPlan, ranked_plan
from apply_service.edit.place.sent_part import SentPart
from apply_service.edit.read.segment import Snippet

# Of merges that the scores say are right with this probability, so many are: chosen on edits that
# the fit has not seen, so that no more wrong ones are applied than before; docs/benchmarks.md.
MIN_CERTAINTY = 0.9


@dataclass(frozen=True, kw_only=True)
class MergePlan:
    """At most eight merges of one original and one update, and what is known of them.

    `merges` are whole texts that differ in more than blank lines; `weights` are their
    log-probabilities beside each other. `certainty` is the probability that the first one is right.
    `parts` are what was sent, where the first merge puts it. `snippet` is the reading of the update
    that led there. With an error among the `findings` there is no merge.
    """

    original_lines: Sequence[str]
    merges: tuple[tuple[str, ...], ...] = ()
    weights: tuple[float, ...] = ()
    certainty: float = 0.0
    parts: tuple[SentPart, ...] = ()
    findings: tuple[Finding, ...] = ()
    snippet: Snippet | None = None

    @property
    def best(self) -> tuple[str, ...] | None:
        """The likeliest merge; None if there is none."""
        return self.merges[0] if self.merges else None

    @property
    def is_certain(self) -> bool:
        """Whether the likeliest merge may be applied without asking anybody."""
        return bool(self.merges) and self.certainty >= MIN_CERTAINTY

    @cached_property
    def layers(self) -> tuple[tuple[Placement, ...], ...]:
        """The merges as placements: all those of a layer exclude each other, the likeliest first.

        At most one layer has several. The placement number n of that layer belongs to merge n.
        """
        return layers_of(self.original_lines, self.merges, self.weights)

    @property
    def choices(self) -> tuple[Placement, ...]:
        """The placements of the layer that has several; empty if none has."""
        return next((layer for layer in self.layers if len(layer) > 1), ())

    def path(self, number: int = 0) -> tuple[Placement, ...]:
        """The placements of merge `number`, in order."""
        return tuple(layer[number] if len(layer) > 1 else layer[0] for layer in self.layers)

    def number_of(
        self, result_lines: Sequence[str], *, ignores_blank_lines: bool = False
    ) -> int | None:
        """Which of the merges a text is; None if it is none of them."""

        def seen(lines: Sequence[str]) -> list[str]:
            return [line for line in lines if line.strip() or not ignores_blank_lines]

        wanted = seen(result_lines)
        texts = enumerate(self.merges)
        return next((number for number, merge in texts if seen(merge) == wanted), None)


def plan_merge(
    original_lines: Sequence[str],
    update_lines: Sequence[str],
    snippet: Snippet | None,
    *,
    path: str | None = None,
    language: str | None = None,
) -> MergePlan:
    """Find what an update may mean; `snippet` is what `read_snippet` made of it, if it could.

    Raises `BudgetSpentError` if it takes too many comparisons.
    """
