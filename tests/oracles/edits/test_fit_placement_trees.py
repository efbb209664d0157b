"""What the fit learns, and that the service's trees say what LightGBM's say."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
from oracles.edits.fit_placement_trees import SETTINGS, Layers, PlannedUpdate, fit, stored
from rival_places import ORIGINAL, merge_case, sure_update

from apply_service.edit.place.placement_layer import LAYER_FEATURES
from snippets.written_segments import WrittenSegment


def drawn(seed: int, num_layers: int) -> Layers:
    """Layers in which the true row is the one with the largest product of two features.

    Many values are 0, for which LightGBM has thresholds as near to it as can be.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(num_layers):
        rows = rng.normal(size=(int(rng.integers(2, 6)), len(LAYER_FEATURES))).round(1)
        found.append((rows, rng.normal(size=len(rows)), int((rows[:, 0] * rows[:, 1]).argmax())))
    return Layers.of(found)


def test_likelihoods_of_a_layer_add_up_to_one() -> None:
    layers = drawn(0, 30)
    likelihoods = layers.likelihoods(layers.weights)
    ends = np.cumsum(layers.sizes)
    sums = [part.sum() for part in np.split(likelihoods, ends[:-1])]
    assert np.allclose(sums, 1.0)
    assert layers.is_true.sum() == 30


def test_stored_trees_say_what_lightgbm_says_and_it_is_what_is_true() -> None:
    layers, unseen = drawn(1, 1500), drawn(2, 200)
    with patch.dict(SETTINGS, feature_fraction=1.0, min_data_in_leaf=20):
        booster = fit((layers, 1.0), num_trees=25)
    trees = stored(booster)
    expected = booster.predict(unseen.rows, raw_score=True)
    found = trees.sums_of(unseen.rows.tolist())
    assert np.allclose(found, expected, atol=1e-4)

    def surprise(scores: np.ndarray) -> float:
        return float(-np.log(unseen.likelihoods(scores)[unseen.is_true]).mean())

    assert surprise(unseen.weights + expected) < 0.8 * surprise(unseen.weights)


def test_a_sample_that_counts_more_is_believed() -> None:
    """Two samples contradict each other in every layer."""
    layers = drawn(3, 300)
    parts = np.split(layers.is_true, np.cumsum(layers.sizes)[:-1])
    other = replace(layers, is_true=np.concatenate([part[::-1] for part in parts]))
    found = []
    for count in (0.05, 20.0):
        with patch.dict(SETTINGS, feature_fraction=1.0, min_data_in_leaf=20):
            booster = fit((layers, 1.0), (other, count), num_trees=15)
        likelihoods = layers.likelihoods(booster.predict(layers.rows, raw_score=True))
        found.append(likelihoods[layers.is_true].mean() - likelihoods[other.is_true].mean())
    assert found[0] > 0.1
    assert found[1] < -0.1


def test_the_true_placement_of_a_segment_with_two_places_is_found() -> None:
    case = merge_case("save")
    planned = PlannedUpdate(case, case.update)
    (placement,) = planned.truths
    ((rows, weights, truth),) = planned.layers()
    assert rows.shape == (len(weights), len(LAYER_FEATURES))
    assert 5 <= placement.start < placement.end <= 8
    assert 0 <= truth < len(weights)


def test_the_writer_of_an_update_tells_its_places_one_by_one() -> None:
    """The second segment belongs elsewhere, so that there is no true merge of both."""
    case = merge_case("save")
    lines = ["        self.check()", '        self.log("used")', "        return self.items"]
    update = case.update + "        self.items = []\n        self.log()\n# ... existing code ...\n"
    true = WrittenSegment(6, 8, lines, "")
    false = WrittenSegment(0, 1, ["class Other:"], "")
    assert PlannedUpdate(case, update).truths == []
    (placement,) = PlannedUpdate(case, update, (true, false)).truths
    assert (placement.segment, list(placement.lines)) == (0, lines)


def test_an_unchanged_line_is_not_true_where_it_stands_elsewhere() -> None:
    case = replace(merge_case("save"), expected=ORIGINAL)
    marker = "# ... existing code ...\n"
    update = f"{marker}    def load(self):\n{marker}        self.check()\n{marker}"
    segments = [
        WrittenSegment(1, 2, ["    def load(self):"], ""),
        WrittenSegment(6, 7, ["        self.check()"], ""),
    ]
    assert [one.start for one in PlannedUpdate(case, update, segments).truths] == [1, 6]


def test_what_is_sure_and_what_cannot_be_true_teach_nothing() -> None:
    sure = PlannedUpdate(merge_case("save"), sure_update("save"))
    assert sure.truths
    assert not list(sure.layers())
    other = PlannedUpdate(merge_case("save"), sure_update("load"))
    assert other.truths == []
    assert not list(other.layers())
