"""Small tables in which every value of one column meets every value of each other column."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any


def pairwise(**columns: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows that contain all pairs of values, some twice; the same rows every time.

    Each row is the candidate with the most pairs that no row before it has.
    """
    names = list(columns)
    missing = {
        ((left, a), (right, b))
        for left, right in combinations(range(len(names)), 2)
        for a, b in product(range(len(columns[names[left]])), range(len(columns[names[right]])))
    }
    rows = []
    while missing:
        chosen: list[int] = []
        for at, name in enumerate(names):
            chosen.append(
                max(
                    range(len(columns[name])),
                    key=lambda value, at=at: _num_pairs(chosen, at, value, missing),
                )
            )
        covered = set(combinations(enumerate(chosen), 2)) & missing
        if not covered:  # what is left is not found greedily: take one pair as it is
            (left, a), (right, b) = min(missing)
            chosen[left], chosen[right] = a, b
            covered = set(combinations(enumerate(chosen), 2)) & missing
        missing -= covered
        rows.append({name: columns[name][value] for name, value in zip(names, chosen, strict=True)})
    return rows


def _num_pairs(
    chosen: Sequence[int], at: int, value: int, missing: set[tuple[tuple[int, int], ...]]
) -> tuple[int, int]:
    """Number of missing pairs of a value: with those chosen before, then with those to come."""
    here = sum(((before, other), (at, value)) in missing for before, other in enumerate(chosen))
    later = sum(pair[0] == (at, value) for pair in missing)
    return here, later
