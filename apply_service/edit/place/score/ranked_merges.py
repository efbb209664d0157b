"""The merges of an update in order, and how certain the first one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apply_service.edit.place.features.certainty_features import (
    CERTAINTY_FEATURES,
    CertaintyView,
    SecondOpinion,
)
from apply_service.edit.place.features.feature import Rows
from apply_service.edit.place.lattice.merges import Merge, MergeSource
from apply_service.edit.place.score.tree_score import MergeScores

MAX_RANKED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMerges:
    """At most `MAX_RANKED` merges of different texts, the likeliest first, with their features."""

    merges: tuple[Merge, ...]
    scores: tuple[float, ...]
    rows: Rows

    def rank_of(self, lines: Sequence[str]) -> int:
        """The place of a text, blank lines not counted; -1 if it is none of the merges."""
        wanted = [line.rstrip() for line in lines if line.strip()]
        for rank, merge in enumerate(self.merges):
            if [line.rstrip() for line in merge.lines if line.strip()] == wanted:
                return rank
        return -1

    def certainty(self, scores: MergeScores, opinion: SecondOpinion) -> float:
        """The probability that the first merge is right, given a second opinion."""
        view = CertaintyView(scores=self.scores, rows=self.rows[:2], opinion=opinion)
        return scores.probability(float(scores.certainty(CERTAINTY_FEATURES.rows([view]))[0]))


def rank_merges(
    original_lines: Sequence[str],
    update_lines: Sequence[str],
    scores: MergeScores,
    *,
    path: str | None = None,
    language: str | None = None,
) -> RankedMerges:
    """What an update may mean, with fitted scores; no merges if it cannot be read at all."""
    source = MergeSource(
        original_lines,
        update_lines,
        path=path,
        language=language,
        local=scores.candidate,
        step=scores.step,
    )
    merges = source.merges()
    rows = source.features(merges)
    found = scores.merge(rows)
    order = np.argsort(-found, kind="stable")[:MAX_RANKED]
    return RankedMerges(
        merges=tuple(merges[place] for place in order),
        scores=tuple(float(found[place]) for place in order),
        rows=rows[order],
    )
