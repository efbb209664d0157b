from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import torch

from training.drafters.features import FeatureSet
from training.drafters.token_counts import NUM_GUESSES, TrigramTable, frequent_token_ids

VOCAB_SIZE = 7


def ranked(counts: Counter[int]) -> list[int]:
    """The most frequent tokens, filled up with -1."""
    found = sorted(counts, key=lambda token: (-counts[token], token))[:NUM_GUESSES]
    return found + [-1] * (NUM_GUESSES - len(found))


def test_guesses_are_those_of_a_plain_count() -> None:
    rng = random.Random(0)
    texts = [
        ([rng.randrange(VOCAB_SIZE - 1) for _ in range(30)], rng.choices(range(VOCAB_SIZE), k=30))
        for _ in range(4)
    ]
    behind: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for token_ids, choice_ids in texts:
        for at, choice in enumerate(choice_ids):
            behind[(token_ids[at],)][choice] += 1
            if at:
                behind[(token_ids[at - 1], token_ids[at])][choice] += 1
    table = TrigramTable(
        [(torch.tensor(one), torch.tensor(other)) for one, other in texts], vocab_size=VOCAB_SIZE
    )
    asked = [rng.randrange(VOCAB_SIZE) for _ in range(200)]
    expected = [
        ranked(behind.get((before, last)) or behind.get((last,)) or Counter())
        for before, last in pairwise(asked)
    ]
    assert table.guesses(torch.tensor(asked)).tolist() == expected
    assert [-1] * NUM_GUESSES in expected


def test_frequent_tokens_are_those_of_a_plain_count(features_dir: Path) -> None:
    features = FeatureSet(features_dir / "train")
    counts = Counter(token for token_ids, _ in features.texts() for token in token_ids.tolist())
    expected = sorted(range(259), key=lambda token: (-counts[token], token))[:40]
    assert frequent_token_ids(features, count=40, vocab_size=259).tolist() == sorted(expected)
