"""Fitted trees in their stored form; `python -m training.fit_merges` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.features.candidate_features import CANDIDATE_FEATURES
from apply_service.edit.place.features.certainty_features import CERTAINTY_FEATURES
from apply_service.edit.place.features.feature import Rows
from apply_service.edit.place.features.merge_features import MERGE_FEATURES
from apply_service.edit.place.features.step_features import STEP_FEATURES
from apply_service.edit.place.score.forest import Forest, Tree

SCORES_PATH = Path(__file__).with_name("merge_scores.msgpack")


class TreeScore(msgspec.Struct, frozen=True, dict=True):
    """Boosted trees with the names of the features that they were fitted to."""

    features: list[str]
    trees: list[Tree]

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        """`[num_rows]`: the log odds of rows of features; higher is likelier."""
        if not len(rows):
            return np.zeros(0)
        return self._forest.sums_of(rows)

    @cached_property
    def _forest(self) -> Forest:
        return Forest(self.trees)


class MergeScores(msgspec.Struct, frozen=True):
    """All fitted scores, and the hash of the cases that they were fitted to.

    Merge scores times `scale` are log odds of merges beside each other. `certainty_steps` are
    rising pairs of a score and the share that was right there (isotonic regression on cases that
    the scores had not seen).
    """

    data_sha256: str
    candidate: TreeScore
    step: TreeScore
    merge: TreeScore
    certainty: TreeScore
    scale: float
    certainty_steps: list[tuple[float, float]]

    def probability(self, score: float) -> float:
        """How likely a merge with a certainty score is right."""
        scores, shares = zip(*self.certainty_steps, strict=True)
        return float(np.interp(score, scores, shares))


def read_scores(path: Path) -> MergeScores:
    """Stored scores, for the features as they are now; features after the fit are not looked at.

    Raises ValueError for a file of another form, or if a feature is gone that a score looks at.
    """
    try:
        scores = msgspec.msgpack.decode(path.read_bytes(), type=MergeScores)
    except msgspec.MsgspecError as error:
        raise ValueError(
            f"{path} holds no scores of merges ({error}); run `python -m training.fit_merges`"
        ) from error
    return msgspec.structs.replace(
        scores,
        candidate=_for_features(scores.candidate, CANDIDATE_FEATURES.names, path),
        step=_for_features(scores.step, STEP_FEATURES.names, path),
        merge=_for_features(scores.merge, MERGE_FEATURES.names, path),
        certainty=_for_features(scores.certainty, CERTAINTY_FEATURES.names, path),
    )


def _for_features(score: TreeScore, names: Sequence[str], path: Path) -> TreeScore:
    columns = {name: column for column, name in enumerate(names)}
    gone = set(score.features) - columns.keys()
    if gone:
        raise ValueError(
            f"{path} was fitted to the feature {min(gone)}, which is gone; run"
            " `python -m training.fit_merges`"
        )
    moved = [columns[name] for name in score.features]
    trees = [
        msgspec.structs.replace(tree, features=[moved[feature] for feature in tree.features])
        for tree in score.trees
    ]
    return TreeScore(list(names), trees)


@cache
def load_scores() -> MergeScores:
    """The scores that come with the service; ValueError as `read_scores`."""
    return read_scores(SCORES_PATH)
