"""Features of a whole merge: whether the instruction speaks of what changes.

An instruction names little of what it asks for, but lines that were copied with mistakes, or
forgotten, it does not name at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz

from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.merge_view import MergeView

INSTRUCTION_FEATURES: FeatureSet[MergeView, float] = FeatureSet()
# What a feature is without an instruction.
UNSAID = -1.0
ALIKE_RATIO = 75
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
MIN_LETTERS = 3
_COMMON_WORDS = (
    "the and for with from that this not all new add use into are when its one only has have "
    "was were will can should must does but get set let return returns make also self out any"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_add = INSTRUCTION_FEATURES.add


def telling_words(texts: Iterable[str]) -> frozenset[str]:
    """The words of texts and the words that names are made of, without endings and common ones."""
    pieces = (piece.lower() for text in texts for piece in _PIECE.findall(text))
    return frozenset(
        piece.removesuffix("s")
        for piece in pieces
        if piece.isdigit() or (len(piece) >= MIN_LETTERS and piece not in _COMMON)
    )


@_add
def has_instruction(view: MergeView) -> float:
    """There is an instruction."""
    return bool(view.said)


@_add
def num_unsaid(view: MergeView) -> float:
    """Changed stretches that the instruction does not speak of."""
    return len(_unsaid(view)) if view.said else UNSAID


@_add
def unsaid_share(view: MergeView) -> float:
    """The part of the changed stretches that the instruction does not speak of."""
    return len(_unsaid(view)) / max(len(view.changes), 1) if view.said else UNSAID


@_add
def num_unsaid_lost(view: MergeView) -> float:
    """Lines that are lost where nothing comes and that the instruction does not speak of."""
    if not view.said:
        return UNSAID
    return sum(len(gone) for gone, come in _unsaid(view) if not come)


@_add
def num_unsaid_alike(view: MergeView) -> float:
    """Lines that change a little, of which the instruction does not speak: perhaps mistakes."""
    if not view.said:
        return UNSAID
    return sum(
        fuzz.ratio(old, new) >= ALIKE_RATIO
        for gone, come in _unsaid(view)
        if len(gone) == len(come)
        for old, new in zip(gone, come, strict=True)
    )


def _unsaid(view: MergeView) -> list[tuple[Sequence[str], Sequence[str]]]:
    return [change for change in view.changes if not _differing_words(*change) & view.said]


def _differing_words(gone: Sequence[str], come: Sequence[str]) -> frozenset[str]:
    """What tells the lines before and after from each other, or all their words."""
    old, new = telling_words(gone), telling_words(come)
    return (old ^ new) or (old | new)
