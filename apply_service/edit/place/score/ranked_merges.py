"""The merges of an update in order, and how certain the first one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apply_service.edit.place.features.certainty_features import (
    CERTAINTY_FEATURES,
    CertaintyView,
)
from apply_service.edit.place.features.feature import Rows, rows_of_views
from apply_service.edit.place.lattice.merges import Merge, MergeSource
from apply_service.edit.place.score.tree_score import MergeScores

MAX_RANKED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMerges:
    """At most `MAX_RANKED` merges of different texts, the likeliest first, with their features.

    `certainty` is the probability that the first one is right, 0 if there is none.
    """

    merges: tuple[Merge, ...]
    scores: tuple[float, ...]
    rows: Rows
    certainty: float

    def log_shares(self, scale: float) -> tuple[float, ...]:
        """Log-probabilities of the merges beside each other; scores count `scale` times."""
        scaled = scale * np.array(self.scores)
        return tuple((scaled - np.logaddexp.reduce(scaled)).tolist())


def rank_merges(
    original_lines: Sequence[str],
    update_lines: Sequence[str],
    scores: MergeScores,
    *,
    path: str | None = None,
    language: str | None = None,
    instruction: str | None = None,
) -> RankedMerges:
    """What an update may mean, with fitted scores; no merges if it cannot be read at all."""
    source = MergeSource(
        original_lines,
        update_lines,
        path=path,
        language=language,
        local=scores.candidate,
        step=scores.step,
        instruction=instruction,
    )
    merges = source.merges()
    if not merges:
        return RankedMerges(merges=(), scores=(), rows=source.features(()), certainty=0.0)
    rows = source.features(merges)
    found = scores.merge(rows)
    order = np.argsort(-found, kind="stable")[:MAX_RANKED]
    merges, rows = [merges[place] for place in order], rows[order]
    best = tuple(float(found[place]) for place in order)
    view = CertaintyView(scores=best, rows=rows[:2])
    certainty = float(scores.certainty(rows_of_views(CERTAINTY_FEATURES, [view]))[0])
    return RankedMerges(
        merges=tuple(merges), scores=best, rows=rows, certainty=scores.probability(certainty)
    )


def filled(lines: Sequence[str]) -> list[str]:
    """The lines without blank ones and without space at their ends."""
    return [line.rstrip() for line in lines if line.strip()]
