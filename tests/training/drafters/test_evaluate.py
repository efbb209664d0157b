from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from training.drafters.evaluate import LevelCounts, count_levels, markdown_table
from training.drafters.features import Passage

NUM_LEVELS = 3


def brute_force(
    guesses: Sequence[Sequence[Sequence[int]]], text: Sequence[int], choices: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Trials, hits of the first and of any guess by level, draft by draft."""
    counts = [[0, 0, 0] for _ in range(NUM_LEVELS)]
    for row in range(len(text) - 1):
        for level in range(NUM_LEVELS):
            wanted_at = row + 1 + level
            if wanted_at >= len(text):
                break
            found = guesses[level][row]
            counts[level][0] += 1
            counts[level][1] += found[0] == choices[wanted_at]
            counts[level][2] += choices[wanted_at] in found
            is_last = wanted_at + 1 >= len(text)
            if is_last or found[0] != choices[wanted_at] or found[0] != text[wanted_at + 1]:
                break
    return [(one[0], one[1], one[2]) for one in counts]


def test_counts_are_those_of_draft_after_draft() -> None:
    rng = random.Random(0)
    counts, expected = LevelCounts(NUM_LEVELS), [(0, 0, 0)] * NUM_LEVELS
    for length in (1, 2, 3, 4, 40, 41):
        text, choices = (rng.choices(range(2), k=length) for _ in range(2))
        guesses = [
            [rng.sample(range(3), 2) for _ in range(max(length - 1 - level, 0))]
            for level in range(NUM_LEVELS)
        ]
        found = brute_force(guesses, text, choices)
        expected = [
            (one[0] + other[0], one[1] + other[1], one[2] + other[2])
            for one, other in zip(expected, found, strict=True)
        ]
        passage = Passage(torch.tensor(text), torch.tensor(choices), torch.zeros(length, 1))
        count_levels(
            [torch.tensor(level, dtype=torch.int64).view(-1, 2) for level in guesses],
            passage,
            counts,
        )
    assert list(zip(counts.trials, counts.first, counts.any, strict=True)) == expected
    assert all(0 < first < trials for trials, first, _ in expected)


def test_the_table_has_a_line_for_each_level_that_occurred() -> None:
    counts = LevelCounts(2)
    counts.trials, counts.first, counts.any = [200, 0], [100, 0], [150, 0]
    assert markdown_table([("one", counts)]).splitlines()[2:] == [
        "| one | 1 | 200 | 50.0% (43.1%–56.9%) | 75.0% (68.6%–80.5%) |"
    ]
