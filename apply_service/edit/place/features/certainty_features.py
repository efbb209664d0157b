"""Features of the first merge beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apply_service.edit.place.features.feature import FeatureSet, Rows
from apply_service.edit.place.features.merge_features import MERGE_FEATURES

CERTAINTY_FEATURES: FeatureSet[CertaintyView, float] = FeatureSet()
_COLUMNS = {name: column for column, name in enumerate(MERGE_FEATURES.names)}
_WHY = {one.name: one.why for one in MERGE_FEATURES.features}
NO_RIVAL_GAP = 12.0
NEAR_GAP = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CertaintyView:
    """The first of several merges: `scores` of all, best first, and their features.

    `rows [num_merges, num_features]` are of the same merges.
    """

    scores: Sequence[float]
    rows: Rows

    def of_merge(self, name: str) -> float:
        """A feature of the first merge."""
        return float(self.rows[0, _COLUMNS[name]])

    def more_than_next(self, name: str) -> float:
        """How much more of a feature the first merge has than the second one; 0 without one."""
        if len(self.rows) < 2:
            return 0.0
        return float(self.rows[0, _COLUMNS[name]] - self.rows[1, _COLUMNS[name]])


_add = CERTAINTY_FEATURES.add


@_add
def first_score(view: CertaintyView) -> float:
    """How likely the first merge is by itself."""
    return view.scores[0]


@_add
def rival_gap(view: CertaintyView) -> float:
    """How far the next merge is behind."""
    return view.scores[0] - view.scores[1] if len(view.scores) > 1 else NO_RIVAL_GAP


@_add
def first_share(view: CertaintyView) -> float:
    """The share of the first one in the odds of all."""
    odds = np.exp(np.array(view.scores) - view.scores[0])
    return float(1 / odds.sum())


@_add
def num_near(view: CertaintyView) -> float:
    """Merges that come near."""
    return sum(score > view.scores[0] - NEAR_GAP for score in view.scores)


def _of_merge(name: str) -> None:
    def compute(view: CertaintyView) -> float:
        return view.of_merge(name)

    compute.__name__ = name
    compute.__doc__ = _WHY[name]
    _add(compute)


def _more_than_next(name: str) -> None:
    def compute(view: CertaintyView) -> float:
        return view.more_than_next(name)

    compute.__name__ = f"more_{name}"
    compute.__doc__ = f"Against the next merge: {_WHY[name][0].lower()}{_WHY[name][1:]}"
    _add(compute)


for _name in (
    "score",
    "rank",
    "least_step",
    "least_local",
    "num_parts",
    "num_markers",
    "update_format",
    "takes_guess",
    "reading_number",
    "num_readings",
    "errors_added",
    "num_lines_before",
    "kept_share",
    "bindings_lost_used",
    "num_labels_twice",
    "most_num_names_lost",
    "most_new_share",
    "num_gone_unsent",
    "num_twice",
    "num_cosmetic",
    "num_comments_gone",
    "num_respaced",
    "num_headers_gone",
    "num_lines_more",
    "num_gone",
    "is_unsound",
    "imports_lost_used",
    "has_instruction",
    "num_unsaid",
    "unsaid_share",
    "num_unsaid_lost",
    "num_unsaid_alike",
    "num_moved",
    "words_lost",
    "least_evidence_share",
    "least_anchors",
    "least_last_is_equal",
    "most_first_count",
    "most_last_count",
    "least_rarest",
    "least_least_likeness",
    "most_num_rivals",
    "all_num_lost",
    "most_twin_below",
    "most_twin_above",
    "most_rest_of_block",
    "all_num_kept_lines",
    "all_num_unequal",
    "all_num_other_heads",
    "num_idle",
    "edge_kept",
    "edge_lost",
):
    _of_merge(_name)
for _name in (
    "rank",
    "reading_number",
    "definitions_fewer",
    "names_lost_used",
    "words_lost",
    "num_gone_unsent",
    "num_jumps",
    "num_moved",
    "least_evidence_share",
    "all_num_removed",
    "all_num_added",
    "all_num_lost",
    "all_num_kept_lines",
    "all_num_restored",
    "num_unsaid",
    "num_unsaid_lost",
    "num_idle",
    "edge_kept",
    "edge_lost",
):
    _more_than_next(_name)
