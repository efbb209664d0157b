"""Temperature, top-k and top-p by sorting the whole vocabulary, in plain Python floats."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def filter_sorted(
    logits: Sequence[float], *, temperature: float, top_k: int = 0, top_p: float = 1.0
) -> list[float]:
    """The filtered distribution [vocab_size], normalised; ties with the last kept token are kept.

    `top_k` 0 and `top_p` 1 keep everything; top-p counts in what top-k has left.
    """
    largest = max(logits)
    weights = [math.exp((logit - largest) / temperature) for logit in logits]
    descending = sorted(weights, reverse=True)
    threshold = 0.0
    if 0 < top_k < len(weights):
        threshold = descending[top_k - 1]
    if top_p < 1.0:
        survivors = [weight for weight in descending if weight >= threshold]
        mass = top_p * math.fsum(survivors)
        cumulative = itertools.accumulate(survivors)
        kept = next((i for i, total in enumerate(cumulative) if total >= mass), -1)
        threshold = max(threshold, survivors[kept])
    kept_weights = [weight if weight >= threshold else 0.0 for weight in weights]
    total = math.fsum(kept_weights)
    return [weight / total for weight in kept_weights]
