"""Words that tell what a text or a change is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
MIN_LETTERS = 3
_COMMON_WORDS = (
    "the and for with from that this not all new add use into are when its one only has have "
    "was were will can should must does but get set let return returns make also self out any"
)
_COMMON = frozenset(_COMMON_WORDS.split())


def telling_words(texts: Iterable[str]) -> frozenset[str]:
    """The words of texts and the words that names are made of, without endings and common ones."""
    pieces = (piece.lower() for text in texts for piece in _PIECE.findall(text))
    return frozenset(
        piece.removesuffix("s")
        for piece in pieces
        if piece.isdigit() or (len(piece) >= MIN_LETTERS and piece not in _COMMON)
    )


def differing_words(gone: Sequence[str], come: Sequence[str]) -> frozenset[str]:
    """What tells the lines before and after from each other, or all their words."""
    old, new = telling_words(gone), telling_words(come)
    return (old ^ new) or (old | new)
