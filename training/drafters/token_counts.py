"""Counts tokens: which are drafted at all, and a trigram table to compare heads with."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from training.drafters.features import FeatureSet

NUM_GUESSES = 4


def frequent_token_ids(features: FeatureSet, *, count: int, vocab_size: int) -> Tensor:
    """The `count` most frequent tokens [count] int64, ascending; ties go to the lower id."""
    counts = torch.zeros(vocab_size, dtype=torch.int64)
    for token_ids, _ in features.texts():
        counts += torch.bincount(token_ids, minlength=vocab_size)
    chosen = counts.argsort(descending=True, stable=True)[:count]
    return chosen.sort().values


class TrigramTable:
    """What the target chose most often behind two tokens, or else behind the last one alone."""

    def __init__(self, texts: Iterable[tuple[Tensor, Tensor]], *, vocab_size: int) -> None:
        """texts: token ids and choices, each [num_tokens] int64"""
        pairs, singles = [], []
        for token_ids, choice_ids in texts:
            pairs.append(((token_ids[:-1] * vocab_size + token_ids[1:]), choice_ids[1:]))
            singles.append((token_ids, choice_ids))
        self._vocab_size = vocab_size
        self._behind_pair = _Ranking(pairs, vocab_size)
        self._behind_single = _Ranking(singles, vocab_size)

    def guesses(self, token_ids: Tensor) -> Tensor:
        """The likeliest tokens [num_tokens - 1, NUM_GUESSES] behind each but the first; -1: none.

        token_ids: [num_tokens] int64
        """
        found = self._behind_pair.guesses(token_ids[:-1] * self._vocab_size + token_ids[1:])
        fallback = self._behind_single.guesses(token_ids[1:])
        return torch.where(found[:, :1] < 0, fallback, found)


class _Ranking:
    """The most frequent tokens behind each key; ties go to the lower id."""

    def __init__(self, seen: Iterable[tuple[Tensor, Tensor]], vocab_size: int) -> None:
        """seen: keys and the tokens behind them, each [n] int64"""
        keys, followers = (torch.cat(parts) for parts in zip(*seen, strict=True))
        # A key and its follower would not fit into one number.
        self._keys, key_index = torch.unique(keys, return_inverse=True)
        pairs, counts = torch.unique(key_index * vocab_size + followers, return_counts=True)
        order = counts.argsort(descending=True, stable=True)
        order = order[(pairs[order] // vocab_size).argsort(stable=True)]
        rows, ranked = pairs[order] // vocab_size, pairs[order] % vocab_size
        ranks = torch.arange(len(rows)) - torch.searchsorted(rows, rows)
        kept = ranks < NUM_GUESSES
        self._guesses = torch.full((len(self._keys), NUM_GUESSES), -1)
        self._guesses[rows[kept], ranks[kept]] = ranked[kept]

    def guesses(self, keys: Tensor) -> Tensor:
        """[n, NUM_GUESSES] int64, -1 where nothing is known. keys: [n] int64"""
        places = torch.searchsorted(self._keys, keys).clamp(max=len(self._keys) - 1)
        is_known = self._keys[places] == keys
        return torch.where(is_known[:, None], self._guesses[places], -1)
