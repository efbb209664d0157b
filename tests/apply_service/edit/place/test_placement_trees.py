"""Trees that weigh a segment's placements, and what they are asked about."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from apply_service.edit.place.decision_tree import Tree
from apply_service.edit.place.placement import Placement
from apply_service.edit.place.placement_features import FEATURES, WEIGHED_FEATURES
from apply_service.edit.place.placement_forest import Forest
from apply_service.edit.place.placement_layer import LAYER_FEATURES, SHAPE_FEATURES, layer_features
from apply_service.edit.place.placement_trees import (
    DOUBTED_LEAD,
    MAX_BEHIND,
    MAX_HEAD_GAIN,
    PlacementTrees,
    confirmed,
    corrected,
    load_trees,
)

ORIGINAL = ["def f():", "    a = 1", "    b = 2", "", "def g():", "    return 3", ""]


def test_a_row_goes_from_node_to_node_until_it_reaches_a_leaf() -> None:
    tree = Tree(
        features=[0, 1],
        thresholds=[0.5, -1.0],
        lefts=[-1, -2],
        rights=[1, -3],
        values=[10.0, 20.0, 30.0],
    )
    rows = [(0.5, 9.0), (0.6, -1.0), (0.6, 0.0)]
    assert PlacementTrees(["a", "b"], [tree]).sums_of(rows) == [10, 20, 30]
    stump = Tree(features=[], thresholds=[], lefts=[], rights=[], values=[0.25])
    assert PlacementTrees(["a"], [stump]).sums_of([(1.0,), (2.0,)]) == [0.25, 0.25]
    trees = PlacementTrees(["a", "b"], [tree, stump, tree])
    assert trees.sums_of(rows) == [20.25, 40.25, 60.25]
    assert trees.sums_of([]) == []


def random_tree(rng: random.Random, *, num_features: int, num_leaves: int) -> Tree:
    """A tree that grows at random leaves, as a fitted one does: some ways are far longer."""
    tree = Tree(features=[], thresholds=[], lefts=[], rights=[], values=[rng.uniform(-1, 1)])
    for number in range(num_leaves - 1):
        leaf = -1 - rng.randrange(len(tree.values))
        for side in (tree.lefts, tree.rights):
            if leaf in side:
                side[side.index(leaf)] = number
        tree.features.append(rng.randrange(num_features))
        tree.thresholds.append(rng.choice([-0.5, 0.0, 0.5, 1.0]))
        tree.values.append(rng.uniform(-1, 1))
        tree.lefts.append(leaf)
        tree.rights.append(-len(tree.values))
    return tree


def value_reached(tree: Tree, row: Sequence[float]) -> float:
    node = 0 if tree.features else -1
    while node >= 0:
        is_above = row[tree.features[node]] > tree.thresholds[node]
        node = (tree.rights if is_above else tree.lefts)[node]
    return tree.values[-1 - node]


@pytest.mark.parametrize("seed", range(5))
def test_trees_side_by_side_add_up_what_each_gives_alone(seed: int) -> None:
    rng = random.Random(seed)
    trees = [
        random_tree(rng, num_features=7, num_leaves=rng.choice([1, 2, 9, 60])) for _ in range(20)
    ]
    rows = [[rng.choice([-1.0, -0.5, 0.0, 0.7, 2.0]) for _ in range(7)] for _ in range(13)]
    expected = [sum(value_reached(tree, row) for tree in trees) for row in rows]
    assert Forest(trees).sums_of(rows) == expected
    together = PlacementTrees(list("abcdefg"), trees)
    assert together.sums_of(rows) == expected
    assert [together.sums_of([row])[0] for row in rows] == expected


def placement(
    start: int, end: int, lines: list[str], weight: float, **features: float
) -> Placement:
    return Placement(
        segment=0,
        start=start,
        end=end,
        lines=tuple(lines),
        weight=weight,
        reason="context",
        features=tuple(features.get(name, 0.0) for name in FEATURES),
    )


def named(row: Sequence[float]) -> dict[str, float]:
    """The columns that are not zero."""
    return {name: value for name, value in zip(LAYER_FEATURES, row, strict=True) if value}


def test_each_placement_is_compared_with_the_heaviest() -> None:
    light = placement(1, 2, ["    a = 5"], 1.0, evidence=0.5)
    heavy = placement(1, 3, ["    a = 5", "    b = 2"], 3.0, evidence=2.0)
    rows = layer_features([light, heavy], ORIGINAL)
    first, second = map(named, rows)
    assert (first["evidence"], first["evidence_more"], first["weight_more"]) == (0.5, -1.5, -2.0)
    assert (first["num_taken_more"], first["num_written_more"]) == (-1, -1)
    assert (first["num_taken"], first["num_written"], first["num_placements"]) == (1, 1, 2)
    assert not any(name.endswith("_more") for name in second)
    assert (second["num_equal_after"], second["has_tail"]) == (1, 1)
    assert "num_equal_after" not in first
    assert first["num_equal_after_more"] == -1


def test_the_shape_of_a_change_is_told_by_its_ends() -> None:
    rows = layer_features([placement(4, 6, ["@cached", "def g():", "    return 4"], 0.0)], ORIGINAL)
    shape = dict(zip(LAYER_FEATURES, rows[0], strict=True))
    assert {name: shape[name] for name in SHAPE_FEATURES} == {
        "num_equal_before": 0,
        "num_equal_after": 0,
        "num_new": 3,
        "num_lost": 1,
        "num_added": 2,
        "kind_above": 0,
        "kind_below": 0,
        "kind_first_old": 2,
        "kind_last_old": 5,
        "kind_first_new": 4,
        "kind_last_new": 5,
        "indent_to_below": 4,
        "indent_of_first": 0,
        "indent_of_last": 0,
        "indent_of_old_to_below": 4,
        "has_tail": 0,
        "num_old_characters": 16,
        "num_new_characters": 23,
        "reason": 1,
    }


def test_two_places_that_are_alike_in_everything_stay_equal() -> None:
    block = ["    x = 1", "    y = 2", ""]
    layer = [placement(at, at + 1, ["    x = 5"], 2.0, evidence=1.0) for at in (3, 6)]
    found = corrected(layer, block * 4)
    assert found[0].weight == found[1].weight


def test_a_placement_at_the_ends_of_the_file_has_nothing_beside_it() -> None:
    rows = layer_features([placement(0, len(ORIGINAL), ["x"], 0.0)], ORIGINAL)
    shape = named(rows[0])
    assert (shape["kind_above"], shape["kind_below"]) == (-1, -1)
    assert len(layer_features([placement(0, 0, ["x"], 0.0)], [])[0]) == len(LAYER_FEATURES)


def test_the_trees_that_come_along_fit_the_features() -> None:
    trees = load_trees()
    assert len(trees.trees) > 50
    for tree in trees.trees:
        assert max(tree.features) < len(LAYER_FEATURES)
        reached = sorted([*tree.lefts, *tree.rights])
        leaves = range(-len(tree.values), 0)
        assert reached == [*leaves, *range(1, len(tree.features))], "each from one other node"


def test_corrected_placements_are_the_same_ones_best_first() -> None:
    layer = [
        placement(1, 2, ["    a = 5"], 2.0, evidence=1.0),
        placement(2, 3, ["    a = 5"], 1.9, evidence=0.9, num_stale=0.7),
        placement(5, 6, ["    a = 5"], -3.0, is_unbalanced=1.0),
    ]
    found = corrected(layer, ORIGINAL)
    assert sorted((one.start, one.end) for one in found) == [(1, 2), (2, 3), (5, 6)]
    weights = [one.weight for one in found]
    assert weights == sorted(weights, reverse=True)
    sums = load_trees().sums_of(layer_features(layer, ORIGINAL))
    by_place = {one.start: one.weight for one in found}
    for one, more in zip(layer, sums, strict=True):
        assert by_place[one.start] == pytest.approx(one.weight + more)


def test_what_is_far_behind_stays_as_far_behind() -> None:
    layer = [
        placement(1, 2, ["    a = 5"], 2.0, evidence=1.0),
        placement(2, 3, ["    a = 5"], 1.9, evidence=0.9, num_stale=0.7),
    ]
    far = placement(5, 6, ["    a = 5"], 2.0 - MAX_BEHIND - 0.1, is_unbalanced=1.0)
    found = {one.start: one.weight for one in corrected([*layer, far], ORIGINAL)}
    assert found[5] - found[1] == pytest.approx(far.weight - layer[0].weight)
    of_near = {one.start: one.weight for one in corrected(layer, ORIGINAL)}
    assert {start: found[start] for start in of_near} == of_near
    assert corrected([layer[0], far], ORIGINAL) == [layer[0], far]


def test_what_the_trees_cannot_compare_stays_as_far_behind() -> None:
    layer = [
        placement(1, 2, ["    a = 5"], 2.0, evidence=1.0),
        placement(2, 3, ["    a = 5"], 1.9, evidence=0.9, num_stale=0.7),
    ]
    unknown = placement(5, 6, ["    a = 5"], 1.0)
    unknown = replace(unknown, features=unknown.features[: len(WEIGHED_FEATURES)])
    found = {one.start: one.weight for one in corrected([*layer, unknown], ORIGINAL)}
    assert found[5] - found[1] == pytest.approx(-1.0)
    of_near = {one.start: one.weight for one in corrected(layer, ORIGINAL)}
    assert {start: found[start] for start in of_near} == of_near


def test_the_head_of_the_file_is_not_given_up_on_the_word_of_the_trees() -> None:
    placed = placement(4, 6, ["def g():", "    return 4"], 3.0, evidence=1.0)
    layer = [placed, replace(placed, start=0, weight=-9.0)]
    found = corrected(layer, ORIGINAL)
    assert found[0].start == 4
    assert found[1].weight - found[0].weight <= -9.0 - 3.0 + MAX_HEAD_GAIN


def test_a_certain_place_needs_the_word_of_the_trees() -> None:
    first = replace(placement(1, 2, ["    a = 5"], 2.0, evidence=1.0), is_certain=True)
    far = placement(5, 6, ["    a = 5"], -9.0, is_unbalanced=1.0)
    assert confirmed([first, far], ORIGINAL) == [first, far]
    assert confirmed([first], ORIGINAL) == [first]
    twin = replace(first, start=2, end=3, is_certain=False)
    doubted = confirmed([first, twin], ORIGINAL)
    assert [one.start for one in doubted] == [1, 2]
    assert not any(one.is_certain for one in doubted)
    assert doubted[0].weight - doubted[1].weight == pytest.approx(DOUBTED_LEAD)


def test_what_has_no_features_or_no_rival_stays_as_it_is() -> None:
    known = placement(1, 2, ["    a = 5"], 2.0, evidence=1.0)
    guessed = replace(known, start=2, end=2, features=())
    assert corrected([known, guessed], ORIGINAL) == [known, guessed]
    assert corrected([known], ORIGINAL) == [known]
    assert corrected([], ORIGINAL) == []
