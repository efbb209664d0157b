"""Every valid merge, written out one by one, to hold the merge grammar to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product

from lookup.merge_rules import GrammarPlacement, MergeRules

Answer = tuple[int, ...]


def weighed_merges(rules: MergeRules) -> dict[Answer, float]:
    """All valid answers, each with the weight of the heaviest path that writes it."""
    heaviest: dict[Answer, float] = {}
    for answer, weight in _paths(rules):
        heaviest[answer] = max(weight, heaviest.get(answer, weight))
    return heaviest


def num_paths(rules: MergeRules) -> int:
    """How many paths there are, those with equal text counted each."""
    return sum(1 for _ in _paths(rules))


def next_tokens(answers: Sequence[Answer], prefix: Answer) -> tuple[int, ...]:
    """The tokens, ascending, that follow `prefix` in any answer."""
    size = len(prefix)
    following = {a[size] for a in answers if len(a) > size and a[:size] == prefix}
    return tuple(sorted(following))


def _paths(rules: MergeRules) -> Iterator[tuple[Answer, float]]:
    numbers = range(len(rules.segments))
    for order in [tuple(numbers)] if rules.is_ordered else permutations(numbers):
        for chosen in product(*(rules.segments[number].placements for number in order)):
            ends = [0, *(placement.end for placement in chosen)]
            if all(end <= p.start for end, p in zip(ends, chosen, strict=False)):
                yield from _written(rules, chosen)


def _written(
    rules: MergeRules, chosen: Sequence[GrammarPlacement]
) -> Iterator[tuple[Answer, float]]:
    """The answers of one choice of placements: each optional line kept or not."""
    for versions in product(*(list(_versions(placement)) for placement in chosen)):
        answer: list[int] = []
        line = 0
        for placement, (written, _) in zip(chosen, versions, strict=True):
            answer += _copied(rules, line, placement.start)
            answer += written
            line = placement.end
        answer += _copied(rules, line, len(rules.original))
        yield (*answer, *rules.end_token_ids), sum(weight for _, weight in versions)


def _versions(placement: GrammarPlacement) -> Iterator[tuple[list[int], float]]:
    optional = placement.optional or [False] * len(placement.lines)
    for kept in product(*([True, False] if may_go else [True] for may_go in optional)):
        written = [
            t for line, keep in zip(placement.lines, kept, strict=True) if keep for t in line
        ]
        yield written, placement.weight + placement.omission_weight * kept.count(False)


def _copied(rules: MergeRules, start: int, end: int) -> list[int]:
    removed = {line for first, last in rules.removed for line in range(first, last)}
    return [t for line in range(start, end) if line not in removed for t in rules.original[line]]
