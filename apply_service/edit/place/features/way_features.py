"""Features of a whole merge: its steps, its candidates and how the update was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from apply_service.edit.place.candidates.way import possible_move
from apply_service.edit.place.features.candidate_features import CANDIDATE_FEATURES
from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.merge_view import MergeView
from apply_service.edit.read.segment import SnippetFormat

WAY_FEATURES: FeatureSet[MergeView, float] = FeatureSet()
FORMATS: tuple[SnippetFormat, ...] = (
    "lazy",
    "fragment",
    "whole",
    "diff",
    "search_replace",
    "patch",
)
NO_NEXT_SCORE = 9.0
_add = WAY_FEATURES.add


@_add
def rank(view: MergeView) -> float:
    """Other merges have likelier steps."""
    return view.rank


@_add
def score(view: MergeView) -> float:
    """How likely its steps are."""
    return view.way.score


@_add
def score_gap(view: MergeView) -> float:
    """The likeliest steps are so much likelier."""
    return max(view.scores) - view.way.score


@_add
def next_gap(view: MergeView) -> float:
    """The next merge is so much less likely."""
    worse = [one for one in view.scores if one < view.way.score]
    return view.way.score - max(worse) if worse else NO_NEXT_SCORE


@_add
def least_step(view: MergeView) -> float:
    """Its most doubtful step."""
    return min(view.way.step_scores, default=0.0)


@_add
def mean_step(view: MergeView) -> float:
    """Long updates have more doubtful steps."""
    return view.way.score / max(len(view.way.step_scores), 1)


@_add
def local_score(view: MergeView) -> float:
    """How likely its candidates are by themselves."""
    return sum(view.way.local_scores)


@_add
def least_local(view: MergeView) -> float:
    """Its most doubtful candidate."""
    return min(view.way.local_scores, default=0.0)


@_add
def num_parts(view: MergeView) -> float:
    """Parts of the update."""
    return len(view.way.parts)


@_add
def num_markers(view: MergeView) -> float:
    """Markers of the update."""
    return view.reading.num_markers


@_add
def reading_number(view: MergeView) -> float:
    """0 if the update was read as it stands."""
    return view.reading.number


@_add
def num_readings(view: MergeView) -> float:
    """Readings that lead to this text."""
    return view.num_readings


@_add
def update_format(view: MergeView) -> float:
    """How the update was written."""
    return FORMATS.index(view.reading.snippet.format)


@_add
def num_reordered(view: MergeView) -> float:
    """Parts that stand in another order than they were sent."""
    numbers = [part.number for part in view.way.parts if part.number >= 0]
    return sum(low > high for low, high in pairwise(numbers))


@_add
def num_moved(view: MergeView) -> float:
    """Gaps that are moved sideways."""
    return sum(map(bool, view.way.moves))


@_add
def num_unmoved(view: MergeView) -> float:
    """Gaps that a deeper or less deep marker would move, left as they are."""
    way = view.way
    moves = way.moves or (0,) * len(way.candidates)
    return sum(
        not moves[number]
        and below.start > above.end
        and bool(possible_move(view.original, way.parts, number, above))
        for number, (above, below) in enumerate(pairwise(way.candidates), 1)
    )


@_add
def num_reindented(view: MergeView) -> float:
    """Parts whose rows are moved sideways, each by its own columns."""
    return sum(bool(one.row_shifts) for one in view.way.candidates)


@_add
def num_shifted(view: MergeView) -> float:
    """Parts that are moved sideways as a whole."""
    return sum(bool(one.shift) for one in view.way.candidates)


@_add
def least_anchors(view: MergeView) -> float:
    """Ends of a segment, 2 at most, that are lines of the file, each there once."""
    ends = ("first_is_equal", "first_count", "last_is_equal", "last_count")
    columns = [view.of_candidates(name) for name in ends]
    return min(
        float(bool(first and first_count == 1) + bool(last and last_count == 1))
        for first, first_count, last, last_count in zip(*columns, strict=True)
    )


@_add
def takes_guess(view: MergeView) -> float:
    """Every segment takes the lines that its reader guessed: -1 if it guessed none."""
    segments, original = view.reading.snippet.segments, view.original
    taken = [
        [line.rstrip() for line in old if line.strip()]
        == original.lines[candidate.start : candidate.end]
        for part, candidate in zip(view.way.parts, view.way.candidates, strict=True)
        if part.rows and (old := segments[part.number].old) is not None
    ]
    return float(all(taken)) if taken else -1.0


@_add
def num_idle(view: MergeView) -> float:
    """Parts that change nothing where they stand."""
    changes = zip(view.of_candidates("num_added"), view.of_candidates("num_removed"), strict=True)
    return sum(not any(change) for change in changes)


@_add
def edge_kept(view: MergeView) -> float:
    """Lines that stay before or behind all parts, though no marker stands for them."""
    top, bottom = view.edges
    is_open_above, is_open_below = view.reading.is_open
    return is_open_above * top.start + is_open_below * (len(view.original) - bottom.end)


@_add
def edge_lost(view: MergeView) -> float:
    """Lines lost above the first or below the last one that was sent, where no marker stands."""
    top, bottom = view.edges
    is_open_above, is_open_below = view.reading.is_open
    lost = 0.0
    if is_open_above and top.pairs:
        lost += top.pairs[0][1] - top.start
    if is_open_below and bottom.pairs:
        lost += bottom.end - 1 - bottom.pairs[-1][1]
    return lost


def _of_candidates(name: str, fold: str) -> None:
    folds: dict[str, Callable[[Iterable[float]], float]] = {"least": min, "most": max, "all": sum}

    def compute(view: MergeView) -> float:
        return float(folds[fold](view.of_candidates(name)))

    compute.__name__ = f"{fold}_{name}"
    why = {feature.name: feature.why for feature in CANDIDATE_FEATURES.features}[name]
    compute.__doc__ = f"Of the candidates: {why[0].lower()}{why[1:]}"
    _add(compute)


for _name in (
    "evidence_share",
    "first_likeness",
    "last_likeness",
    "rarest",
    "least_likeness",
    "mean_unequal_likeness",
    "removed_mean_likeness",
    "removed_least_likeness",
    "shift_share",
    "first_is_equal",
    "last_is_equal",
):
    _of_candidates(_name, "least")
for _name in (
    "num_removed",
    "removed_weight",
    "num_added",
    "num_lost",
    "longest_lost",
    "removed_definitions",
    "num_names_missed",
    "num_names_lost",
    "new_share",
    "marker_after_is_empty",
    "num_kept_runs",
    "num_kept_lines",
    "kept_beside_added",
    "lines_behind",
    "num_rivals",
    "evidence_gap",
    "num_cut",
    "twin_below",
    "twin_above",
    "same_word_below",
    "same_word_above",
    "rest_of_block",
    "num_unequal",
    "num_other_heads",
    "num_dropped",
    "num_restored",
    "repeats_above",
    "first_count",
    "last_count",
):
    _of_candidates(_name, "most")
for _name in (
    "num_removed",
    "removed_weight",
    "num_added",
    "num_lost",
    "longest_lost",
    "num_names_missed",
    "num_names_lost",
    "names_for_new",
    "new_share",
    "marker_after_is_empty",
    "num_kept_runs",
    "num_kept_lines",
    "lines_behind",
    "num_rivals",
    "evidence_gap",
    "num_cut",
    "twin_below",
    "twin_above",
    "same_word_above",
    "rest_of_block",
    "num_unequal",
    "num_other_heads",
    "num_restored",
    "first_count",
    "last_count",
):
    _of_candidates(_name, "all")
