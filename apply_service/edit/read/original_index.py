"""Answers to the readers' questions about the original, computed on first use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from apply_service.edit.text.definition_names import bound_name, known_names
from apply_service.edit.text.similarity import MIN_SIMILARITY, Similarity

# A line with less than this much of words and digits ("}", "else:") anchors nothing by itself.
MIN_ANCHOR_LETTERS = 5
# Lines that are looked at for the one that a new line is a variant of.
MAX_COMPARED_LINES = 4_000
_NOT_WORD = re.compile(r"[\W_]+")


class OriginalIndex:
    """The lines of one original, found by their text without the space around it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines

    @cached_property
    def stripped(self) -> list[str]:
        """The lines without the space around them."""
        return [line.strip() for line in self.lines]

    @cached_property
    def counts(self) -> Counter[str]:
        """Number of times that each stripped line stands in the original."""
        return Counter(self.stripped)

    @cached_property
    def first_places(self) -> dict[str, int]:
        """The first place of each stripped line, counted from 0."""
        places: dict[str, int] = {}
        for place, text in enumerate(self.stripped):
            places.setdefault(text, place)
        return places

    @cached_property
    def last_places(self) -> dict[str, int]:
        """The last place of each stripped line, counted from 0."""
        return {text: place for place, text in enumerate(self.stripped)}

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """All places of each stripped line, counted from 0."""
        places: dict[str, list[int]] = {}
        for place, text in enumerate(self.stripped):
            places.setdefault(text, []).append(place)
        return places

    @cached_property
    def num_filled_before(self) -> list[int]:
        """Number of filled lines before each border between lines."""
        counts = [0]
        for text in self.stripped:
            counts.append(counts[-1] + bool(text))
        return counts

    @cached_property
    def filled(self) -> list[str]:
        """The stripped lines that are not blank."""
        return [text for text in self.stripped if text]

    @cached_property
    def filled_places(self) -> dict[str, list[int]]:
        """Places of each line among the filled lines."""
        places: dict[str, list[int]] = {}
        for rank, text in enumerate(self.filled):
            places.setdefault(text, []).append(rank)
        return places

    @cached_property
    def known_names(self) -> frozenset[str]:
        """All names that the original defines, assigns or imports."""
        return frozenset(known_names(self.lines))

    def filled_at(self, rank: int) -> str | None:
        """The line at a place among the filled lines, or None outside the file."""
        return self.filled[rank] if 0 <= rank < len(self.filled) else None

    def has(self, line: str) -> bool:
        """True if `line` stands in the original, whatever its indentation."""
        return line.strip() in self.counts

    def variant_rank(self, text: str) -> int | None:
        """The old line that a new stripped line rewrites, as a place among the filled ones.

        It is the only line that binds the same name, or else the most similar one; None if neither.
        """
        name = bound_name(text)
        bound = [] if name is None else self._bound_ranks.get(name, [])
        if len(bound) == 1:
            return bound[0]
        ranks = bound or range(min(len(self.filled), MAX_COMPARED_LINES))
        ratios = {rank: self._similarity.ratio(self.filled[rank], text) for rank in ranks}
        best = max(ratios, key=ratios.__getitem__, default=None)
        return best if best is not None and ratios[best] >= MIN_SIMILARITY else None

    @cached_property
    def _bound_ranks(self) -> dict[str, list[int]]:
        ranks: dict[str, list[int]] = {}
        for rank, text in enumerate(self.filled):
            name = bound_name(text)
            if name is not None:
                ranks.setdefault(name, []).append(rank)
        return ranks

    @cached_property
    def _similarity(self) -> Similarity:
        return Similarity(self.stripped)

    @cached_property
    def _filled_text(self) -> str:
        return "\n".join(["", *self.filled, ""])

    def has_run(self, lines: Sequence[str]) -> bool:
        """True if `lines`, blank ones aside, stand in the original one after another."""
        texts = [text for line in lines if (text := line.strip())]
        return "\n".join(["", *texts, ""]) in self._filled_text if texts else True


def is_telling(line: str) -> bool:
    """True if a line says enough to be an anchor by itself."""
    return len(_NOT_WORD.sub("", line[:200])) >= MIN_ANCHOR_LETTERS
