"""Trees side by side against a walk down each."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.place.score.forest import MAX_LEAVES, ROWS_AT_ONCE, Forest, Tree
from apply_service.edit.place.score.tree_score import load_scores

# Values next to each other, some of which are no numbers of 32 bits.
VALUES = [0.0, 0.1, float(np.float32(0.1)), 0.2, 1.0, -1.0, 1e-9]


def walk(tree: Tree, row: list[float]) -> float:
    """The leaf of one tree by hand."""
    node = 0 if tree.features else -1
    while node >= 0:
        is_above = row[tree.features[node]] > tree.thresholds[node]
        node = tree.rights[node] if is_above else tree.lefts[node]
    return tree.values[-1 - node]


def grown(generator: random.Random, num_leaves: int, num_features: int) -> Tree:
    """A tree of any shape; its nodes and leaves are numbered as they come."""
    tree = Tree([], [], [], [], [])
    sizes = [num_leaves]
    places: list[tuple[list[int], int]] = []
    while sizes:
        size = sizes.pop()
        if places:
            children, node = places.pop()
            children[node] = -1 - len(tree.values) if size == 1 else len(tree.features)
        if size == 1:
            tree.values.append(generator.uniform(-1, 1))
            continue
        node = len(tree.features)
        tree.features.append(generator.randrange(num_features))
        tree.thresholds.append(generator.choice(VALUES))
        tree.lefts.append(0)
        tree.rights.append(0)
        left = generator.randrange(1, size)
        sizes += [left, size - left]
        places += [(tree.lefts, node), (tree.rights, node)]
    return tree


@given(st.integers(0, 10_000), st.lists(st.integers(1, MAX_LEAVES), max_size=6))
def test_a_sum_is_that_of_the_leaves_that_a_walk_finds(seed: int, sizes: list[int]) -> None:
    generator = random.Random(seed)
    trees = [grown(generator, size, 3) for size in sizes]
    rows = np.array([[generator.choice(VALUES) for _ in range(3)] for _ in range(9)], np.float32)
    expected = [sum(walk(tree, row) for tree in trees) for row in rows.tolist()]
    assert Forest(trees).sums_of(rows) == pytest.approx(expected)


def test_the_scores_of_the_service_are_such_sums() -> None:
    score = load_scores().merge
    generator = random.Random(3)
    rows = np.array(
        [[generator.uniform(-3, 9) for _ in score.features] for _ in range(ROWS_AT_ONCE + 3)],
        np.float32,
    )
    expected = [sum(walk(tree, row) for tree in score.trees) for row in rows.tolist()]
    assert score(rows) == pytest.approx(expected)
    assert score(rows[:0]).shape == (0,)


def test_a_tree_with_too_many_leaves_is_refused() -> None:
    tree = grown(random.Random(1), MAX_LEAVES + 1, 2)
    with pytest.raises(ValueError, match="a tree has 33 leaves; at most 32 fit"):
        Forest([tree])
