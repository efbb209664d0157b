"""What each group of features is worth: the scores are fitted anew without it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.features.alignment_features import ALIGNMENT_FEATURES
from apply_service.edit.place.features.instruction_features import INSTRUCTION_FEATURES
from apply_service.edit.place.features.merge_features import MERGE_FEATURES
from apply_service.edit.place.features.name_features import NAME_FEATURES
from apply_service.edit.place.features.place_features import PLACE_FEATURES
from apply_service.edit.place.features.result_features import RESULT_FEATURES
from apply_service.edit.place.features.sent_features import SENT_FEATURES
from apply_service.edit.place.features.way_features import WAY_FEATURES
from apply_service.edit.place.score.tree_score import TreeScore
from training.merges.examples import NUM_FOLDS, Examples, MergedCase

_FOLDS = ("least_", "most_", "all_")
CANDIDATE_GROUPS: dict[str, Collection[str]] = {
    "alignment": ALIGNMENT_FEATURES.names,
    "place": PLACE_FEATURES.names,
}
MERGE_GROUPS: dict[str, Collection[str]] = {
    "ways": [name for name in WAY_FEATURES.names if not name.startswith(_FOLDS)],
    "candidates": [name for name in WAY_FEATURES.names if name.startswith(_FOLDS)],
    "names": NAME_FEATURES.names,
    "results": RESULT_FEATURES.names,
    "sent": SENT_FEATURES.names,
    "instruction": INSTRUCTION_FEATURES.names,
}


def candidate_ablation(
    examples: Examples, names: Sequence[str], fit_all: Callable[[Examples], list[TreeScore]]
) -> Iterator[str]:
    """Lines of a table: how often a right candidate is first of its segment, unseen."""
    for group, gone in {"nothing": [], **CANDIDATE_GROUPS}.items():
        rows = examples.rows.copy()
        rows[:, [names.index(name) for name in gone]] = 0
        scores = fit_all(replace(examples, rows=rows))
        raw = np.zeros(len(rows))
        for fold in range(NUM_FOLDS):
            chosen = examples.folds == fold
            raw[chosen] = scores[fold](rows[chosen])
        share = _first_share(raw, examples.is_right, examples.groups)
        yield f"candidates without {group}: right first in {share:.1%} of the segments"


def _first_share(
    raw: NDArray[np.float64], is_right: NDArray[np.bool_], groups: NDArray[np.int64]
) -> float:
    order = np.lexsort((-raw, groups))
    is_first = np.concatenate([[True], np.diff(groups[order]) != 0])
    return float(is_right[order][is_first].mean())


def merge_ablation(
    cases: Sequence[MergedCase], judge: Callable[[Sequence[MergedCase]], str]
) -> Iterator[str]:
    """Lines of a table: what `judge` says of merges without each group of features."""
    for group, gone in {"nothing": [], **MERGE_GROUPS}.items():
        columns = [MERGE_FEATURES.names.index(name) for name in gone]
        changed = []
        for case in cases:
            rows = case.rows.copy()
            rows[:, columns] = 0
            changed.append(replace(case, rows=rows))
        yield f"merges without {group}: {judge(changed)}"
