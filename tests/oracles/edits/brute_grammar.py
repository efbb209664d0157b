"""Every valid merge, written out one by one, to hold the merge grammar to."""

from __future__ import annotations

from collections.abc import Sequence

from lookup.merge_rules import MergeRules

Answer = tuple[int, ...]


def weighed_merges(rules: MergeRules) -> dict[Answer, float]:
    """All valid answers, each with the weight of the heaviest text that writes it."""
    heaviest: dict[Answer, float] = {}
    for text in rules.texts:
        answer = (*text.symbols, *rules.end_token_ids)
        heaviest[answer] = max(text.weight, heaviest.get(answer, text.weight))
    return heaviest


def next_tokens(answers: Sequence[Answer], prefix: Answer) -> tuple[int, ...]:
    """The tokens, ascending, that follow `prefix` in any answer."""
    size = len(prefix)
    following = {a[size] for a in answers if len(a) > size and a[:size] == prefix}
    return tuple(sorted(following))
