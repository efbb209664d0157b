"""Correct merges, broken the way models break them; deterministic by seed.

Whether a corruption is by chance another merge of the update is for the reader to decide.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from oracles.damage.damages import DAMAGES, Damage
from oracles.damage.truth import Truth

from apply_service.evaluate.cases.case_file import Case


@dataclass(frozen=True, slots=True)
class Corruption:
    """One wrong result and the kind of damage that was done."""

    kind: str
    lines: tuple[str, ...]


def corruptions(case: Case, *, seed: int = 0) -> Iterator[Corruption]:
    """One corruption of each kind that the case allows; the same for the same seed."""
    truth = Truth(case)
    for damage in DAMAGES:
        corruption = _corruption(damage, case.id, truth, seed)
        if corruption is not None:
            yield corruption


def random_corruption(case: Case, *, seed: int = 0) -> Corruption | None:
    """One corruption of the case by a kind drawn at random; None if no kind fits."""
    truth = Truth(case)
    generator = random.Random(f"{seed} {case.id}")
    for damage in generator.sample(DAMAGES, len(DAMAGES)):
        corruption = _corruption(damage, case.id, truth, seed)
        if corruption is not None:
            return corruption
    return None


def _corruption(damage: Damage, case_id: str, truth: Truth, seed: int) -> Corruption | None:
    """The damage done once; None if it does not fit or the truth came out."""
    kind = damage.__name__
    lines = damage(random.Random(f"{seed} {case_id} {kind}"), truth)
    if lines is None or lines == truth.expected:
        return None
    return Corruption(kind, tuple(lines))
