"""What a model's sampled answers should look like: exact joint probabilities and a statistic."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from scipy import stats
from transformers import AutoModelForCausalLM

Answer = tuple[int, ...]
MIN_EXPECTED_COUNT = 5.0


def joint_probs(
    model_dir: Path,
    prompt: Sequence[int],
    *,
    length: int,
    distribution: Callable[[list[float]], list[float]],
) -> dict[Answer, float]:
    """The probability of every answer of `length` tokens, by transformers in float64.

    `distribution` turns the logits of one position into the probabilities that are drawn from.
    """
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float64)
    vocab = range(model.config.vocab_size)
    prefixes = list(itertools.product(vocab, repeat=length - 1))
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *prefix] for prefix in prefixes])).logits
    next_probs: dict[Answer, list[float]] = {}
    for prefix, rows in zip(prefixes, logits[:, len(prompt) - 1 :].tolist(), strict=True):
        for position, row in enumerate(rows):
            if prefix[:position] not in next_probs:
                next_probs[prefix[:position]] = distribution(row)
    joint = {}
    for answer in itertools.product(vocab, repeat=length):
        probability = 1.0
        for position, token in enumerate(answer):
            probability *= next_probs[answer[:position]][token]
        joint[answer] = probability
    return joint


def chi_square_p_value(answers: Sequence[Answer], joint: Mapping[Answer, float]) -> float:
    """Pearson's test of `answers` against `joint`; rare cells are pooled.

    The result is 0 if an answer occurs that has probability 0.
    """
    counts = Counter(answers)
    if any(joint[answer] == 0.0 for answer in counts):
        return 0.0
    cells = sorted((probability * len(answers), counts[key]) for key, probability in joint.items())
    observed, expected = [0], [0.0]
    for expected_count, count in cells:
        if expected[-1] >= MIN_EXPECTED_COUNT:
            observed.append(0)
            expected.append(0.0)
        observed[-1] += count
        expected[-1] += expected_count
    return float(stats.chisquare(observed, expected).pvalue)
