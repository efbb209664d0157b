"""Counts how often drafted tokens are what the target chooses, on packages that are held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from training.drafters.features import FeatureSet, Passage
from training.drafters.heads import DraftHeads
from training.drafters.token_counts import NUM_GUESSES, TrigramTable
from training.evaluate import Share


@dataclass(slots=True)
class LevelCounts:
    """Drafted tokens by level: how many there were, and the hits of first and of all guesses."""

    num_levels: int
    trials: list[int] = field(init=False)
    first: list[int] = field(init=False)
    any: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.trials, self.first, self.any = ([0] * self.num_levels for _ in range(3))


def count_levels(guesses: Sequence[Tensor], passage: Passage, counts: LevelCounts) -> None:
    """Add the tokens of one passage to `counts`.

    A token holds if the target chooses it. The next level counts where the token before held and
    the text has it, too: only there do the stored rows follow from the draft.

    guesses: for each level k [num_tokens - 1 - k, num_guesses], the likeliest first
    """
    follows = torch.ones(len(passage) - 1, dtype=torch.bool)
    for level, found in enumerate(guesses):
        choices = passage.choice_ids[1 + level :]
        hits = found == choices[:, None]
        counts.trials[level] += int(follows.sum())
        counts.first[level] += int((follows & hits[:, 0]).sum())
        counts.any[level] += int((follows & hits.any(dim=1)).sum())
        is_text = choices[:-1] == passage.token_ids[2 + level :]
        follows = follows[:-1] & hits[:-1, 0] & is_text


@torch.inference_mode()
def evaluate(heads: DraftHeads, passages: Iterable[Passage], *, num_levels: int) -> LevelCounts:
    """How the heads draft behind every row of the passages, as many levels as they have."""
    counts = LevelCounts(num_levels)
    for passage in passages:
        guesses = heads.guesses(passage, num_levels=num_levels, count=NUM_GUESSES)
        count_levels(guesses, passage, counts)
    return counts


def evaluate_trigrams(table: TrigramTable, features: FeatureSet, *, num_levels: int) -> LevelCounts:
    """How a table would draft there, given the same text."""
    counts = LevelCounts(num_levels)
    for index in range(len(features)):
        passage = features[index]
        found = table.guesses(passage.token_ids)
        count_levels([found[level:] for level in range(num_levels)], passage, counts)
    return counts


def markdown_table(rows: Sequence[tuple[str, LevelCounts]]) -> str:
    """A line for each drafter and level that occurred, with 95 % Wilson intervals."""
    lines = [
        f"| drafter | token | n | top-1 | top-{NUM_GUESSES} |",
        "|---|---:|---:|---|---|",
    ]
    for name, counts in rows:
        levels = zip(counts.trials, counts.first, counts.any, strict=True)
        for level, (num_trials, *hits) in enumerate(levels, start=1):
            if not num_trials:
                continue
            shares = " | ".join(_percent(Share(count, num_trials)) for count in hits)
            lines.append(f"| {name} | {level} | {num_trials} | {shares} |")
    return "\n".join(lines)


def _percent(share: Share) -> str:
    low, high = share.interval()
    return f"{share.value:.1%} ({low:.1%}–{high:.1%})"
